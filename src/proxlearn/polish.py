"""Polish: where the active set has nearly settled, solve on it.

On the coordinates where r is smooth around x (its non-zeros for l1, the inside of a box) F is
minimised by Newton's method; for least squares one step is exact. A coordinate that would cross a
kink stays on it. Then one product with A^T tells how good the point is, and which coordinates the
gradient pushes off their kinks; those join for another round.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from proxlearn.batch import select
from proxlearn.penalties.base import Piece
from proxlearn.problem import Problem
from proxlearn.smooth import GLM, Evaluation, LeastSquares, Logistic

ROUNDS = 4
"""Looks at the whole gradient."""
STEPS = 6
"""Newton steps between two looks, each with a Hessian of its own."""
DROPS = 12
"""The same for least squares, whose Hessian does not change: all but the first drop coordinates."""
LARGEST = 1500
"""Free coordinates up to which the Newton system is formed; above it conjugate gradients."""
CG_STEPS = 40
HALVINGS = 4
"""Of a Newton step that goes uphill."""


@dataclass(frozen=True)
class Polished:
    """A polished point, in float64."""

    x: Tensor
    """(B, n)"""
    at: Evaluation
    """f there."""
    objective: Tensor
    """F(x), (B,)"""
    lower: Tensor
    """A lower bound on F*, (B,)"""
    cost: Tensor
    """Multiplications in units of a gradient's, (B,)"""


def can_polish(problem: Problem) -> bool:
    """True for generalised linear models with a penalty made of smooth pieces."""
    zero = torch.zeros(problem.batch, problem.n, dtype=problem.dtype, device=problem.device)
    return isinstance(problem.f, GLM) and problem.r.piece(zero, zero) is not None


def estimate(problem: Problem, free: Tensor) -> Tensor:
    """What an attempt with `free` (B,) coordinates costs at least, in gradients, (B,)."""
    f = problem.f
    assert isinstance(f, GLM)
    k = free.double()
    if not _direct(problem, int(free.max())):
        return torch.full_like(k, CG_STEPS)
    newton = 1 if isinstance(f, LeastSquares) else 2
    return 1 + newton * (f.A.shape[0] * k**2 / 2 + k**3 / 6) / (2 * f.A.entries)


@torch.no_grad()
def polish(problem: Problem, x: Tensor, tol: float, budget: Tensor | None = None) -> Polished:
    """The best point found from x (B, n); stops where the relative gap is at most `tol`.

    An instance whose cost has passed `budget` (B,) goes no further.
    """
    problem, x = problem.to(torch.float64), x.double()
    cost = torch.zeros(len(x), dtype=torch.float64, device=x.device)
    best = Polished(x, _nothing(x), cost + torch.inf, cost - torch.inf, cost)
    start, g, support = x, torch.zeros_like(x), None
    most = cost + torch.inf if budget is None else budget
    at_work = torch.arange(len(x), device=x.device)
    for _ in range(ROUNDS):
        part = problem.select(at_work)
        piece = part.r.piece(start, g)
        assert piece is not None
        if _direct(part, int(piece.free.sum(-1).max())):
            support, grown = _grown(part, piece, support)
            left = most[at_work] - best.cost[at_work]
            x, spent = _newton(part, start, piece, support, tol, left)
            spent = spent + grown + 0.5  # of the look: A x is known from the columns, A^T u is not
        else:
            x, spent = _newton_cg(part, start, piece, tol)
            spent = spent + 1
        new = _look(part, x, best.cost[at_work] + spent)
        better = new.objective < best.objective[at_work]
        best = _updated(best, new, at_work, better)
        gap = best.objective[at_work] - best.lower[at_work]
        unsolved = better & (gap > tol * new.objective.abs())
        local = (unsolved & (new.cost <= most[at_work])).nonzero()[:, 0]
        if not len(local):
            break
        at_work, start, g = at_work[local], new.x[local], new.at.grad[local]
        support = None if support is None else select(support, local)
    return best


def _direct(problem: Problem, free: int) -> bool:
    f = problem.f
    if not isinstance(f, (LeastSquares, Logistic)) or free > LARGEST:
        return False
    return f.A.gather(torch.zeros(1, 1, dtype=torch.int64, device=problem.device)) is not None


def _nothing(x: Tensor) -> Evaluation:
    return Evaluation(x, x[:, 0], torch.zeros_like(x))


def _look(problem: Problem, x: Tensor, cost: Tensor) -> Polished:
    at = problem.f.evaluate(x)
    objective = at.value + problem.r.value(x)
    lower = problem.lower_bound(at)
    lower = torch.where(lower.isnan(), -torch.inf, lower)
    return Polished(x, at, objective, lower, cost)


def _updated(best: Polished, new: Polished, rows: Tensor, better: Tensor) -> Polished:
    """`best` with the costs and bounds of `new` in `rows`, and its points where they are better."""
    good = rows[better]
    grad = best.at.grad.index_put((good,), new.at.grad[better])
    value = best.at.value.index_put((good,), new.at.value[better])
    x = best.x.index_put((good,), new.x[better])
    return Polished(
        x,
        Evaluation(x, value, grad),
        best.objective.index_put((good,), new.objective[better]),
        best.lower.index_put((rows,), torch.maximum(best.lower[rows], new.lower)),
        best.cost.index_put((rows,), new.cost),
    )


@dataclass(frozen=True)
class _Support:
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


def _grown(problem: Problem, piece: Piece, old: _Support | None) -> tuple[_Support, Tensor]:
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
    return _Support(index, listed, columns, gram), work / (2 * f.A.entries)


def _newton(
    problem: Problem, x: Tensor, piece: Piece, support: _Support, tol: float, budget: Tensor
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
        moved = w + step
        pinned = live & ((moved < lower) | (moved > upper))
        moved = torch.where(live, torch.minimum(torch.maximum(moved, lower), upper), w)
        for _ in range(0 if quadratic else HALVINGS):
            uphill = ~pinned.any(-1) & (value(moved)[1] > F)
            if not bool(uphill.any()):
                break
            moved = torch.where(uphill[:, None], 0.5 * (moved + w), moved)
            products += working & uphill
        w, live = torch.where(working[:, None], moved, w), live & ~(pinned & working[:, None])
        products, factors = products + 2 * working, factors + working
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


def _newton_cg(problem: Problem, x: Tensor, piece: Piece, tol: float) -> tuple[Tensor, Tensor]:
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
