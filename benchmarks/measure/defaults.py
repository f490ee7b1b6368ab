"""Estimators with their default settings, as people call them, and the gap that each one leaves.

A time without its gap says little here: the default tolerances mean different things.
"""

import importlib
import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from measure import gaps, tables
from measure.clock import in_turns
from measure.data import Data, load, simulated

MODULES = {
    "proxlearn": "proxlearn.sklearn",
    "scikit-learn": "sklearn.linear_model",
    "celer": "celer",
    "skglm": "skglm",
}
OTHER_NAMES = {
    ("skglm", "LogisticRegression"): "SparseLogisticRegression",
    ("scikit-learn", "NonNegativeLeastSquares"): "LinearRegression",
}


@dataclass(frozen=True)
class Call:
    """One estimator on one data set; `arguments` are those of scikit-learn's estimator."""

    estimator: str
    data: str
    arguments: dict[str, Any]

    @property
    def name(self) -> str:
        short = {"LogisticRegression": "Logistic", "NonNegativeLeastSquares": "NNLS"}
        shown = ", ".join(f"{v:g}" for v in self.arguments.values())
        return f"{short.get(self.estimator, self.estimator)}({shown}) {self.data}"


CALLS = (
    Call("Lasso", "diabetes", {"alpha": 0.1}),
    Call("Lasso", "200x1000", {"alpha": 1.0}),
    Call("Lasso", "200x1000", {"alpha": 0.1}),
    Call("Lasso", "gravier", {"alpha": 0.02}),
    Call("Lasso", "relathe", {"alpha": 0.01}),
    Call("ElasticNet", "diabetes", {"alpha": 0.1}),
    Call("ElasticNet", "gravier", {"alpha": 0.1}),
    Call("LassoCV", "diabetes", {"cv": 5}),
    Call("LassoCV", "200x1000", {"cv": 5}),
    Call("LassoCV", "gravier", {"cv": 5}),
    Call("LogisticRegression", "breast", {"C": 1.0}),
    Call("LogisticRegression", "gravier", {"C": 1.0}),
    Call("LogisticRegression", "relathe", {"C": 1.0}),
    Call("NonNegativeLeastSquares", "200x50", {}),
)
QUICK = (0, 1, 5, 10)


def estimator(solver: str, call: Call, m: int) -> Any | None:
    """The estimator as its documentation shows it, or None where the package has none."""
    name = OTHER_NAMES.get((solver, call.estimator), call.estimator)
    made = getattr(importlib.import_module(MODULES[solver]), name, None)
    if made is None:
        return None
    arguments = dict(call.arguments)
    known = inspect.signature(made).parameters
    if call.estimator == "LogisticRegression":
        if solver == "skglm":  # its alpha weighs the penalty beside the mean loss
            arguments = {"alpha": 1 / (call.arguments["C"] * m)}
        elif solver == "scikit-learn":
            l1 = (
                {"l1_ratio": 1.0} if known["penalty"].default == "deprecated" else {"penalty": "l1"}
            )
            arguments |= l1 | {"solver": "liblinear"}
        elif solver == "proxlearn":
            arguments |= {"l1_ratio": 1.0}
    if name == "LinearRegression":
        arguments = {"positive": True}
    if call.estimator == "ElasticNet" and solver == "celer":
        arguments |= {"l1_ratio": 0.5}  # its own default is 1, the LASSO
    return made(**arguments)


def gap_left(call: Call, data: Data, y: np.ndarray, model: Any) -> float:
    """The relative duality gap of the fitted model; not a number where there is no penalty."""
    w, c = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    m = len(y)
    if call.estimator == "LogisticRegression":
        return gaps.logistic(data.X, y, w, c, 1 / (call.arguments["C"] * m), model.fit_intercept)
    if call.estimator == "NonNegativeLeastSquares":
        return np.nan
    alpha = model.alpha_ if call.estimator == "LassoCV" else call.arguments["alpha"]
    share = 0.5 if call.estimator == "ElasticNet" else 1.0
    lam, l2 = alpha * share * m, alpha * (1 - share) * m
    return gaps.squares(data.X, y, w, c, lam, l2, intercept=True)


def measure(call: Call, load: Callable[[str], Data], budget: float, cpu: bool) -> dict:
    """Times and gaps of all packages that have such an estimator and can fit the data."""
    data = load(call.data)
    y = data.labels if call.estimator == "LogisticRegression" else data.target
    models = {name: estimator(name, call, len(y)) for name in MODULES}
    models = {name: model for name, model in models.items() if model is not None}
    notes = {}
    for name in tuple(models):
        try:
            models[name].fit(data.X, y)
        except Exception as error:  # a package that cannot fit such data says why
            notes[name] = f"{type(error).__name__}: {error}".partition("\n")[0]
            del models[name]
    fits = [partial(m.fit, data.X, y) for m in models.values()]
    seconds, _ = in_turns(fits, budget=budget, cpu=cpu)
    entries = {
        name: {
            "min": min(spent),
            "median": float(np.median(spent)),
            "runs": len(spent),
            "gap": gap_left(call, data, y, models[name]),
        }
        for name, spent in zip(models, seconds, strict=True)
    }
    return {"call": call.name, "entries": entries, "notes": notes}


def main(options, report) -> int:
    calls = [CALLS[i] for i in QUICK] if options.quick else CALLS

    def data(name: str) -> Data:
        if name == "200x50":
            return simulated(name, 200, 50)
        return load(name, options.data)

    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in calls:
            report.say(call.name)
            budget = 0.1 if options.quick else 0.5
            results.append(measure(call, data, budget, report.cpu))
    head = ["as called", "ours ms", "gap", *(c for n in list(MODULES)[1:] for c in (n, "gap"))]
    head = [tables.SHORT.get(h, h) for h in head]
    lines = [_line(r, options.statistic) for r in results]
    report.finish("defaults", "Default settings, time over ours", head, lines, results)
    return 0


def _line(result: dict, statistic: str) -> list[str]:
    mine = result["entries"]["proxlearn"]
    cells = [result["call"], f"{1e3 * mine[statistic]:.3g}", _gap(mine["gap"])]
    for name in list(MODULES)[1:]:
        entry = result["entries"].get(name)
        if entry is None:
            cells += [tables.ABSENT, tables.ABSENT]
        else:
            cells += [tables.number(entry[statistic] / mine[statistic]), _gap(entry["gap"])]
    return cells


def _gap(value: float) -> str:
    return tables.ABSENT if np.isnan(value) else f"{value:.0e}".replace("e-0", "e-")
