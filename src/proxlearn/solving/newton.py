"""Newton's method on some coordinates, which stay on the kinks of r that they reach.

For least squares one step is exact. The system is formed from the columns of the coordinates, or
solved by conjugate gradients.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from proxlearn.problems.penalties.base import Piece
from proxlearn.problems.problem import Problem
from proxlearn.problems.smooth import GLM, LeastSquares

STEPS = 6
"""Newton steps between two looks at the whole gradient, each with a Hessian of its own."""
DROPS = 12
"""The same for least squares, whose Hessian does not change: all but the first drop coordinates."""
CG_STEPS = 40
HALVINGS = 4
"""Of a Newton step that goes uphill."""


@dataclass(frozen=True)
class Support:
    """Coordinates that were free once, padded to K, with their columns."""

    index: Tensor
    """(B, K)"""
    listed: Tensor
    """False where it is padding, (B, K)."""
    columns: Tensor
    """(B, K, m), zero where it is padding."""
    gram: Tensor
    """(B, K, K)"""

    def mask(self, like: Tensor) -> Tensor:
        """Which of the n coordinates are listed, (B, n)."""
        counts = torch.zeros(like.shape, dtype=torch.int8, device=like.device)
        return counts.scatter_add(1, self.index, self.listed.to(torch.int8)) > 0


def grow(problem: Problem, piece: Piece, old: Support | None) -> tuple[Support, Tensor]:
    """The support with the free coordinates that it lacks, and what adding them costs."""
    f, missing = problem.f, piece.free
    assert isinstance(f, GLM)
    if old is not None:
        missing = missing & ~old.mask(missing)
    counts = missing.sum(-1)
    k = max(int(counts.max()), 1 if old is None else 0)
    index = missing.to(torch.int8).argsort(stable=True, dim=-1, descending=True)[:, :k]
    listed = missing.gather(1, index)
    gathered = f.A.gather(index)
    assert gathered is not None
    columns = gathered * listed[:, :, None]
    more, before = counts.double(), counts.double() * 0
    gram = columns @ columns.mT
    if old is not None:
        before = old.listed.sum(-1).double()
        across = old.columns @ columns.mT
        top, bottom = torch.cat([old.gram, across], 2), torch.cat([across.mT, gram], 2)
        gram, columns = torch.cat([top, bottom], 1), torch.cat([old.columns, columns], 1)
        index = torch.cat([old.index, index], 1)
        listed = torch.cat([old.listed, listed], 1)
    work = f.A.shape[0] * (more**2 / 2 + more * before)
    if not isinstance(f, LeastSquares):  # whose Gram matrix is weighted, and counted where it is
        work = work * 0
    return Support(index, listed, columns, gram), work / (2 * f.A.entries)


def newton(
    problem: Problem, x: Tensor, piece: Piece, support: Support, tol: float, budget: Tensor
) -> tuple[Tensor, Tensor]:
    """Minimise F over the free coordinates, on their columns alone; the point and its cost."""
    f, index, columns = problem.f, support.index, support.columns
    assert isinstance(f, GLM)

    def at_index(t: Tensor) -> Tensor:
        return t.expand_as(x).gather(1, index)

    live, w = at_index(piece.free) & support.listed, at_index(x) * support.listed
    lower, upper = at_index(piece.lower), at_index(piece.upper)
    slope, curvature = at_index(piece.slope), at_index(piece.curvature)
    outside = torch.where(support.mask(x), 0.0, x)
    base = f.predict(outside) if bool((outside != 0).any()) else 0.0
    size = live.sum(-1).double()
    products, hessians, factors = (torch.zeros_like(size) for _ in range(3))
    working = torch.ones_like(size, dtype=torch.bool)

    def value(w: Tensor) -> tuple[Tensor, Tensor]:
        z = (w[:, None] @ columns)[:, 0] + base
        return z, f.loss(z) + ((slope + 0.5 * curvature * w) * w * live).sum(-1)

    z, F = value(w)
    quadratic, gram = isinstance(f, LeastSquares), support.gram
    for _ in range(DROPS if quadratic else STEPS):
        u = f.dloss(z)
        slopes = ((columns @ u[:, :, None])[:, :, 0] + slope + curvature * w) * live
        if not quadratic:
            gram = columns @ (columns * f.hessian_product(u, torch.ones_like(u))[:, None]).mT
            hessians += working
        step = _solve(gram, curvature, slopes, live, 1e-13 if quadratic else 1e-9)
        moved, pinned, tried = _searched(w, step, live, lower, upper, F, value, quadratic)
        w, live = torch.where(working[:, None], moved, w), live & ~(pinned & working[:, None])
        products, factors = products + (1 + tried) * working, factors + working
        z, F = value(w)
        small = -(step * slopes).sum(-1) <= 0.02 * tol * F.abs()
        working = working & (pinned.any(-1) | ~(small | quadratic)) & F.isfinite()
        working = working & (hessians * f.A.shape[0] * size**2 / (4 * f.A.entries) <= budget)
        if not bool(working.any()):
            break
    m = f.A.shape[0]
    work = hessians * m * size**2 / 2 + products * m * size + factors * size**3 / 6
    work = work if isinstance(base, float) else work + f.A.entries
    return outside.scatter_add(1, index, w * support.listed), work / (2 * f.A.entries)


def _searched(
    w: Tensor,
    step: Tensor,
    live: Tensor,
    lower: Tensor,
    upper: Tensor,
    F: Tensor,
    value: Callable[[Tensor], tuple[Tensor, Tensor]],
    quadratic: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """A point on the way from w to w + step where F is lower, who is pinned there, and the tries.

    On the way coordinates stay on the kinks that they reach. The last resort is the first kink:
    up to there F is smooth, and a Newton step leads downhill.
    """

    def along(t: Tensor) -> tuple[Tensor, Tensor]:
        moved = w + t * step
        out = live & ((moved < lower) | (moved > upper))
        return torch.where(live, torch.minimum(torch.maximum(moved, lower), upper), w), out

    t, tried = torch.ones_like(F), torch.ones_like(F)
    moved, pinned = along(t[:, None])
    doubtful = pinned.any(-1) if quadratic else torch.ones_like(t, dtype=torch.bool)
    for _ in range(HALVINGS):
        doubtful = doubtful & ~(value(moved)[1] <= F + 1e-14 * F.abs()) & step.isfinite().all(-1)
        if not bool(doubtful.any()):
            return moved, pinned, tried
        t, tried = torch.where(doubtful, 0.5 * t, t), tried + doubtful
        moved, pinned = along(t[:, None])
    reach = torch.where(step < 0, (lower - w) / step, (upper - w) / step)
    reach = torch.where(live & (step != 0), reach, torch.inf)
    first = reach.amin(-1).clamp(max=1)
    last = doubtful & ~(value(moved)[1] <= F + 1e-14 * F.abs())
    t = torch.where(last, torch.minimum(first, t) if not quadratic else first, t)
    moved, pinned = along(t[:, None])
    return moved, pinned | (live & last[:, None] & (reach <= t[:, None])), tried + last


def _solve(gram: Tensor, curvature: Tensor, slopes: Tensor, live: Tensor, ridge: float) -> Tensor:
    """The Newton step -H^-1 slopes on the live coordinates, zero on the others; NaN if singular."""
    both = live[:, :, None] & live[:, None, :]
    diagonal = torch.where(live, curvature, 1.0)
    H = torch.where(both, gram, 0.0) + torch.diag_embed(diagonal)
    largest = gram.diagonal(dim1=1, dim2=2).amax(-1)[:, None, None]
    eye = torch.eye(H.shape[1], dtype=H.dtype, device=H.device)
    factor, failed = torch.linalg.cholesky_ex(H + ridge * largest * eye)
    step = torch.cholesky_solve(-slopes[:, :, None], factor)[:, :, 0]
    return torch.where((failed == 0)[:, None], step, torch.nan)


def newton_cg(problem: Problem, x: Tensor, piece: Piece, tol: float) -> tuple[Tensor, Tensor]:
    """The same with conjugate gradients, for operators and losses whose Hessian is not formed."""
    f = problem.f
    assert isinstance(f, GLM)
    live, w = piece.free, x
    cost = torch.zeros(len(x), dtype=torch.float64, device=x.device)
    working = torch.ones_like(cost, dtype=torch.bool)
    while bool(working.any()):
        at = f.evaluate(w)
        assert at.dual is not None
        slopes = (at.grad + piece.slope + piece.curvature * w) * live * working[:, None]
        step, used = _conjugate_gradients(f, at.dual, piece.curvature, live, -slopes)
        cost = cost + used + 1.0 * working
        moved = w + step
        pinned = live & ((moved < piece.lower) | (moved > piece.upper))
        moved = torch.minimum(torch.maximum(moved, piece.lower), piece.upper)
        w = torch.where(live & working[:, None], moved, w)
        live = live & ~pinned
        scale = (at.value + problem.r.value(w)).abs()
        small = -(step * slopes).sum(-1) <= 0.02 * tol * scale
        working = working & (pinned.any(-1) | ~small) & w.isfinite().all(-1)
        working = working & (cost < CG_STEPS)
    return w, cost


def _conjugate_gradients(
    f: GLM, dual: Tensor, curvature: Tensor, live: Tensor, b: Tensor
) -> tuple[Tensor, Tensor]:
    """v with (Hessian + curvature) v = b on the live coordinates, to a hundredth of |b|.

    Returns v (B, n) and the steps that each instance took, (B,).
    """
    v, r, p = torch.zeros_like(b), b, b
    rr = r.square().sum(-1, keepdim=True)
    target, tiny = 1e-4 * rr, torch.finfo(b.dtype).tiny
    used = torch.zeros(len(b), dtype=torch.float64, device=b.device)
    for _ in range(CG_STEPS):
        working = rr > target
        if not bool(working.any()):
            break
        Hp = f.pull(f.hessian_product(dual, f.predict(p))) * live + curvature * p
        alpha = rr / (p * Hp).sum(-1, keepdim=True).clamp(min=tiny)
        alpha = torch.where(working, alpha, 0.0)
        v, r = v + alpha * p, r - alpha * Hp
        new = r.square().sum(-1, keepdim=True)
        p, rr = torch.where(working, r + new / rr.clamp(min=tiny) * p, p), new
        used = used + working[:, 0]
    return v, used
