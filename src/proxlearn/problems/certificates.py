"""Certificates: how far a point can be from optimal, computed with PyTorch.

`Problem` has these functions as methods; they are here so that a problem needs no PyTorch.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from proxlearn.problems.problem import Problem
from proxlearn.problems.smooth import Evaluation


@dataclass(frozen=True)
class Certificate:
    """What is known about a point: its objective, and how far below it the optimum can lie."""

    objective: Tensor
    """F(x), (B,)."""
    gap: Tensor
    """An upper bound on F(x) - F*, (B,); infinite where none is known."""
    residual: Tensor | None = None
    """Length of the prox-gradient map with what rounding may hide of it, (B,), if asked for."""


def lower_bound(problem: Problem, e: Evaluation) -> Tensor:
    """F* >= -f*(s g) - r*(-s g) with g = grad f(y), (B,), from f evaluated at any point y.

    Fenchel duality. For generalised linear models with an l1-type penalty it is the usual
    dual value at the residual scaled into the feasible set by s; for bounded sets, where
    s = 1, it is the Frank-Wolfe bound f(y) + min_z <g, z - y>. For one-sided constraints the
    residual is first moved into the feasible set (`strictly_feasible`). Minus infinity where
    nothing is known.
    """
    e = strictly_feasible(problem, balanced(problem, e))
    s = problem.r.dual_scale(e.grad)
    return -problem.f.conjugate(e, s) - problem.r.conjugate(-s[:, None] * e.grad)


def nearest_to_zero(problem: Problem) -> Tensor:
    """The penalty's point nearest 0, where a solve starts by default, (B, n)."""
    zero = torch.zeros(problem.batch, problem.n, dtype=problem.dtype, device=problem.device)
    return problem.r.prox(zero, torch.ones_like(zero[:, :1]))


def at_zero(problem: Problem) -> Tensor:
    """F at the penalty's point nearest 0, (B,), the scale of an optimum of 0; 0 if infinite."""
    nearest = nearest_to_zero(problem)
    at = problem.f.value(nearest) if bool((nearest != 0).any()) else problem.f.value_at_zero()
    value = (at + problem.r.value(nearest)).double()
    return torch.where(value.isfinite(), value, 0.0)


def certificate(problem: Problem, x: Tensor, with_residual: bool) -> Certificate:
    """Objective and gap at x (B, n), in float64 whatever the problem's precision.

    With `with_residual` also the length of the prox-gradient map, from the same evaluation of f.
    Converts at most 64 instances at a time, so that memory stays bounded.
    """
    if problem.dtype == torch.float64:
        return _certificate(problem, x, with_residual)
    if problem.f.batch == 1:
        return _certificate(problem.to(torch.float64), x.double(), with_residual)
    parts = []
    for rows in torch.arange(len(x), device=x.device).split(64):
        exact = problem.select(rows).to(torch.float64)
        parts.append(_certificate(exact, x[rows].double(), with_residual))
    residuals = [c.residual for c in parts if c.residual is not None]
    return Certificate(
        torch.cat([c.objective for c in parts]),
        torch.cat([c.gap for c in parts]),
        torch.cat(residuals) if with_residual else None,
    )


def _certificate(problem: Problem, x: Tensor, with_residual: bool) -> Certificate:
    e = problem.f.evaluate(x)
    objective = e.value + problem.r.value(x)
    known = gap(problem, objective, lower_bound(problem, e))
    return Certificate(objective, known, rounded_residual(problem, e) if with_residual else None)


def gap(problem: Problem, objective: Tensor, lower: Tensor) -> Tensor:
    """F(x) - lower as a certified gap, (B,): >= 0, infinite where nothing is known.

    Losses of A x and penalties are never negative. So where F(x) is rounding against F(0), it
    is a gap itself, and better than what rounding leaves of other bounds.
    """
    known = (objective - lower).clamp(min=0)
    known = torch.where(known.isnan(), torch.inf, known)
    if problem.f.as_glm() is not None:
        tiny = objective <= problem.allowed_gap(0.0, objective)
        known = torch.where(tiny, torch.minimum(known, objective), known)
    return known


def residual(problem: Problem, e: Evaluation) -> Tensor:
    """Length of the prox-gradient map L (y - prox(y - grad f(y)/L)), (B,), at an evaluated y.

    Zero exactly at a minimiser; what stops a solve where no gap is known.
    """
    step = problem.safe_step()
    return length((e.point - problem.r.prox(e.point - step * e.grad, step)) / step)


def rounded_residual(problem: Problem, e: Evaluation) -> Tensor:
    """The same with what the rounding of y - grad f(y)/L may hide, (B,)."""
    hidden = torch.finfo(e.point.dtype).eps * length(e.point) / problem.safe_step()[:, 0]
    return residual(problem, e) + hidden


def strictly_feasible(problem: Problem, e: Evaluation) -> Evaluation:
    """The same evaluation with a dual point in the domain of r* where r is one-sided.

    Where x_j can go to infinity at no cost, r* is finite only if sides_j a_j^T u >= 0. With a
    direction v that satisfies this strictly, u' = s (u + theta v) does for the smallest theta
    that is large enough, and s is the multiple with the largest dual value. theta includes
    what rounding may take from a_j^T u, so that u' is feasible in exact arithmetic.
    """
    sides, f = problem.r.sides(), problem.f.as_glm()
    if sides is None or f is None or e.dual is None:
        return e
    sides = sides.to(e.grad).expand(-1, problem.n)
    direction = f.interior(sides)
    if direction is None:
        return e
    v, pulled, norms = (part.to(e.grad.dtype) for part in direction)
    u = e.dual.flatten(1)
    counts = (sides != 0) & (norms > 0)
    # Rounding errors of a dot product hardly ever add up: they are eps |a_j| |u| / sqrt(m) or
    # so. Where they may all have one sign, for m <= 8, four times eps |a_j| |u| is a bound.
    rounding = 4 * torch.finfo(u.dtype).eps
    needed = (rounding * length(u)[:, None] * norms - sides * e.grad) / (sides * pulled)
    theta = torch.where(counts, needed, 0.0).amax(-1, keepdim=True).clamp(min=0)
    moved = u + theta * v
    grad = e.grad + theta * pulled
    grad = torch.where(counts, sides * (sides * grad).clamp(min=0), grad)
    known = moved.isfinite().all(-1, keepdim=True)
    moved, grad = torch.where(known, moved, u), torch.where(known, grad, e.grad)
    moved = moved.reshape(e.dual.shape)
    if problem.r.indicator:
        s = f.best_multiple(moved, problem.r.conjugate(-grad))
        s = torch.where(known[:, 0], s, 1.0)
        grad = s[:, None] * grad
        moved = s.reshape(-1, *[1] * (moved.ndim - 1)) * moved
    return Evaluation(e.point, e.value, grad, moved)


def balanced(problem: Problem, e: Evaluation) -> Evaluation:
    """The same evaluation with a dual point that is orthogonal to the unpenalised columns.

    Where r ignores a coordinate (an intercept), r* is finite only if the gradient vanishes
    there exactly. One Newton step on those coordinates, in the dual: u' = u - H Z w with
    Z^T H Z w = Z^T u, H the Hessian of the loss and Z the columns. The step is exact, because the
    condition is linear.
    """
    free, f = problem.r.free(), problem.f.as_glm()
    if free is None or f is None or e.dual is None:
        return e
    free = free.expand(problem.batch, -1)
    index = free.any(0).nonzero()[:, 0]
    columns = []
    for j in index:
        unit = torch.zeros_like(e.grad)
        unit[:, j] = free[:, j].to(unit.dtype)
        column = f.predict(unit)
        # Every column has its own unit: columns of very different sizes are balanced one as well as
        # the other, and their squares stay in the range of the dtype.
        size = column.flatten(1).abs().amax(-1)
        size = torch.where(size > 0, size, 1.0)
        columns.append(column / size.reshape(-1, *[1] * (column.ndim - 1)))
    Z = torch.stack(columns, 1).flatten(2)  # (B, k, m)
    HZ = torch.stack([f.hessian_product(e.dual, z) for z in columns], 1).flatten(2)
    u = e.dual.flatten(1)
    inverse, dual = pseudo_inverse(Z @ HZ.mT), u
    for _ in range(2):  # the second step corrects the rounding of the first
        w = inverse @ (Z @ dual[:, :, None])
        dual = dual - (HZ.mT @ w)[:, :, 0]
    grad = f.pull(dual.reshape(e.dual.shape))
    # What is left on a free coordinate is rounding, if it is small against the products in it.
    left = (Z @ dual[:, :, None])[:, :, 0].abs()
    noise = 1e3 * torch.finfo(grad.dtype).eps * (Z.abs() @ dual.abs()[:, :, None])[:, :, 0]
    zero = torch.zeros_like(free)
    zero[:, index] = (left <= noise) & noise.isfinite() & free[:, index]
    grad = torch.where(zero, torch.zeros_like(grad), grad)
    return Evaluation(e.point, e.value, grad, dual.reshape(e.dual.shape))


def length(v: Tensor) -> Tensor:
    """||v||, (B,), of v (B, n), also where its square would leave the range of the dtype."""
    largest = v.abs().amax(-1, keepdim=True)
    scale = torch.where((largest > 0) & largest.isfinite(), largest, 1.0)
    norm: Tensor = (v / scale).norm(dim=-1) * scale[:, 0]
    return norm


def pseudo_inverse(M: Tensor) -> Tensor:
    """The pseudo-inverse of Hessians M (B, k, k) of unpenalised coordinates, 0 if M is not finite.

    Intercepts of several classes have a direction that changes nothing: what M has there is
    rounding, and is cut off, relative to M's diagonal as classes may weigh little.
    """
    M = M.nan_to_num(0, 0, 0)
    d = M.diagonal(dim1=1, dim2=2).clamp(min=0).sqrt()
    d = torch.where(d > 0, d, 1.0)
    d = d[:, :, None] * d[:, None, :]
    inverse: Tensor = torch.linalg.pinv(
        M / d, rtol=torch.finfo(M.dtype).eps ** 0.75, hermitian=True
    )
    return inverse / d
