"""Train shipped models again, and measure them: ``python -m proxlearn.zoo [NAME ...]``.

Without a name, all of them. A training that was interrupted goes on where it stopped; a model that
is in the folder already is measured only. The results go into the model's card.
"""

import argparse
from pathlib import Path

from proxlearn.errors import InputError, unknown
from proxlearn.evaluation.model_results import gradient_ratios, measure, suite_of
from proxlearn.methods.checkpoint import Learned, load
from proxlearn.training import Report, train
from proxlearn.training.recipes import RECIPES


def main() -> None:
    """Train and measure each model of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m proxlearn.zoo")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(RECIPES))
    parser.add_argument("--out", type=Path, default=Path("zoo"), help="folder for the weights")
    options = parser.parse_args()
    for name in options.names or RECIPES:
        if name not in RECIPES:
            parser.error(str(unknown("model", name, RECIPES)))
        file = options.out / f"{name}.safetensors"
        if not file.exists():
            _train(name, file)
        _measure(name, file)


def _train(name: str, file: Path) -> None:
    family, config = RECIPES[name]
    card = {"name": name, "command": f"python -m proxlearn.zoo {name}"}
    train(family, config, out=file, resume=True, watch=_print, card=card)


def _print(report: Report) -> None:
    if report.step % 10 == 0:
        print(
            f"{report.step}/{report.steps} loss {report.loss:.4f} "
            f"validation {report.validation:.3f} best {report.best:.3f} "
            f"skipped {report.skipped} {report.seconds:.0f}s",
            flush=True,
        )


def _measure(name: str, file: Path) -> None:
    """Every test of the model; those whose data are not here keep their results."""
    learned = load(file)
    results = dict(learned.card.get("results", {}))
    for test in suite_of(name):
        try:
            results[test] = measure({name: learned}, test)
        except InputError as error:
            print(f"{name}, {test}: not measured ({error})")
            continue
        print(f"{name}, {test}: {results[test]}", flush=True)
    card = {**learned.card, "results": results}
    if name == "general":
        wide = ("wide-lasso", "wide-logistic", "wide-softmax")
        card["ratios"] = {family: gradient_ratios(name, learned, family) for family in wide}
        print(f"{name}: {card['ratios']}", flush=True)
    Learned(learned.rule, card).save(file)


if __name__ == "__main__":
    main()
