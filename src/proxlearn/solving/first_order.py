"""The loop in PyTorch: one for all optimizers, with stopping, statuses and certified answers."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from proxlearn.methods import optimizers
from proxlearn.methods.optimizers import Optimizer
from proxlearn.problems.batch import select
from proxlearn.problems.certificates import Certificate, length
from proxlearn.problems.powers import times_power
from proxlearn.problems.problem import Problem
from proxlearn.problems.tensors import start_point
from proxlearn.solving.dual_points import MEAN_EVERY, BestDual, DualAverage, averages
from proxlearn.solving.dual_repair import DualRepair, better_of
from proxlearn.solving.loop_methods import automatic_name, check_layers, is_learned
from proxlearn.solving.safeguard import Safeguarded, SafeState, looks
from proxlearn.solving.solution import History, Solution, Status
from proxlearn.solving.units import in_natural_units, restored, watched

COSTLY_CHECK_EVERY = 10
"""Iterations between looks at a lower bound that costs an extra product (unpenalised columns).

FISTA with restart took 35.8 and 59.3 gradients to gaps of 1e-3 and 1e-6 on simulated LASSO problems
of 150 x 200 with an unpenalised column, 65.9 and 143.7 on logistic ones. With 5 in place of 10 it
took 4 to 7 % more, with 1 it took 58 to 74 % more, with 20 it took 1 to 23 % more (2026-11-19)."""


@dataclass(frozen=True)
class Progress:
    """What a callback sees after each iteration: the instances still at work."""

    iteration: int
    index: Tensor
    """Positions of these instances in the batch, (b,)."""
    x: Tensor
    """(b, n)"""
    seconds: float


@dataclass(frozen=True)
class LoopSettings:
    """The arguments of `solve` that the loop needs."""

    tol: float
    max_iter: int
    time_limit: float | None = None
    safeguard: bool = True
    record: bool = False
    callback: Callable[[Progress], None] | None = None


@torch.no_grad()
def iterate(
    problem: Problem, optimizer: str | Optimizer, settings: LoopSettings, x0: Any = None
) -> Solution:
    """Solve with an optimizer, iteration by iteration: tensors in, tensors out. See `solve`."""
    natural = in_natural_units(problem)
    if natural is not None:
        scaled, units = natural
        start = times_power(start_point(problem, x0), -units.variable)
        if bool(start.isfinite().all()):
            inner = replace(settings, callback=watched(settings.callback, units))
            solution = iterate(scaled, optimizer, inner, start)
            return restored(solution, scaled, units, problem, settings.tol)
    method = optimizers.get(automatic_name(problem) if optimizer == "auto" else optimizer)
    if settings.safeguard and is_learned(method) and not problem.f.gradients_are_free:
        method = Safeguarded(method)
    else:
        check_layers(method, settings.max_iter)
    run = _Run(problem, method, start_point(problem, x0), settings.tol, settings.record)
    status = Status.MAX_ITER
    for _ in range(settings.max_iter):
        if settings.time_limit is not None and run.seconds() >= settings.time_limit:
            status = Status.TIME_LIMIT
            break
        run.step()
        working = run.working()
        if settings.callback is not None:
            settings.callback(Progress(run.k, working, run.x[working], run.seconds()))
        if not len(working):
            break
    return run.solution(status)


class _Run:
    """The mutable part of a solve: which instances are still at work, and the answers so far.

    `problem` and `state` hold the instances `index` of the whole batch. Those that ended are
    marked in `ended` at once, and leave the arrays once they are half of them: each time a copy
    of what remains, together less than one copy of the problem.
    """

    def __init__(self, problem: Problem, opt: Optimizer, x0: Tensor, tol: float, record: bool):
        self.began, self.paused = time.perf_counter(), 0.0
        self.whole, self.problem, self.optimizer, self.tol = problem, problem, opt, tol
        B, device = problem.batch, problem.device
        self.x = x0.clone()
        self.status: list[Status | None] = [None] * B
        self.iterations = torch.zeros(B, dtype=torch.int64, device=device)
        self.grad_evals = torch.zeros(B, dtype=torch.int64, device=device)
        self.index = torch.arange(B, device=device)
        self.ended = torch.zeros(B, dtype=torch.bool, device=device)
        self.state = opt.init(problem, x0)
        self.k = 0
        self.next_check = torch.zeros(B, dtype=torch.int64, device=device)
        self.wait = torch.ones(B, dtype=torch.int64, device=device)
        free = problem.r.free()
        self.costly = free is not None
        # It costs a product with each unpenalised column and one with A^T; two products count as
        # one gradient.
        self.look = 0 if free is None else (int(free.any(0).sum()) + 2) // 2
        self.lower = torch.full((B,), -torch.inf, dtype=torch.float64, device=device)
        self.averages = averages(problem)
        self.mean, self.best_dual = DualAverage(), BestDual(problem)
        self.repairs = DualRepair(x0, B)
        self.gradient = int(not problem.f.gradients_are_free)
        # Losses of A x with a penalty like l1 have a duality gap, which alone may end their solve.
        self.gapless = problem.f.as_glm() is None or problem.r.level() is None
        if tol > 0 and not bool((problem.nearest_to_zero() == 0).all()):
            self.grad_evals += self.gradient  # for F there, the scale where the optimum is 0
        self.rows: list[tuple[Tensor, Tensor, Tensor, float]] | None = [] if record else None
        self.exact = problem.to(torch.float64) if record else None
        self._record()

    def seconds(self) -> float:
        """Time spent on solving; recording pauses the clock."""
        return time.perf_counter() - self.began - self.paused

    def working(self) -> Tensor:
        """Positions of the instances still at work, (b,)."""
        return self.index[~self.ended]

    def step(self) -> None:
        """One iteration; then the instances that meet the tolerance or a limit end."""
        last = self.state.x
        self.state = self.optimizer.step(self.problem, self.state)
        self.k += 1
        self.iterations[self.working()] += 1
        self.grad_evals[self.working()] += self.optimizer.gradients
        upper = self._upper()
        broken = ~upper.isfinite() & ~self.ended
        x = torch.where(broken[:, None], last, self.state.x)
        self.x[self.working()] = x[~self.ended]
        self._end(broken, Status.NUMERICAL_ERROR)
        due = self.tol > 0 and (not self.costly or self.k % COSTLY_CHECK_EVERY == 0)
        looked = looks(self.k) if isinstance(self.state, SafeState) else due
        if looked:
            self.grad_evals[self.working()] += self.look
        if due:
            lower = self._lower()
            if self.averages:
                lower = self._repaired(upper, self._averaged(lower))
            self._end(self._verified(self._claimed(upper, lower) & ~self.ended), Status.SOLVED)
        self._record()
        if bool(self.ended.any()):
            self._shrink()

    def _upper(self) -> Tensor:
        """An upper bound on F(x), (b,)."""
        if isinstance(self.state, SafeState):
            return self.state.bound
        return self.problem.upper_bound(self.state.at, self.state.x)

    def _lower(self) -> Tensor:
        """The largest lower bound on F* so far, (b,); kept where it was computed in float64.

        An instance that has ended keeps the bound, and so the gap, with which it ended.
        """
        if isinstance(self.state, SafeState):
            lower = self.state.lower
        else:
            lower = self.problem.lower_bound(self.state.at)
        if lower.dtype == torch.float64:
            known = torch.where(lower.isnan() | self.ended, -torch.inf, lower)
            self.lower[self.index] = torch.maximum(self.lower[self.index], known)
        return torch.maximum(lower, self.lower[self.index].to(lower.dtype))

    def _averaged(self, lower: Tensor) -> Tensor:
        """The lower bounds, better ones where the mean of the dual points so far has them.

        In float32 they prove nothing yet; `_verified` computes the largest again in float64.
        """
        self.mean.add(self.k, self.state.at)
        if lower.dtype != torch.float64:
            # The safeguard's bound is the largest so far, of a point that is gone.
            new = self.problem.lower_bound(self.state.at)
            self.best_dual.offer(new, self.state.at.dual)
            if self.k % MEAN_EVERY == 0:
                self.best_dual.offer(self.mean.bound(self.problem), self.mean.u)
            kept = self.lower[self.index].to(lower.dtype)
            return torch.maximum(self.best_dual.bound, kept)
        if self.k % MEAN_EVERY:
            return lower
        bound = self.mean.bound(self.problem)
        bound = torch.where(bound.isnan() | self.ended, -torch.inf, bound)
        self.lower[self.index] = torch.maximum(self.lower[self.index], bound)
        return torch.maximum(lower, bound)

    def _repaired(self, upper: Tensor, lower: Tensor) -> Tensor:
        """The lower bounds, better ones where a repaired dual point has them, see `dual_repair`."""
        allowed = self.problem.allowed_gap(self.tol, upper)
        due = self.repairs.due(self.k, upper - lower, allowed) & ~self.ended
        if self.k % MEAN_EVERY or not bool(due.any()):
            return lower
        start = better_of(self.problem, self.state.at, self.mean)
        due = due & self.repairs.due(self.k, upper - start.bound, allowed)
        local = due.nonzero()[:, 0]
        if not len(local):
            return lower
        found, steps = self.repairs.repair(self.problem, start, upper, allowed, local)
        where = self.index[local]
        self.grad_evals[where] += steps
        if lower.dtype == torch.float64:
            self.lower[where] = torch.maximum(self.lower[where], found.bound)
        else:
            self.best_dual.offer_some(local, found.bound, found.u)
        return lower.index_put((local,), torch.maximum(lower[local], found.bound))

    def _end(self, those: Tensor, status: Status) -> None:
        for i in self.index[those].tolist():
            self.status[i] = status
        self.ended = self.ended | those

    def _shrink(self) -> None:
        local = (~self.ended).nonzero()[:, 0]
        if len(local) > len(self.ended) // 2:
            return
        self.index, self.ended = self.index[local], self.ended[local]
        if len(local):
            self.mean.select(local)
            self.repairs.select(local)
            self.best_dual.select(local)
            self.problem, self.state = self.problem.select(local), select(self.state, local)

    def _claimed(self, upper: Tensor, lower: Tensor) -> Tensor:
        """Instances whose free bounds say that they are solved, and whose next check is due."""
        gap = self.problem.gap(upper, lower)
        claimed = gap <= self.problem.allowed_gap(self.tol, upper)
        unknown = gap.isinf()
        if self.gapless and bool(unknown.any()):
            small = self.problem.residual(self.state.at) <= self.tol * self._scale[self.index]
            claimed = claimed | (unknown & small)
        return claimed & (self.next_check[self.index] <= self.k)

    @cached_property
    def _scale(self) -> Tensor:
        """||grad f(0)||, (B,), for one gradient; asked for only where no gap is known."""
        self.grad_evals += self.gradient
        return length(self.whole.f.grad(torch.zeros_like(self.x)))

    def _verified(self, claimed: Tensor) -> Tensor:
        """Claims that hold at x itself in float64; after a false one the next check comes later."""
        local = claimed.nonzero()[:, 0]
        if not len(local):
            return claimed
        where = self.index[local]
        if self.averages and self.problem.dtype != torch.float64:
            self._prove(local)
        holds = self._certify(self.problem.select(local), where)[1]
        self.grad_evals[where] += self.gradient + self.look
        failed = where[~holds]
        self.next_check[failed] = self.k + self.wait[failed]
        self.wait[failed] = (2 * self.wait[failed]).clamp(max=64)
        return claimed.index_put((local,), holds)

    def _prove(self, local: Tensor) -> None:
        """The bounds of the best dual points of the instances `local` again, in float64."""
        where = self.index[local]
        proven = self.best_dual.prove(self.problem, local)
        self.lower[where] = torch.maximum(self.lower[where], proven)
        self.grad_evals[where] += 1  # a product with A^T

    def _certify(self, problem: Problem, where: Tensor) -> tuple[Certificate, Tensor]:
        """The certificate at x of the instances `where`, and whether it meets the tolerance."""
        x = self.x[where]
        c = problem.certificate(x, residual=self.gapless)
        known = (c.objective - self.lower[where]).clamp(min=0)
        c = replace(c, gap=torch.fmin(c.gap, known))
        holds = (c.gap <= problem.allowed_gap(self.tol, c.objective)) & c.objective.isfinite()
        unknown = c.gap.isinf()
        if self.gapless and bool(unknown.any()):
            assert c.residual is not None
            small = c.residual <= self.tol * self._scale[where]
            holds = holds | (unknown & c.objective.isfinite() & small)
        return c, holds

    def _record(self) -> None:
        if self.rows is None or self.exact is None:
            return
        began = time.perf_counter()
        elapsed = began - self.began - self.paused
        c = self.exact.certificate(self.x.double())
        gap = torch.fmin(c.gap, (c.objective - self.lower).clamp(min=0))
        self.rows.append((c.objective, gap, self.grad_evals.clone(), elapsed))
        self.paused += time.perf_counter() - began

    def solution(self, unfinished: Status) -> Solution:
        """Everything certified; SOLVED is what meets the tolerance here, at the returned x."""
        seconds = self.seconds()
        self._take_best()
        unsure = (~self.ended).nonzero()[:, 0]
        if len(unsure) and bool(self.best_dual.bound[unsure].isfinite().all()):
            self._prove(unsure)
        everything = torch.arange(self.whole.batch, device=self.index.device)
        c, holds = self._certify(self.whole, everything)
        status = []
        for old, met in zip(self.status, holds.tolist(), strict=True):
            good = Status.SOLVED if met else unfinished
            status.append(old if old == Status.NUMERICAL_ERROR else good)
        return Solution(
            x=self.x[0] if self.whole.single else self.x,
            objective=c.objective,
            gap=c.gap,
            status=tuple(status),
            iterations=self.iterations,
            grad_evals=self.grad_evals,
            seconds=seconds,
            history=self._history(),
        )

    def _take_best(self) -> None:
        """Replace an x that misses the tolerance by the best point that the safeguard has seen."""
        local = (~self.ended).nonzero()[:, 0]
        if self.tol == 0 or not len(local) or not isinstance(self.state, SafeState):
            return
        problem, rows, best = self.problem.select(local), self.index[local], self.state.best[local]
        self.grad_evals[rows] += self.gradient  # two products with A
        there, at_x = problem.objective(best), problem.objective(self.x[rows])
        # Where the values differ by rounding alone the last x is kept: its dual point is better.
        better = there < at_x - 10 * torch.finfo(at_x.dtype).eps * at_x.abs()
        self.x[rows[better]] = best[better]

    def _history(self) -> History | None:
        if self.rows is None:
            return None
        objective, gap, grad_evals, seconds = zip(*self.rows, strict=True)
        return History(
            torch.stack(objective),
            torch.stack(gap),
            torch.stack(grad_evals),
            torch.tensor(seconds, dtype=torch.float64),
        )
