"""``python -m proxlearn.compiled [VARIANT ...]``: make the compiled loops, all by default."""

import sys
import time

from proxlearn.compiled.cache import VARIANTS, make, ready

for variant in sys.argv[1:] or VARIANTS:
    if variant not in VARIANTS:
        sys.exit(f"error: {variant!r} is no compiled loop; expected {', '.join(VARIANTS)}")
    began = time.perf_counter()
    if ready(variant):
        print(f"{variant}: there")
    elif make(variant):
        print(f"{variant}: made in {time.perf_counter() - began:.0f} s")
    else:
        print(f"{variant}: another process is making it")
