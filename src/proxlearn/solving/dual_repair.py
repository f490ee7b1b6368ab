"""Dual points that are made feasible: lower bounds behind operators that come much earlier.

A dual point u of 1/2 |A x - b|^2 + lam |x|_1 has to satisfy |A^T u| <= lam in every coordinate.
Let e be what A^T u exceeds lam by. The usual way divides u by the worst violation, which falls
slowly long after F(x) is near its optimum. A repair moves u instead, so that 1/2 |e|^2 falls, by
conjugate gradients (Polak and Ribiere) whose step is exact while the same coordinates exceed lam.
The gradient is A e, preconditioned by (I + gamma A A^T)^-1 where that has a closed form
(`Operator.implicit_residual`). What is left of the violation is divided out as before.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from proxlearn.problems.problem import Problem
from proxlearn.problems.smooth import Evaluation
from proxlearn.solving.dual_points import DualAverage, bound_of, exact_bound

# The numbers behind the constants are geometric means of gradients to a certified gap of 1e-3 with
# the shipped rules, on six validation pictures a family, three of 64x64 and three of 128x128
# (2026-11-19). While the others were chosen FIRST was 30.
STEPS = 8
"""The most steps of a repair; each costs as much as a gradient. With 4, 6, 8 and 12: 47.3, 47.2,
43.3 and 43.4 behind Fourier samples, and 88.4, 89.2, 90.0 and 90.0 behind masks."""
GAMMA = 1e4
"""gamma |A|^2 of the preconditioner. With 1e2, 1e3, 1e4, 1e5 and 1e6: 26.4, 21.5, 20.3, 20.2 and
20.4 behind blurs, and the same behind Fourier samples and masks."""
SLOW = 0.85
"""A repair ends when two steps leave more than this of the gap. With 0.7, 0.85 and 0.95: 48.8, 43.3
and 43.4 behind Fourier samples, 86.0, 90.0 and 92.1 behind masks."""
FIRST = 10.0
"""The first repair is tried when the gap is this many times what is allowed. With 10, 15 and 20:
21.4, 21.6 and 20.4 behind blurs, 40.4, 41.5 and 43.8 behind Fourier samples, 86.4, 92.3 and 88.2
behind masks, 78.3, 81.4 and 81.5 behind rays."""
LEAST, MOST = 0.25, 0.8
"""A repair from the gap G to G' is tried again where G is `allowed` / G' of what it was, but this
ratio is kept between `LEAST` and `MOST`. With 0.1 or 0.5, and with 0.65 or 0.9, the four numbers
changed by at most 7 %."""
SHARE = 0.25
"""Of the iterations so far that many may be spent on repairs before another one begins. With 0.15,
0.25 and 0.4: 46.7, 43.3 and 44.3 behind Fourier samples."""


class Point(NamedTuple):
    """Dual points with what they prove."""

    u: Tensor
    """(B, m)"""
    g: Tensor
    """A^T u, (B, n)."""
    bound: Tensor
    """The lower bound on F*, (B,)."""


class DualRepair:
    """When the dual points of a run are repaired: where that may end an instance's solve."""

    def __init__(self, like: Tensor, batch: int) -> None:
        self.within = like.new_full((batch,), FIRST)
        """Gaps relative to the allowed ones up to which a repair is tried, (b,)."""
        self.spent = torch.zeros(batch, dtype=torch.int64, device=like.device)
        """Steps so far, (b,)."""

    def due(self, k: int, gap: Tensor, allowed: Tensor) -> Tensor:
        """Instances whose repair is tried at iteration k where a point has this gap, (b,)."""
        return (gap > allowed) & (gap <= self.within * allowed) & (self.spent <= SHARE * k)

    def repair(
        self, problem: Problem, start: Point, upper: Tensor, allowed: Tensor, local: Tensor
    ) -> tuple[Point, Tensor]:
        """The best points found from those of the instances `local`, and the steps taken."""
        start = Point(*(t[local] for t in start))
        upper, allowed = upper[local], allowed[local]
        chosen = problem.select(local)
        best, steps = repaired(chosen, start, upper, allowed)
        if start.u.dtype == torch.float64:  # g was updated in many steps: the proof has its own
            best = best._replace(bound=exact_bound(chosen, best.u))
            steps = steps + 1
        before, after = upper - start.bound, upper - best.bound
        factor = (allowed / after.clamp(min=0)).clamp(LEAST, MOST)
        self.within[local] = factor * before / allowed
        self.spent[local] += steps
        return best, steps

    def select(self, local: Tensor) -> None:
        """Keep the instances `local` alone."""
        self.within, self.spent = self.within[local], self.spent[local]


def better_of(problem: Problem, at: Evaluation, mean: DualAverage) -> Point:
    """The last dual point or the mean of them, whichever proves more."""
    assert at.dual is not None
    assert mean.u is not None
    assert mean.g is not None
    last = Point(at.dual, at.grad, problem.lower_bound(at))
    other = Point(mean.u, mean.g, mean.bound(problem))
    return _chosen(other.bound > last.bound, other, last)


def repaired(
    problem: Problem, start: Point, upper: Tensor, allowed: Tensor
) -> tuple[Point, Tensor]:
    """The best of at most `STEPS` points from `start`, and how many were looked at, (B,).

    An instance ends as soon as the gap to `upper` (B,) is at most `allowed` (B,).
    """
    level = problem.r.level()
    assert level is not None
    best = now = start
    along, along_g = torch.zeros_like(start.u), torch.zeros_like(start.g)
    last_e, last_size = torch.zeros_like(start.g), torch.zeros_like(start.g[:, :1])
    gaps = [upper - start.bound]
    working = torch.ones_like(upper, dtype=torch.bool)
    steps = torch.zeros_like(working, dtype=torch.int64)
    for _ in range(STEPS):
        e = now.g - now.g.clamp(-level, level)
        du, dg = _preconditioned(problem, e)
        size = _dot(e, dg)  # <A e, du>
        turn = (size - _dot(last_e, dg)) / last_size
        turn = torch.where((turn > 0) & turn.isfinite(), turn, 0.0)  # at first it is infinite
        along, along_g = du + turn * along, dg + turn * along_g
        last_e, last_size = e, size
        step = _dot(e, along_g) / (along_g * (e != 0)).square().sum(-1, keepdim=True)
        u, g = now.u - step * along, now.g - step * along_g
        now = Point(u, g, bound_of(problem, u, g))
        best = _chosen(working & (now.bound > best.bound), now, best)
        steps += working
        gaps.append(upper - best.bound)
        working = working & (gaps[-1] > allowed)
        if len(gaps) > 2:
            working = working & (gaps[-1] <= SLOW * gaps[-3])
        if not bool(working.any()):
            break
    return best, steps


def _chosen(those: Tensor, yes: Point, no: Point) -> Point:
    """The points `yes` of the instances `those` (B,), and `no` of the others."""
    u, g = (torch.where(those[:, None], a, b) for a, b in ((yes.u, no.u), (yes.g, no.g)))
    return Point(u, g, torch.where(those, yes.bound, no.bound))


def _preconditioned(problem: Problem, e: Tensor) -> tuple[Tensor, Tensor]:
    """du = (I + gamma A A^T)^-1 A e and A^T du, or du = A e where there is no closed form."""
    f = problem.f.as_glm()
    assert f is not None
    nothing = e.new_zeros(len(e), f.A.shape[0])
    found = f.A.implicit_residual(e, nothing, GAMMA * problem.safe_step())
    if found is not None:
        return found
    du = f.A.forward(e)
    return du, f.A.adjoint(du)


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(-1, keepdim=True)
