"""Working sets for wide problems: solve on a few columns, certify on all of them.

At a solution of an l1-type problem most coordinates are zero, and a problem without their columns
has the same solution. So a few columns are chosen, the small problem is solved, and one full
gradient gives the certificate of the whole problem and tells which columns were missing. Columns
that cannot be in any solution (gap-safe screening) are never looked at again.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from proxlearn.arrays import start_point
from proxlearn.penalties import L1, ElasticNet
from proxlearn.problem import Problem
from proxlearn.smooth import LeastSquares, Logistic
from proxlearn.solution import Solution, Status

WIDE = 5000
"""Columns from which working sets are used."""
FIRST = 100
"""Columns to begin with, besides those of the start's non-zeros."""
SHARE = 0.1
"""The small problem is solved to this part of the whole problem's gap, or of the tolerance's."""


@dataclass(frozen=True)
class Part(Problem):
    """A problem on some of the columns of another; it is solved as it is."""


def suits(problem: Problem) -> bool:
    """True for one wide problem whose solution is sparse and whose columns can be taken out."""
    f, r = problem.f, problem.r
    return (
        problem.n > WIDE
        and not isinstance(problem, Part)
        and problem.batch == 1
        and isinstance(f, (LeastSquares, Logistic))
        and isinstance(r, (L1, ElasticNet))
        and bool((r.lam > 0).all())
        and f.A.columns(torch.zeros(1, dtype=torch.int64, device=problem.device)) is not None
    )


def restricted(problem: Problem, index: Tensor) -> Part:
    """The problem on the coordinates `index` (k,), the others at zero."""
    f, r = problem.f, problem.r
    assert isinstance(f, (LeastSquares, Logistic))
    assert isinstance(r, (L1, ElasticNet))
    weights = None if r.weights is None else r.weights[:, index]
    A = f.A.columns(index)
    assert A is not None
    return Part(replace(f, A=A), replace(r, weights=weights), single=True)


@torch.no_grad()
def solve_working_set(
    problem: Problem,
    inner: Callable[..., Solution],
    tol: float,
    max_iter: int,
    x0: Tensor | None = None,
    time_limit: float | None = None,
) -> Solution:
    """Solve a problem that `suits`, the small problems by `inner`, called as `solve`.

    `grad_evals` counts an iteration on k columns by their share of A's entries, and every look at
    all columns as one gradient.
    """
    run = _Run(problem, start_point(problem, x0))
    status = Status.MAX_ITER
    while not run.solved(tol):
        left = None if time_limit is None else time_limit - run.seconds()
        if left is not None and left <= 0:
            status = Status.TIME_LIMIT
            break
        if run.iterations >= max_iter or run.stuck:
            break
        part = run.grown()
        small = inner(
            part,
            tol=max(run.tighter * SHARE * min(run.relative_gap(), 1.0), 0.01 * tol),
            max_iter=max_iter - run.iterations,
            x0=run.x[:, run.index],
            time_limit=left,
        )
        status = small.status[0] if not small.solved else Status.MAX_ITER
        run.take(part, small)
        if status == Status.NUMERICAL_ERROR:
            break
    return run.solution(tol, status)


class _Run:
    """The state of such a solve: the point, its bounds, the working set, the columns in play."""

    def __init__(self, problem: Problem, x: Tensor):
        self.began = time.perf_counter()
        self.whole, self.exact = problem, problem.to(torch.float64)
        self.x = x
        f = problem.f
        assert isinstance(f, (LeastSquares, Logistic))
        # In float64: a norm or a lam w that is rounded to float32 could screen a column wrongly.
        assert isinstance(self.exact.f, (LeastSquares, Logistic))
        norms, level = self.exact.f.A.column_norms(), self.exact.r.level()
        assert norms is not None
        assert level is not None
        self.entries, self.norms = f.A.entries, norms[0]
        self.level = level.expand(1, problem.n)[0]
        self.always = self.level == 0
        self.alive = torch.ones(problem.n, dtype=torch.bool, device=problem.device)
        self.index = torch.empty(0, dtype=torch.int64, device=problem.device)
        self.lower = -math.inf
        self.iterations, self.cost = 0, 0.5  # the norms
        self.tighter, self.stuck = 1.0, False
        self._look()

    def seconds(self) -> float:
        return time.perf_counter() - self.began

    def _look(self) -> None:
        """One gradient of the whole problem: bounds, and the columns that can be given up."""
        f, r, x = self.exact.f, self.exact.r, self.x.double()
        e = f.evaluate(x)
        self.cost += 1
        self.objective, self.grad = float(e.value + r.value(x)), e.grad[0]
        dual = self.exact.balanced(e)
        scale = r.dual_scale(dual.grad)
        lower = -float(f.conjugate(dual, scale) + r.conjugate(-scale[:, None] * dual.grad))
        if math.isfinite(lower):
            self.lower = max(self.lower, lower)
            self._screen(scale * dual.grad[0], self.objective - lower)

    def _screen(self, correlation: Tensor, gap: float) -> None:
        """Gap-safe rule: the dual solution lies in a ball around the dual point u.

        The dual function is strongly concave with modulus 1/c, c bounding the loss's curvature,
        so the ball's radius is sqrt(2 c gap), and x_j is 0 in every solution where
        |a_j^T u| + radius ||a_j|| < lam w_j.
        """
        f = self.whole.f
        curvature = 1.0
        if isinstance(f, Logistic):
            curvature = 0.25 if f.root is not None else 0.25 / f.m
        # Rounding of the gap must not make the ball too small.
        rounding = 1e3 * torch.finfo(torch.float64).eps * abs(self.objective)
        radius = math.sqrt(2 * curvature * (max(gap, 0.0) + rounding))
        self.alive &= correlation.abs() + radius * self.norms >= self.level

    def relative_gap(self) -> float:
        size = abs(self.objective)
        gap = self.objective - self.lower
        return gap / size if size > 0 else (0.0 if gap <= 0 else math.inf)

    def solved(self, tol: float) -> bool:
        """True where the certificate, in float64, meets the tolerance."""
        allowed = self.exact.allowed_gap(tol, self.exact.at_zero.new_tensor([self.objective]))
        return self.objective - self.lower <= float(allowed)

    def grown(self) -> Part:
        """The problem on a working set with the worst missing columns, at most twice as large."""
        chosen = torch.zeros_like(self.alive)
        chosen[self.index] = True
        chosen = (chosen | (self.x[0] != 0) | self.always) & self.alive
        most = max(FIRST, int(chosen.sum()))
        violation = torch.where(self.alive & ~chosen, self.grad.abs() - self.level, -torch.inf)
        missing = int((violation > 0).sum())
        if missing == 0:
            # All that is left is the small problem's own gap.
            self.tighter *= 0.1 if len(self.index) else 1.0
            self.stuck = self.tighter < 1e-6
        worst = violation.topk(min(most, max(missing, 1), len(violation))).indices
        chosen[worst] = True
        self.index = chosen.nonzero()[:, 0]
        return restricted(self.whole, self.index)

    def take(self, part: Part, small: Solution) -> None:
        """The small problem's answer as the new point, if it is one, and a look at it."""
        assert isinstance(part.f, (LeastSquares, Logistic))
        self.iterations += max(1, int(small.iterations))
        self.cost += float(small.grad_evals) * part.f.A.entries / max(self.entries, 1)
        if bool(small.x.isfinite().all()):
            self.x = torch.zeros_like(self.x).index_put(
                (torch.zeros_like(self.index), self.index), small.x
            )
            self._look()

    def solution(self, tol: float, unfinished: Status) -> Solution:
        """Certified on the whole problem in float64."""
        seconds = self.seconds()
        c = self.exact.certificate(self.x.double())
        c = replace(c, gap=torch.fmin(c.gap, (c.objective - self.lower).clamp(min=0)))
        allowed = self.exact.allowed_gap(tol, c.objective)
        holds = bool((c.gap <= allowed).all()) and bool(c.objective.isfinite())
        device = self.x.device
        return Solution(
            x=self.x[0] if self.whole.single else self.x,
            objective=c.objective,
            gap=c.gap,
            status=(Status.SOLVED if holds else unfinished,),
            iterations=torch.tensor([self.iterations], device=device),
            grad_evals=torch.tensor([math.ceil(self.cost)], device=device),
            seconds=seconds,
        )
