"""scikit-learn's coordinate descent on a batch of LASSO problems, recorded sweep by sweep."""

import time
import warnings
from typing import Any, cast

import numpy as np
import torch

from proxlearn.errors import InputError
from proxlearn.evaluation.comparison import Run
from proxlearn.problems.penalties import L1
from proxlearn.problems.problem import Problem
from proxlearn.problems.smooth import LeastSquares
from proxlearn.watch import Watch

SWEEPS = 40
"""Sweeps that are recorded: a LASSO of the paper needs about 20 to a relative gap of 1e-6."""
TIMED = (1, 4, 12, SWEEPS)
"""Numbers of sweeps after which the clock is read, each in a fit of its own from 0."""


def require_sklearn() -> None:
    """Refuse to start without scikit-learn, with the command that installs it."""
    try:
        import sklearn  # noqa: F401
    except ImportError:
        raise InputError(
            "the demonstration compares with scikit-learn, which is not installed; "
            "pip install scikit-learn"
        ) from None


def timed() -> str:
    """The numbers of sweeps of `TIMED` in words."""
    return f"{', '.join(map(str, TIMED[:-1]))} and {TIMED[-1]}"


def lasso(alpha: float, sweeps: int, warm_start: bool = False) -> Any:
    """scikit-learn's Lasso without intercept, for a given number of sweeps."""
    from sklearn.linear_model import Lasso

    return Lasso(
        alpha=alpha,
        fit_intercept=False,
        tol=0.0,
        max_iter=sweeps,
        warm_start=warm_start,
        copy_X=False,
    )


def run(problem: Problem, watch: Watch | None = None) -> Run:
    """Objectives after 0, ..., `SWEEPS` sweeps, and the time of `TIMED` sweeps interpolated.

    A sweep over all columns reads A about as often as one gradient does and counts as one.
    The sweeps are recorded by fits of one sweep that start from the last one; their time is not
    counted, as it is mostly that of scikit-learn's checks.
    """
    from sklearn.exceptions import ConvergenceWarning

    squares, penalty = cast(LeastSquares, problem.f), cast(L1, problem.r)
    A, b = squares.A.numbers()[0].numpy(), squares.b.numpy()
    alphas = (penalty.lam.double() / A.shape[1]).tolist()
    x = np.zeros((SWEEPS + 1, problem.batch, problem.n))
    spent = np.zeros(len(TIMED))
    with warnings.catch_warnings():
        # The fits stop after the given number of sweeps, whatever the gap.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for i, alpha in enumerate(alphas):
            columns = np.asfortranarray(A[i])
            going = lasso(alpha, 1, warm_start=True)
            for k in range(1, SWEEPS + 1):
                x[k, i] = going.fit(columns, b[i]).coef_
            for j, k in enumerate(TIMED):
                began = time.perf_counter()
                lasso(alpha, k).fit(columns, b[i])
                spent[j] += time.perf_counter() - began
            if watch is not None:
                watch("scikit-learn", i + 1, problem.batch)
    exact = problem.to(torch.float64)
    objective = torch.stack([exact.objective(torch.from_numpy(at)) for at in x])
    sweeps = np.arange(SWEEPS + 1)
    return Run(
        objective,
        torch.from_numpy(sweeps)[:, None].expand(-1, problem.batch),
        torch.from_numpy(np.interp(sweeps, (0, *TIMED), (0.0, *spent))),
    )
