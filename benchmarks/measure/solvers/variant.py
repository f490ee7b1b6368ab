"""One setting of one solver."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from measure.task import Answer, Task

GRID = tuple(10.0 ** (-k / 2) for k in range(2, 29))
"""Tolerances from 1e-1 to 1e-14 in half decades, loosest first."""
EXACT = (0.0,)
"""For methods without a tolerance."""
MAX_ITER = 1_000_000
"""The time limit ends a run, not the number of iterations."""


@dataclass(frozen=True)
class Variant:
    """`run(prepare(task), tol)` is timed; `read` makes an answer of its result afterwards."""

    solver: str
    settings: str
    prepare: Callable[[Task], Any]
    """Brings the data into the solver's favourite layout, outside of the clock."""
    run: Callable[[Any, float], Any]
    read: Callable[[Any], Answer] | None = None
    folds: Callable[[Any, float], list[Answer]] | None = None
    """For a cross-validation: the answers on the training parts, which an estimator hides."""
    grid: tuple[float, ...] = GRID

    def gap(self, task: Task, prepared: Any, tol: float, result: Any) -> float:
        """The largest relative gap of what was computed."""
        if self.folds is not None:
            answers = self.folds(prepared, tol)
            return max(p.gap(a) for p, a in zip(task.parts(), answers, strict=True))
        return task.gap(self.read(result) if self.read else result)


@dataclass(frozen=True)
class Errors:
    """What a cross-validation finds: mean squared errors (K, folds), and the fit at the best."""

    mse: np.ndarray
    coef: np.ndarray
    intercept: float


def one(task: Task):
    """What a solver of one problem needs."""
    return task


def centred(X: np.ndarray, y: np.ndarray):
    """X and y without their means, and the means."""
    mean, middle = X.mean(0), y.mean()
    return np.asfortranarray(X - mean), y - middle, mean, middle


def fold_errors(task: Task, path: Callable[[Task], Answer], parts: list[Task]) -> np.ndarray:
    """Mean squared errors (K, folds) of a path solver on the held-out parts."""
    columns = []
    for part, (_, test) in zip(parts, task.folds, strict=True):
        found = path(part)
        predicted = task.X[test] @ found.coefs.T + found.intercepts
        columns.append(np.square(task.y[test][:, None] - predicted).mean(0))
    return np.column_stack(columns)
