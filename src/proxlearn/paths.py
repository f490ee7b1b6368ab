"""Regularisation paths: one problem for many lam, each solution the start of the next."""

import time
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from proxlearn.arrays import start_point, to_tensor
from proxlearn.errors import InputError
from proxlearn.optimizers import Optimizer
from proxlearn.penalties import L1, ElasticNet, GroupL1, Penalty
from proxlearn.problem import Problem, pseudo_inverse, require_problem
from proxlearn.smooth import GLM
from proxlearn.solution import Solution, Status
from proxlearn.solver import solve

NEWTON_STEPS = 50
"""On the unpenalised coordinates; least squares needs one, an intercept of a logistic model few."""


@dataclass(frozen=True)
class SolutionPath:
    """The answers for K values of lam, largest first, for a batch of B instances."""

    lams: Tensor
    """(K, B), or (K,) where one problem was given."""
    x: Tensor
    """(K, B, n), or (K, n) where one problem was given."""
    objective: Tensor
    """F(x), (K, B), float64."""
    gap: Tensor
    """Certified upper bound on F(x) - F*, (K, B), float64; infinite where none is known."""
    status: tuple[tuple[Status, ...], ...]
    """K rows of B."""
    iterations: Tensor
    """(K, B)"""
    grad_evals: Tensor
    """Gradient equivalents, (K, B)."""
    seconds: float

    @property
    def solved(self) -> bool:
        """True where every point of every instance met the tolerance."""
        return all(s == Status.SOLVED for row in self.status for s in row)


@torch.no_grad()
def path(
    problem: Problem,
    lams: Any = None,
    n_lams: int = 100,
    eps: float = 1e-3,
    *,
    optimizer: str | Optimizer = "auto",
    tol: float = 1e-6,
    max_iter: int = 1000,
    x0: Any = None,
    safeguard: bool = True,
    polish: bool = True,
    engine: str | None = None,
) -> SolutionPath:
    """Solve a problem with an l1, elastic net or group l1 penalty for many lam.

    `lams` (K,) or (K, B) is used in decreasing order; by default `n_lams` values from `lam_max`,
    where all penalised coordinates are zero, down to ``eps * lam_max``, evenly in logarithms. The
    problem's own lam does not matter, except that an elastic net keeps its ratio lam2 / lam. `x0`
    is the start for the largest lam; the other options are those of `solve`.

    >>> import torch, proxlearn as pl
    >>> problem = pl.lasso(torch.eye(2).double(), [3.0, 0.5], lam=1.0)
    >>> pl.path(problem, [2.0, 0.25]).x
    tensor([[1.0000, 0.0000],
            [2.7500, 0.2500]], dtype=torch.float64)
    """
    require_problem(problem)
    began = time.perf_counter()
    chain = _values(problem, lams, n_lams, eps)
    x = _null_point(problem) if x0 is None else start_point(problem, x0)
    points: list[Solution] = []
    for lam in chain:
        point = solve(
            replace(problem, r=with_lam(problem.r, lam)),
            optimizer,
            tol=tol,
            max_iter=max_iter,
            x0=x,
            safeguard=safeguard,
            polish=polish,
            engine=engine,
        )
        x = _usable(point, x)
        points.append(point)
    return SolutionPath(
        lams=chain[:, 0] if problem.single else chain,
        x=torch.stack([p.x for p in points]),
        objective=torch.stack([p.objective for p in points]),
        gap=torch.stack([p.gap for p in points]),
        status=tuple(p.status for p in points),
        iterations=torch.stack([p.iterations for p in points]),
        grad_evals=torch.stack([p.grad_evals for p in points]),
        seconds=time.perf_counter() - began,
    )


def lam_max(problem: Problem) -> Tensor:
    """The smallest lam for which every penalised coordinate of the solution is zero, (B,).

    From the gradient of f at the minimiser over the unpenalised coordinates, at 0 without those.
    """
    _require_lam(problem.r)
    return _lam_max(problem, _null_point(problem))


def with_lam(r: Penalty, lam: Tensor) -> Penalty:
    """The same penalty with another lam (B,); an elastic net keeps its ratio lam2 / lam."""
    _require_lam(r)
    if isinstance(r, ElasticNet):
        return replace(r, lam=lam, lam2=lam * (r.lam2 / r.lam))
    return replace(r, lam=lam)  # type: ignore[type-var]


def _require_lam(r: Penalty) -> None:
    if not isinstance(r, (L1, ElasticNet, GroupL1)):
        raise InputError(
            f"the penalty {type(r).__name__} has no lam to vary; expected l1, elastic net, group l1"
        )
    if bool((r.lam <= 0).any()):
        raise InputError("lam is 0, so its ratio to lam2 is unknown; expected an elastic net > 0")


def _values(problem: Problem, lams: Any, n_lams: int, eps: float) -> Tensor:
    """The values of lam, (K, B), each column decreasing."""
    _require_lam(problem.r)
    B = problem.batch
    if lams is not None:
        given = to_tensor("lams", lams).to(dtype=problem.dtype, device=problem.device)
        shape = tuple(given.shape)
        given = given[:, None] if given.ndim == 1 else given
        if given.ndim != 2 or not len(given) or given.shape[1] not in (1, B):
            raise InputError(f"lams has shape {shape}; expected (K,), or (K, {B})")
        if bool((given <= 0).any()):
            raise InputError(f"lams holds {float(given.min()):g}; expected numbers > 0")
        return given.expand(-1, B).sort(0, descending=True).values
    if not (float(n_lams).is_integer() and n_lams >= 1):
        raise InputError(f"n_lams is {n_lams}; expected a whole number >= 1")
    if not 0 < eps <= 1:
        raise InputError(f"eps is {eps}; expected a number in (0, 1], such as 1e-3")
    # Data that no column explains have lam_max = 0, and a penalty must be positive.
    top = _lam_max(problem, _null_point(problem)).clamp(min=torch.finfo(problem.dtype).resolution)
    powers = torch.linspace(0, 1, int(n_lams), dtype=problem.dtype, device=problem.device)
    return top * eps ** powers[:, None]


def _lam_max(problem: Problem, x: Tensor) -> Tensor:
    """lam_max from a minimiser x over the unpenalised coordinates."""
    r, g = problem.r, problem.f.grad(x)
    free = r.free()
    if free is not None:
        g = torch.where(free, 0.0, g)  # zero but for rounding
    # The largest feasible scaling at a lam below lam_max is lam / lam_max; it is never above 1.
    small = g.abs().amax(-1) * torch.finfo(g.dtype).eps
    small = torch.where(small > 0, small, 1.0)
    bound = L1(small, r.weights) if isinstance(r, ElasticNet) else replace(r, lam=small)  # type: ignore[type-var]
    scale = bound.dual_scale(g)
    return torch.where(scale < 1, small / scale, torch.zeros_like(scale))


def _null_point(problem: Problem) -> Tensor:
    """The minimiser of f over the unpenalised coordinates, (B, n), the others at 0."""
    x = torch.zeros(problem.batch, problem.n, dtype=problem.dtype, device=problem.device)
    free = problem.r.free()
    if free is None:
        return x
    f = problem.f
    if not isinstance(f, GLM):
        raise InputError(f"unpenalised coordinates need a linear model, not {type(f).__name__}")
    free = free.expand_as(x)
    where = free.any(0).nonzero()[:, 0]
    units = torch.zeros(len(where), *x.shape, dtype=x.dtype, device=x.device)
    units[torch.arange(len(where)), :, where] = free[:, where].T.to(x.dtype)
    columns = [f.predict(unit) for unit in units]
    Z = torch.stack(columns, 1).flatten(2)  # (B, k, m)
    w = x.new_zeros(len(x), len(where))
    shape = columns[0].shape

    def at(w: Tensor) -> Tensor:
        return (w[:, None] @ Z)[:, 0].reshape(shape)

    value = f.loss(at(w))
    for _ in range(NEWTON_STEPS):
        u = f.dloss(at(w))
        HZ = torch.stack([f.hessian_product(u, z) for z in columns], 1).flatten(2)
        slopes = Z @ u.flatten(1)[:, :, None]
        step = -(pseudo_inverse(Z @ HZ.mT) @ slopes)[:, :, 0]
        size = torch.ones_like(value)
        for _ in range(20):
            uphill = f.loss(at(w + size[:, None] * step)) > value
            if not bool(uphill.any()):
                break
            size = torch.where(uphill, 0.5 * size, size)
        moved = w + torch.where(uphill, 0.0, size)[:, None] * step
        new = f.loss(at(moved))
        settled = bool((value - new <= torch.finfo(x.dtype).eps * value.abs()).all())
        w, value = moved, new
        if settled:
            break
    x[:, where] = w
    return x


def _usable(point: Solution, last: Tensor) -> Tensor:
    """The solution as the next start, (B, n); the last start where it is not finite."""
    x = point.x.reshape(last.shape)
    return torch.where(x.isfinite().all(-1, keepdim=True), x, last)
