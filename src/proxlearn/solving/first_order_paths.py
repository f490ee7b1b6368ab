"""Regularisation paths in PyTorch, for the problems that the compiled core does not cover."""

import time
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.methods.optimizers import Optimizer
from proxlearn.problems.certificates import pseudo_inverse
from proxlearn.problems.penalties import L1, ElasticNet, GroupL1, Penalty, SparseGroupL1
from proxlearn.problems.problem import Problem
from proxlearn.problems.smooth import GLM
from proxlearn.problems.tensors import start_point
from proxlearn.solving.first_order import iterate
from proxlearn.solving.solution import Solution, SolutionPath

NEWTON_STEPS = 50
"""On the unpenalised coordinates; least squares needs one, an intercept of a logistic model few."""


@torch.no_grad()
def iterate_path(
    problem: Problem, optimizer: str | Optimizer, lams: Tensor, x0: Any, **options: Any
) -> SolutionPath:
    """Solve for each of lams (K, B), which fall, from the solution of the one before."""
    began = time.perf_counter()
    x = null_point(problem) if x0 is None else start_point(problem, x0)
    points: list[Solution] = []
    for lam in lams:
        point = iterate(problem.replaced(r=with_lam(problem.r, lam)), optimizer, x0=x, **options)
        x = _usable(point, x)
        points.append(point)
    return SolutionPath(
        lams=lams[:, 0] if problem.single else lams,
        x=torch.stack([p.x for p in points]),
        objective=torch.stack([p.objective for p in points]),
        gap=torch.stack([p.gap for p in points]),
        status=tuple(p.status for p in points),
        iterations=torch.stack([p.iterations for p in points]),
        grad_evals=torch.stack([p.grad_evals for p in points]),
        seconds=time.perf_counter() - began,
    )


@torch.no_grad()
def largest_lam(problem: Problem) -> Tensor:
    """The smallest lam for which every penalised coordinate of the solution is zero, (B,)."""
    require_lam(problem.r)
    return _lam_max(problem, null_point(problem))


def with_lam(r: Penalty, lam: Tensor) -> Penalty:
    """The same penalty with another lam (B,); an elastic net keeps its ratio lam2 / lam."""
    require_lam(r)
    if isinstance(r, ElasticNet):
        return replace(r, lam=lam, lam2=lam * (r.lam2 / r.lam))
    return replace(r, lam=lam)  # type: ignore[type-var]


def require_lam(r: Penalty) -> None:
    if not isinstance(r, (L1, ElasticNet, GroupL1, SparseGroupL1)):
        raise InputError(
            f"the penalty {type(r).__name__} has no lam to vary; expected l1, elastic net, group l1"
        )
    if bool((r.lam <= 0).any()):
        raise InputError("lam is 0, so its ratio to lam2 is unknown; expected an elastic net > 0")


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


def null_point(problem: Problem) -> Tensor:
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
