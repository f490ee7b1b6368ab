"""Softmax with an l2 penalty alone and many coefficients, which the PyTorch loop solves."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from proxlearn.core.glm import STATUSES, Answer
from proxlearn.problems.penalties import ElasticNet as ElasticNetPenalty
from proxlearn.problems.penalties import Penalty, Zero
from proxlearn.problems.problem import Problem
from proxlearn.problems.smooth import Softmax
from proxlearn.sklearn.fitting import Array, warn_of_gap
from proxlearn.sklearn.multinomial_design import Design, prepare
from proxlearn.solving.solution import Solution, Status
from proxlearn.solving.solver import solve

if TYPE_CHECKING:
    from proxlearn.sklearn.multinomial import Multinomial

PATIENCE = 200
"""Iterations of `solve` before L-BFGS is asked."""


def fit(data: "Multinomial", C: float, tol: float, max_iter: int, start: Array | None) -> Answer:
    """The answer to an l2 penalty alone, from coefficients (classes, n + 1) or from 0."""
    used = data.w > 0
    X = data.X if used.all() else data.X[used]
    numbers, w = data.numbers[used], data.w[used]
    total, one = float(w.sum()), data.fit_intercept
    root = np.sqrt(w / total)
    X = X.astype(np.float64, copy=False)
    design = prepare(X, root, centre=one, standardise=True, intercept=one)
    one_hot = torch.from_numpy(np.ascontiguousarray(np.eye(data.classes)[numbers].T[None]))
    f = Softmax(design.A, one_hot, data.classes, torch.from_numpy(root)[None, None])
    problem = Problem(f, _penalty(design, 1 / (C * total), data.classes), single=True)
    x0 = None
    if start is not None:
        x0 = design.solution(start[:, :-1], start[:, -1]).reshape(1, -1)
    solution = _certified(problem, tol, int(max_iter), x0)
    coef, intercept = design.coefficients(solution.x.numpy().reshape(data.classes, -1))
    status = [STATUSES.index(str(s)) for s in solution.status]
    return Answer(
        coef.astype(data.X.dtype, copy=False).reshape(1, -1), intercept[None],
        solution.objective.numpy() * total, solution.gap.numpy() * total,
        np.array(status, dtype=np.int8), solution.iterations.numpy(),
        solution.grad_evals.numpy().astype(np.float64),
    )  # fmt: skip


def _penalty(design: Design, lam: float, classes: int) -> Penalty:
    if lam == 0:
        return Zero()
    weights = torch.from_numpy(np.tile(design.penalty_weights(2), classes))[None]
    first, second = (torch.tensor([v], dtype=torch.float64) for v in (0.0, lam))
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
    r = problem.r
    curvature = r.pair()[1][0] if isinstance(r, ElasticNetPenalty) else torch.zeros_like(x)

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
