"""scikit-learn's estimators and proxlearn's of the same name, as people call them, in turns.

    python benchmarks/estimators.py --only 'LassoCV|predict'
    python benchmarks/estimators.py --quick --clock cpu --markdown docs/benchmarks-estimators.md

Both have their default settings and the same arguments. Ratios above 1: proxlearn is faster. Their
tolerances mean different things, so the table says what each leaves: the objective's distance to a
lower bound on its minimum, relative to it (`measure/objectives.py`).

    python benchmarks/estimators.py --parallel

measures instead how a `GridSearchCV(n_jobs=2)` and a pool of two threads scale, by wall clock.
"""

import argparse
import json
import platform
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import sklearn.linear_model
from measure import tables
from measure.calibration import write
from measure.clock import in_turns
from measure.data import FOLDER, Data, load, simulated
from measure.objectives import gaps_left
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_limits

import proxlearn
import proxlearn.sklearn

PACKAGES = {"proxlearn": proxlearn.sklearn, "scikit-learn": sklearn.linear_model}
DENSE = ("diabetes", "breast", "200x1000", "500x300", "spambase", "gravier", "khan", "shipp")
SPARSE = ("relathe", "w8a")
QUICK = re.compile("Lasso.*diabetes|Logistic.*breast|predict|clone")
WITHOUT_WARNINGS = {"scoring": "accuracy", "use_legacy_attributes": False}
L1 = {"l1_ratio": 1.0, "solver": "liblinear"}
L1_PATH = {"l1_ratios": (1.0,), "solver": "liblinear"} | WITHOUT_WARNINGS


@dataclass(frozen=True)
class Row:
    """One estimator on one data set. `what` is done with it: fit, predict, clone or search."""

    estimator: str
    data: str
    share: float = 0.0
    """alpha, relative to the smallest one whose coefficients are all 0; 0: no alpha is given."""
    arguments: dict[str, Any] = field(default_factory=dict)
    label: str = ""
    what: str = "fit"

    @property
    def name(self) -> str:
        share = f"{self.share:g}" if self.share else self.label
        done = "" if self.what == "fit" else f" {self.what}"
        return f"{self.estimator}({share}){done} {self.data}"

    @property
    def is_cv(self) -> bool:
        return self.estimator.endswith("CV")


def rows() -> Iterator[Row]:
    """All rows of the table."""
    for data in DENSE + SPARSE:
        for share in (0.1, 0.01):
            yield Row("Lasso", data, share)
        yield Row("ElasticNet", data, 0.1)
        yield Row("LogisticRegression", data, label="l2")
        yield Row("LogisticRegression", data, arguments=L1, label="l1")
    yield Row("LogisticRegression", "digits", label="l2")
    yield Row("Lasso", "digits", 0.1)
    for data in (*DENSE, "digits"):
        yield Row("LassoCV", data)
    for data in ("diabetes", "breast", "200x1000", "500x300", "spambase", "gravier"):
        yield Row("ElasticNetCV", data)
    for data in ("diabetes", "breast", "200x1000", "500x300", "spambase", "gravier"):
        l2 = {"l1_ratios": (0.0,)} | WITHOUT_WARNINGS
        yield Row("LogisticRegressionCV", data, arguments=l2, label="l2")
        yield Row("LogisticRegressionCV", data, arguments=L1_PATH, label="l1")
    yield Row("LinearRegression", "200x50", arguments={"positive": True}, label="positive")
    for what in ("predict", "clone", "GridSearchCV"):
        yield Row("Lasso", "diabetes", 0.1, what=what)
        yield Row("LogisticRegression", "breast", label="l2", what=what)


def data_of(name: str, folder: Path) -> tuple[Data, Any]:
    """The data set, and its labels where it has more than two classes."""
    if name == "200x50":
        return simulated(name, 200, 50), None
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        X = np.asfortranarray(X[:, X.std(axis=0) > 0] / 16)
        return Data(name, X, y.astype(float), y), y
    return load(name, folder), None


def largest_alpha(data: Data) -> float:
    """The smallest alpha whose coefficients are all 0."""
    y = data.target - data.target.mean()
    means = np.asarray(data.X.mean(axis=0)).ravel()
    return float(np.abs(data.X.T @ y - means * y.sum()).max()) / len(y)


def action(row: Row, model: Any, X: Any, y: Any) -> Callable[[], Any]:
    """What is timed."""
    if row.what == "predict":
        return partial(model.fit(X, y).predict, X)
    if row.what == "clone":
        return partial(clone, model)
    if row.what == "GridSearchCV":
        name = "alpha" if row.estimator == "Lasso" else "C"
        return partial(GridSearchCV(model, {name: [0.01, 0.1, 1.0]}, cv=3).fit, X, y)
    return partial(model.fit, X, y)


def measure(row: Row, options: argparse.Namespace) -> dict:
    """Seconds of both packages."""
    data, classes = data_of(row.data, options.data)
    labels = data.labels if classes is None else classes
    y = labels if row.estimator.startswith("Logistic") else data.target
    arguments = dict(row.arguments)
    if row.share:
        arguments["alpha"] = row.share * largest_alpha(data)
    runs = []
    for package in PACKAGES.values():
        made = getattr(package, row.estimator, None) or package.NonNegativeLeastSquares
        own = {} if made.__name__ == "NonNegativeLeastSquares" else arguments
        runs.append(action(row, made(**own), data.X, y))
    budget = 0.1 if options.quick else options.budget
    seconds, models = in_turns(runs, budget=budget, most=200, cpu=options.clock == "cpu")
    ours, theirs = (min(spent) for spent in seconds)
    found = {"row": row.name, "cv": row.is_cv, "ours": ours, "theirs": theirs}
    if row.what == "fit" and row.estimator in ("Lasso", "ElasticNet", "LogisticRegression"):
        found["left"] = gaps_left(models, data.X, y)
    return found


def line(found: dict) -> list[str]:
    ratio = found["theirs"] / found["ours"]
    return [
        found["row"],
        f"{1e3 * found['ours']:.3g}",
        f"{1e3 * found['theirs']:.3g}",
        tables.number(ratio),
        *(f"{gap:.0e}" for gap in found.get("left", ())),
    ] + ["-"] * (0 if "left" in found else 2)


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--only", default="", help="a regular expression that names of rows match")
    add("--quick", action="store_true", help="a few small rows, fewer repeats")
    add("--budget", type=float, default=0.5, help="seconds of repeats for each estimator of a row")
    add("--clock", choices=("wall", "cpu"), default="wall", help="cpu on a busy machine")
    add("--data", type=Path, default=FOLDER, help="the folder with spambase.csv and wide/")
    add("--parallel", action="store_true", help="how two processes and two threads scale")
    add("--json", type=Path, help="write the results to this file")
    add("--markdown", type=Path, help="write the table to this file")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = parsed(sys.argv[1:] if arguments is None else arguments)
    if options.parallel:
        return compare_parallel(options.data)
    chosen = [row for row in rows() if re.search(options.only, row.name)]
    if options.quick:
        chosen = [row for row in chosen if QUICK.search(row.name)]
    results: list[dict] = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in chosen:
            results.append(measure(row, options))
            cells = line(results[-1])
            times = f"{cells[0]:<40} {cells[1]:>9} ms {cells[2]:>9} ms {cells[3]:>6}"
            print(f"{times} {cells[4]:>7} {cells[5]:>7}", flush=True)
    head = ["estimator and data", "proxlearn ms", "scikit-learn ms", "ratio"]
    head += ["gap left by proxlearn", "by scikit-learn"]
    lines = [line(found) for found in results]
    title = (
        f"proxlearn {proxlearn.__version__}, scikit-learn {sklearn.__version__}, "
        f"Python {platform.python_version()}, one core, {options.clock} clock"
    )
    if options.json:
        write(options.json, json.dumps({"title": title, "results": results}, indent=1))
    if options.markdown:
        write(options.markdown, tables.markdown(title, head, lines))
    print(summary(results))
    return 0


def compare_parallel(folder: Path) -> int:
    """Print how much sooner two workers end than one, for both packages: processes, threads."""
    print("wall clock of one worker divided by that of two, best of three")
    for estimator, data in (("Lasso", "gravier"), ("LogisticRegression", "spambase")):
        found = load(data, folder)
        y = found.labels if estimator.startswith("Logistic") else found.target
        name = "C" if estimator.startswith("Logistic") else "alpha"
        values = np.geomspace(0.01, 1.0, 12)
        for label, package in PACKAGES.items():
            model = getattr(package, estimator)()

            def search(workers: int, model: Any = model, X: Any = found.X, y: Any = y) -> None:
                GridSearchCV(model, {name: values}, cv=3, n_jobs=workers).fit(X, y)  # noqa: B023

            def pool(workers: int, model: Any = model, X: Any = found.X, y: Any = y) -> None:
                models = [clone(model).set_params(**{name: value}) for value in values]  # noqa: B023
                with ThreadPoolExecutor(workers) as threads:
                    list(threads.map(lambda one: one.fit(X, y), models))

            ratios = [_faster(run) for run in (search, pool)]
            print(f"{estimator} {data} {label}: processes {ratios[0]:.2f}, threads {ratios[1]:.2f}")
    return 0


def _faster(run: Callable[[int], None]) -> float:
    runs = [partial(run, workers) for workers in (1, 2)]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, _ = in_turns(runs, budget=0.0)
    one, two = (min(spent) for spent in seconds)
    return one / two


def summary(results: list[dict]) -> str:
    """How many rows are faster than scikit-learn's, and the smallest ratios."""
    parts = []
    for kind, wanted in (("fits", False), ("cross-validations", True)):
        ratios = [r["theirs"] / r["ours"] for r in results if r["cv"] == wanted]
        if ratios:
            parts.append(
                f"{kind}: {sum(ratio >= 1 for ratio in ratios)} of {len(ratios)} at least as fast, "
                f"smallest ratio {min(ratios):.2f}, median {np.median(ratios):.2f}"
            )
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(main())
