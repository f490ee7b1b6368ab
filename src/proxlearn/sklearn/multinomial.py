"""Logistic regression with more than two classes, which the PyTorch loop solves."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from proxlearn.penalties import L1, Penalty, Zero
from proxlearn.penalties import ElasticNet as ElasticNetPenalty
from proxlearn.problem import Problem
from proxlearn.sklearn.fitting import Array, warn_of_gap
from proxlearn.sklearn.multinomial_design import prepare
from proxlearn.smooth import Softmax
from proxlearn.solution import Solution, Status
from proxlearn.solver import solve

PATIENCE = 200
"""Iterations of `solve` before L-BFGS is asked."""


@dataclass
class Multinomial:
    """The problems that one data set makes, for any C; the design is prepared once."""

    X: Any
    numbers: Any
    classes: int
    w: Array
    l1_ratio: float
    fit_intercept: bool

    def __post_init__(self) -> None:
        used = self.w > 0
        X = self.X if used.all() else self.X[used]
        numbers, w = self.numbers[used], self.w[used]
        self.total = float(w.sum())
        root = np.sqrt(w / self.total)
        one = self.fit_intercept
        whole = self.l1_ratio in (0, 1)
        X = X.astype(np.float64, copy=False)
        self.design = prepare(X, root, centre=one, standardise=whole, intercept=one)
        one_hot = torch.from_numpy(np.ascontiguousarray(np.eye(self.classes)[numbers].T[None]))
        roots = torch.from_numpy(root)[None, None]
        self.f = Softmax(self.design.A, one_hot, self.classes, roots)

    def fit(self, C: float, tol: float, max_iter: int, start: Array | None = None) -> Solution:
        """The solution for C, from coefficients x (rows, n) or the default start."""
        problem = Problem(self.f, self._penalty(1 / (C * self.total)), single=True)
        x0 = None if start is None else start.reshape(1, -1)
        return _certified(problem, tol, int(max_iter), x0)

    def coefficients(self, solution: Solution) -> tuple[Any, Array]:
        """coef (C, n), in the precision of X, and intercept (C,)."""
        x = solution.x.numpy().reshape(self.classes, -1)
        coef, intercept = self.design.coefficients(x)
        coef = coef.astype(self.X.dtype, copy=False)
        # A constant added to all classes changes nothing: as in scikit-learn their mean is 0.
        return coef, intercept - intercept.mean() if self.fit_intercept else np.zeros(self.classes)

    def gap(self, solution: Solution, C: float) -> float:
        """The duality gap of scikit-learn's objective; of the loss alone where C is infinite."""
        return float(solution.gap[0]) * self.total * (C if np.isfinite(C) else 1.0)

    def _penalty(self, lam: float) -> Penalty:
        if lam == 0:
            return Zero()
        weights = torch.from_numpy(
            np.tile(self.design.penalty_weights(1 if self.l1_ratio == 1 else 2), self.classes)
        )[None]
        first, second = (
            torch.tensor([lam * share], dtype=torch.float64)
            for share in (self.l1_ratio, 1 - self.l1_ratio)
        )
        if self.l1_ratio == 1:
            return L1(first, weights)
        return ElasticNetPenalty(first, second, weights)


def _certified(problem: Problem, tol: float, max_iter: int, x0: Any = None) -> Solution:
    """The solution; a `ConvergenceWarning` where it did not meet the tolerance.

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
    if not _met(solution, tol, problem):
        states = ", ".join(sorted({str(s) for s in solution.status if s != Status.SOLVED}))
        worst = float((solution.gap / solution.objective.abs()).max())
        warn_of_gap(states, worst, tol, stacklevel=5)
    return solution


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
