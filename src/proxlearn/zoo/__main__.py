"""Train shipped models again: ``python -m proxlearn.zoo NAME ... [--out FOLDER]``.

Without a name, all of them. A training that was interrupted goes on where it stopped.
"""

import argparse
from pathlib import Path

from proxlearn.errors import unknown
from proxlearn.training import Report, train
from proxlearn.zoo.recipes import RECIPES


def main() -> None:
    """Train each model of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m proxlearn.zoo")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(RECIPES))
    parser.add_argument("--out", type=Path, default=Path("zoo"), help="folder for the weights")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.names or RECIPES:
        if name not in RECIPES:
            parser.error(str(unknown("model", name, RECIPES)))
        family, config = RECIPES[name]
        command = f"python -m proxlearn.zoo {name}"
        train(
            family,
            config,
            out=options.out / f"{name}.safetensors",
            resume=True,
            watch=_print,
            card={"name": name, "command": command},
        )


def _print(report: Report) -> None:
    if report.step % 10 == 0:
        print(
            f"{report.step}/{report.steps} loss {report.loss:.4f} "
            f"validation {report.validation:.3f} best {report.best:.3f} "
            f"skipped {report.skipped} {report.seconds:.0f}s",
            flush=True,
        )


if __name__ == "__main__":
    main()
