"""Better lower bounds behind operators: a dual point is moved into the feasible set, not shrunk.

The dual of 1/2 |A x - b|^2 + lam |x|_1 maximises -1/2 |u|^2 - <u, b> over the u with
|A^T u| <= lam in every coordinate. The residual u = A y - b of an iterate violates some of these
conditions a little. The usual bound multiplies u by the largest s <= 1 that satisfies all of them,
so that the worst of thousands of coordinates decides. A repair lowers the violations themselves:

    v = the part of A^T u beyond lam,   d = A (v / c),   u <- u - d <v, v/c> / |d|^2,

a gradient step on half the squared violation with Polyak's step length, for its least value is 0,
and c the mean curvature of each band. What is left after a few steps is small, and s is close to 1.
Every step costs the two products of a gradient, so that repairs are only tried where F has
nearly stopped falling.
"""

import torch
from torch import Tensor

from proxlearn.methods.rules.banded import band_curvatures, groups, spread
from proxlearn.problems.problem import Problem
from proxlearn.problems.smooth import Evaluation

STEPS = 6
"""Most steps of a repair. On photographs behind masks and Fourier samples ten steps certified a gap
of 1e-3 hardly earlier than five (64x64, validation pictures, 2026-11-18)."""
FIRST = 20
"""The iteration from which on repairs are tried."""
RECENT = 0.8
"""F has nearly stopped falling if it fell by at most `FALL` times the tolerance since this part of
the iterations."""
FALL = 3.0
"""Multiple of the tolerance; a smaller decrease of F counts as nearly none, see `RECENT`."""
WAIT, LONG_WAIT = 6, 3
"""The next repair comes after this part of the iterations so far, a sixth, or a third where the
last one gained less than `GAIN`."""
GAIN = 0.8
"""A repair has gained something if the gap fell to less than this part of what it was."""
USEFUL = 0.95
"""A repair goes on while its last step took the gap of some instance to less than this part."""
SHARE = 0.1
"""All repairs of an instance together cost at most this part of its iterations, and one repair."""


POWER = 4
"""The k-th dual point has a weight of about k^(POWER - 1) in the mean of them. On ten validation
pictures of 64x64 behind masks and Fourier samples Douglas-Rachford needs 64 iterations (geometric
mean) to a gap of 1e-3 with 4, 67 with 8 and 76 without the mean, with the best of four gammas for
each (2026-11-18)."""
MEAN_EVERY = 2
"""Iterations between looks at the bound of the mean."""


class DualAverage:
    """A running mean of the dual points u and of A^T u of a run, (b, m) and (b, n).

    Iterates swing around the optimum, their violations of the dual conditions too, and in a mean
    they cancel. The weights grow with the iteration, so that early points are forgotten.
    """

    def __init__(self) -> None:
        self.u: Tensor | None = None
        self.g: Tensor | None = None

    def add(self, k: int, e: Evaluation) -> None:
        """Add the dual points of iteration k = 1, 2, ... to the mean."""
        assert e.dual is not None
        if self.u is None or self.g is None:
            self.u, self.g = e.dual, e.grad
            return
        weight = POWER / (k - 1 + POWER)
        self.u, self.g = self.u.lerp(e.dual, weight), self.g.lerp(e.grad, weight)

    def bound(self, problem: Problem) -> Tensor:
        """The lower bound on F* that the mean proves, (b,)."""
        assert self.u is not None
        assert self.g is not None
        return _bound(problem, self.u, self.g)

    def select(self, local: Tensor) -> None:
        """Keep the instances `local` alone."""
        if self.u is not None and self.g is not None:
            self.u, self.g = self.u[local], self.g[local]


class BestDual:
    """Of each instance the dual point with the largest lower bound so far, in float32.

    In float64 a bound is a proof, and the number is enough. What a bound in float32 proves is
    known once the point is evaluated in float64, perhaps many iterations later.
    """

    def __init__(self, problem: Problem) -> None:
        like = problem.f.like
        self.bound = like.new_full((problem.batch,), -torch.inf)
        self.u = like.new_zeros(problem.batch, 1)

    def offer(self, bound: Tensor, u: Tensor | None) -> None:
        """Keep the points u (b, m) whose bounds (b,) are larger."""
        assert u is not None
        better = bound > self.bound  # a bound that is not a number is not
        if bool(better.any()):
            self.u = torch.where(better[:, None], u, self.u)
            self.bound = torch.where(better, bound, self.bound)

    def prove(self, problem: Problem, local: Tensor) -> Tensor:
        """The bounds in float64 of the points `local`, (b,), which replace those in float32."""
        proven = exact_bound(problem.select(local), self.u[local])
        self.bound = self.bound.index_put((local,), proven.to(self.bound.dtype))
        return proven

    def select(self, local: Tensor) -> None:
        """Keep the instances `local` alone."""
        self.u, self.bound = self.u[local], self.bound[local]


class Repairs:
    """For every instance of a batch: when the next repair is due."""

    def __init__(self, problem: Problem, tol: float):
        f, r = problem.f.as_glm(), problem.r
        self.applies = (
            f is not None
            and f.scales_with_target
            and r.is_l1
            and r.free() is None
            and not f.A.explicit
            and f.A.shape[1] == problem.n
        )
        self.possible = self.applies and tol > 0
        self.tol, self.problem = tol, problem
        self.next = torch.full((problem.batch,), FIRST, device=problem.device)
        self.spent = torch.zeros_like(self.next)
        self.seen: list[Tensor] = []
        self.curvature: Tensor | None = None

    def due(self, k: int, index: Tensor, upper: Tensor) -> Tensor:
        """Which instances `index` a repair may help, (b,), from upper bounds on F(x), (b,)."""
        last = self.seen[-1] if self.seen else upper.new_full((self.problem.batch,), torch.inf)
        best = last.clone()
        best[index] = torch.minimum(last[index], torch.where(upper.isnan(), torch.inf, upper))
        self.seen.append(best)
        before, now = self.seen[int(RECENT * (len(self.seen) - 1))][index], best[index]
        flat = before - now <= FALL * self.tol * now.abs()
        return flat & (self.next[index] <= k) & (self.spent[index] <= SHARE * k)

    def bound(
        self, problem: Problem, e: Evaluation, rows: Tensor, upper: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The best lower bound on F* found from the dual points of e, in float64, and its cost.

        `problem`, `e` and `upper` are those of the instances `rows` of the batch. The cost is in
        gradients; the first repair of an instance counts the gradient that the curvatures take.
        """
        if self.curvature is None:
            self.curvature = band_curvatures(self.problem)[0].double()
        c = spread(self.curvature[rows], groups(problem))
        assert e.dual is not None
        allowed = problem.allowed_gap(self.tol, upper).double()
        if problem.dtype == torch.float64:
            exact, u, g, rounded = problem, e.dual, e.grad, 0
        else:
            exact, u, rounded = problem.to(torch.float64), e.dual.double(), 1
            g = exact.f.A.adjoint(u)  # type: ignore[attr-defined]
        bound, cost = repaired_bound(exact, u, g, c, upper.double(), allowed)
        cost = cost + rounded + (self.spent[rows] == 0)
        self.spent[rows] += cost
        return bound, cost

    def done(self, k: int, rows: Tensor, before: Tensor, after: Tensor) -> None:
        """Set when the next repair is due, from the gaps (b,) before and after this one."""
        wait = torch.where(after < GAIN * before, max(5, k // WAIT), max(10, k // LONG_WAIT))
        self.next[rows] = k + wait


def repaired_bound(
    problem: Problem, u: Tensor, g: Tensor, c: Tensor, upper: Tensor, allowed: Tensor
) -> tuple[Tensor, Tensor]:
    """Lower bounds on F* from dual points u (B, m), (B,), and their cost in gradients, (B,).

    g = A^T u, (B, n); c, (B, n), are the curvatures. The steps of an instance end when `upper`
    minus its bound is at most `allowed`, (B,) each, or when the last one hardly helped, whatever
    the others do.
    """
    A = problem.f.A  # type: ignore[attr-defined]
    one = u.new_ones(1, 1)
    best = u.new_full((len(u),), -torch.inf)
    active = torch.ones_like(best, dtype=torch.bool)
    cost = torch.zeros_like(active, dtype=torch.int64)
    for _ in range(STEPS + 1):
        bound = _bound(problem, u, g)
        useful = upper - bound < USEFUL * (upper - best)
        best = torch.where(active & (bound > best), bound, best)
        active = active & useful & (upper - best > allowed) & (cost < STEPS)
        if not bool(active.any()):
            break
        v = problem.r.prox(g, one)  # for a norm, the part outside its dual ball
        w = v / c
        d = A.forward(w)
        square = d.square().sum(-1, keepdim=True)
        length = (v * w).sum(-1, keepdim=True) / torch.where(square > 0, square, 1.0)
        u = torch.where(active[:, None], u - length * d, u)
        g = A.adjoint(u)
        cost = cost + active
    return best, cost


def exact_bound(problem: Problem, dual: Tensor) -> Tensor:
    """The lower bound on F* in float64 of dual points (B, m) of another precision, (B,).

    It costs a product with A^T. Minus infinity where it is not a number.
    """
    exact = problem.to(torch.float64)
    u = dual.double()
    bound = _bound(exact, u, exact.f.A.adjoint(u))  # type: ignore[attr-defined]
    return torch.where(bound.isnan(), -torch.inf, bound)


def _bound(problem: Problem, u: Tensor, g: Tensor) -> Tensor:
    """The lower bound on F* of dual points u (B, m) with g = A^T u, (B,)."""
    return problem.lower_bound(Evaluation(g, u.new_zeros(len(u)), g, u))
