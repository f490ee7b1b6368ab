"""SciPy: the active-set method for non-negative least squares."""

import numpy as np
from scipy.optimize import nnls

from measure.further import FurtherTask
from measure.solvers.variant import EXACT, Variant, same
from measure.task import Answer

WEIGHTS = tuple(10.0**-k for k in range(2, 8))
"""Inverse weights of the row that makes the sum 1, in place of tolerances."""


def variants(task: FurtherTask) -> list[Variant]:
    if task.kind == "nnls":
        return [Variant("SciPy", "nnls", same, _nnls, Answer.one, grid=EXACT)]
    if task.kind == "simplex":
        return [Variant("SciPy", "nnls with a row of ones", same, _simplex, grid=WEIGHTS)]
    return []


def _nnls(task: FurtherTask, tol: float) -> np.ndarray:
    return nnls(task.X, task.y)[0]


def _simplex(task: FurtherTask, tol: float) -> Answer:
    """The sum of x is 1 up to the weight of a further row; dividing by it makes it exact."""
    weight = np.abs(task.X).max() / tol
    A = np.vstack([task.X, np.full(task.n, weight)])
    x = nnls(A, np.append(task.y, weight))[0]
    return Answer.one(x / x.sum())
