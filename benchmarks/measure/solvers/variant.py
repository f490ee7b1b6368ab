"""One setting of one solver."""

from collections.abc import Callable
from dataclasses import dataclass, replace
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
class Errors:
    """What a cross-validation finds: mean squared errors (K, folds), and the fit at the best."""

    mse: np.ndarray
    coef: np.ndarray
    intercept: float

    def gap(self, task: Task) -> float:
        """The gap of the fit to all samples at the lam whose mean error is smallest."""
        best = int(np.asarray(self.mse).mean(1).argmin())
        chosen = replace(task, lams=task.lams[best : best + 1], folds=())
        return chosen.gap(Answer.one(self.coef, self.intercept))


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
    """For a cross-validation: the answers on the training parts, which an estimator hides. Without
    it only the last fit is judged here; the race compares the errors with those of the others."""
    grid: tuple[float, ...] = GRID

    def gap(self, task: Task, prepared: Any, tol: float, result: Any) -> float:
        """The largest relative gap of what was computed."""
        if isinstance(result, Errors):
            answers = self.folds(prepared, tol) if self.folds else []
            parts = task.parts() if self.folds else []
            fits = (p.gap(a) for p, a in zip(parts, answers, strict=True))
            return max([result.gap(task), *fits])
        return task.gap(self.read(result) if self.read else result)


def same(task: Task) -> Task:
    """For solvers whose favourite layout is the task's own: Fortran order, or CSC."""
    return task


def by_folds(
    solver: str, settings: str, path: Callable[[Task, float], Answer], **options
) -> Variant:
    """A cross-validation from a path solver: all training parts, then the best alpha.

    The training parts are made outside of the clock.
    """

    def run(prepared, tol: float) -> Errors:
        task, parts = prepared
        columns = []
        for part, (_, test) in zip(parts, task.folds, strict=True):
            found = path(part, tol)
            predicted = task.X[test] @ found.coefs.T + found.intercepts
            columns.append(np.square(task.y[test][:, None] - predicted).mean(0))
        mse = np.column_stack(columns)
        best = mse.mean(1).argmin()
        chosen = path(replace(task, lams=task.lams[best : best + 1], folds=()), tol)
        return Errors(mse, chosen.coefs[0], float(chosen.intercepts[0]))

    def folds(prepared, tol: float) -> list[Answer]:
        return [path(part, tol) for part in prepared[1]]

    return Variant(solver, settings, lambda task: (task, task.parts()), run, folds=folds, **options)
