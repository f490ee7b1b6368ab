"""Polish: where the active set has nearly settled, solve on it.

On the coordinates where r is smooth around x (its non-zeros for l1, the inside of a box) F is
minimised by Newton's method; for least squares one step is exact. A coordinate that would cross a
kink stays on it. Then one product with A^T tells how good the point is, and which coordinates the
gradient pushes off their kinks; those join for another round, fewer of them where that did not
lower F. F never rises, so that from any point this is an active-set method for the whole problem.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from proxlearn.problems.batch import select
from proxlearn.problems.penalties.base import Piece
from proxlearn.problems.problem import Problem
from proxlearn.problems.smooth import GLM, Evaluation, LeastSquares, Logistic
from proxlearn.solving.newton import CG_STEPS, DROPS, HALVINGS, STEPS, grow, newton, newton_cg

__all__ = [
    "DROPS",
    "HALVINGS",
    "LARGEST",
    "ROUNDS",
    "STEPS",
    "Polished",
    "can_polish",
    "estimate",
    "is_direct",
    "polish",
]

ROUNDS = 40
"""Looks at the whole gradient."""
LARGEST = 1500
"""Free coordinates up to which the Newton system is formed; above it conjugate gradients."""


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
    if not is_direct(problem, int(free.max())):
        return torch.full_like(k, CG_STEPS)
    systems = 1 if isinstance(f, LeastSquares) else 2
    return 1 + systems * (f.A.shape[0] * k**2 / 2 + k**3 / 6) / (2 * f.A.entries)


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
    room = torch.full_like(at_work, problem.n)
    for _ in range(ROUNDS):
        part = problem.select(at_work)
        piece, entered = _entering(part, start, g, room)
        if is_direct(part, int(piece.free.sum(-1).max())):
            support, grown = grow(part, piece, support)
            left = most[at_work] - best.cost[at_work]
            x, spent = newton(part, start, piece, support, tol, left)
            spent = spent + grown + 0.5  # of the look: A x is known from the columns, A^T u is not
        else:
            x, spent = newton_cg(part, start, piece, tol)
            spent = spent + 1
        new = _look(part, x, best.cost[at_work] + spent)
        better = new.objective < best.objective[at_work]
        best = _updated(best, new, at_work, better)
        gap = best.objective[at_work] - best.lower[at_work]
        room = torch.where(better, problem.n, _less(entered))
        unsolved = (gap > part.allowed_gap(tol, best.objective[at_work])) & (room > 0)
        local = (unsolved & (new.cost <= most[at_work])).nonzero()[:, 0]
        if not len(local):
            break
        at_work, room = at_work[local], room[local]
        start, g = best.x[at_work], best.at.grad[at_work]
        support = None if support is None else select(support, local)
    return best


def _entering(problem: Problem, x: Tensor, g: Tensor, room: Tensor) -> tuple[Piece, Tensor]:
    """The piece at x with at most `room` (B,) coordinates that enter, the most pushed ones.

    Also how many they are, (B,).
    """
    piece, still = problem.r.piece(x, g), problem.r.piece(x, torch.zeros_like(g))
    assert piece is not None
    assert still is not None
    enters = piece.free & ~still.free
    push = torch.where(enters, (g + piece.slope).abs(), 0.0)
    place = push.argsort(-1, descending=True).argsort(-1)
    enters = enters & (place < room[:, None])
    return piece._replace(free=still.free | enters), enters.sum(-1)


def _less(entered: Tensor) -> Tensor:
    """How many may enter after a round that did not help; none where one was too many."""
    return torch.where(entered > 1, (entered // 4).clamp(min=1), 0)


def is_direct(problem: Problem, free: int) -> bool:
    """Whether Newton systems of so many coordinates are formed."""
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
