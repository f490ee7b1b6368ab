"""``python -m proxlearn.compiled [VARIANT ...]``: make the compiled loops, all by default."""

import sys
import time

from proxlearn.compiled.cache import VARIANTS, make, ready


def main(names: list[str]) -> None:
    """Make these loops, or all."""
    for name in names:
        if name not in VARIANTS:
            sys.exit(f"error: {name!r} is no compiled loop; expected {', '.join(VARIANTS)}")
    for name in names or VARIANTS:
        began = time.perf_counter()
        if ready(name):
            print(f"{name}: there")
        elif make(name):
            print(f"{name}: made in {time.perf_counter() - began:.0f} s")
        else:
            print(f"{name}: another process is making it")


if __name__ == "__main__":
    main(sys.argv[1:])
