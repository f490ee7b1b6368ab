"""What the estimators share: checks of parameters, solving, the warning, linear predictions."""

import numbers
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.problem import Problem
from proxlearn.sklearn.design import Array
from proxlearn.solution import Solution, Status
from proxlearn.solver import solve

PATIENCE = 200
"""Iterations of `solve` before L-BFGS is asked."""


def certified(
    problem: Problem, tol: float, max_iter: int, x0: Any = None, polish: bool = True
) -> Solution:
    """The solution; a `ConvergenceWarning` where an instance did not meet the tolerance."""
    solution = solve(problem, tol=tol, max_iter=max_iter, x0=x0, polish=polish)
    return _warned(solution, tol, problem)


def certified_smooth(problem: Problem, tol: float, max_iter: int, x0: Any = None) -> Solution:
    """The same for one problem with f smooth in x and r an l1 or elastic net penalty, or zero.

    Where `PATIENCE` iterations were not enough, L-BFGS goes on, and its point is the next start:
    classes that a large C nearly separates make a problem too ill-conditioned for one gradient
    an iteration.
    """
    solution = solve(problem, tol=tol, max_iter=min(PATIENCE, max_iter), x0=x0)
    for precision in (1e-4 * tol, 0.0):
        left = max_iter - int(solution.iterations)
        if _met(solution, tol, problem) or left <= 0:
            break
        x, steps = _quasi_newton(problem, solution.x, left, precision)
        left = max(1, left - steps)
        more = solve(problem, tol=tol, max_iter=min(PATIENCE, left) if precision else left, x0=x)
        iterations = solution.iterations + steps + more.iterations
        grad_evals = solution.grad_evals + steps + more.grad_evals
        solution = replace(more, iterations=iterations, grad_evals=grad_evals)
    return _warned(solution, tol, problem)


def _quasi_newton(problem: Problem, x: Tensor, most: int, precision: float) -> tuple[Tensor, int]:
    """A better point by SciPy's L-BFGS-B on x = p - q with p, q >= 0, and its gradients.

    It ends where F falls by less than `precision`, relatively, in an iteration.
    """
    level = problem.r.level()
    slope = torch.zeros_like(x) if level is None else level[0].expand_as(x)
    piece = problem.r.piece(x[None], torch.zeros_like(x[None]))
    assert piece is not None
    curvature = piece.curvature[0].expand_as(x)

    def value_and_grad(pq: Array) -> tuple[float, Array]:
        p, q = torch.from_numpy(pq).reshape(2, -1)
        w = p - q
        value, grad = problem.f.value_and_grad(w[None])
        grad = grad[0] + curvature * w
        value = value[0] + (slope * (p + q) + 0.5 * curvature * w**2).sum()
        return float(value), torch.cat([grad + slope, slope - grad]).numpy()

    start = torch.cat([x.clamp(min=0), (-x).clamp(min=0)]).numpy()
    bounds = [(0, None)] * len(start)
    options = {"maxiter": most, "maxfun": most, "ftol": precision, "gtol": 0.0, "maxcor": 20}
    found = minimize(
        value_and_grad, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    p, q = torch.from_numpy(found.x).reshape(2, -1)
    return p - q, int(found.nfev)


def _met(solution: Solution, tol: float, problem: Problem) -> bool:
    """True where every instance is solved to `tol`, by its gap where one is known."""
    gap, allowed = solution.gap, problem.allowed_gap(tol, solution.objective)
    return solution.solved and bool(((gap <= allowed) | gap.isinf()).all())


def _warned(solution: Solution, tol: float, problem: Problem) -> Solution:
    if not _met(solution, tol, problem):
        worst = float((solution.gap / solution.objective.abs()).max())
        states = ", ".join(sorted({str(s) for s in solution.status if s != Status.SOLVED}))
        warnings.warn(
            f"The fit ended {states} at a relative duality gap of {worst:.1e} and tol is {tol:g}: "
            "raise max_iter, loosen tol, or scale the features",
            ConvergenceWarning,
            stacklevel=4,
        )
    return solution


def require_at_least(low: float, strict: bool = False, **numbers_: Any) -> None:
    """Each keyword is a finite number >= `low`, or > `low`."""
    for name, value in numbers_.items():
        sign = ">" if strict else ">="
        good = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if not good or not (value > low if strict else value >= low) or value == np.inf:
            raise InputError(f"{name} is {value!r}; expected a number {sign} {low:g}")


def require_ratio(**ratios: Any) -> None:
    """Each keyword is a number from 0 to 1."""
    for name, value in ratios.items():
        if not isinstance(value, numbers.Real) or not 0 <= float(value) <= 1:
            raise InputError(f"{name} is {value!r}; expected a number from 0 to 1")


def linear_prediction(estimator: Any, X: Any) -> Any:
    """X coef_^T + intercept_ of a fitted estimator."""
    check_is_fitted(estimator)
    X = validate_data(estimator, X, accept_sparse="csr", dtype=np.float64, reset=False)
    return safe_sparse_dot(X, estimator.coef_.T, dense_output=True) + estimator.intercept_
