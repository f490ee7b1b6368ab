"""When a polish is worth an attempt, and what it found."""

from typing import NamedTuple

import torch
from torch import Tensor

from proxlearn.problems.problem import Problem
from proxlearn.solving.polish import Polished, can_polish, estimate, is_direct, polish

PROMISING = 0.3
"""Relative gap below which a polish is worth an attempt."""
SETTLED = 8
"""The active set has nearly settled when at most one coordinate in this many has changed."""
FIRST_WAIT = 4
"""Iterations after a failed attempt; after each further one twice as many, or a quarter of all."""
SHARE, FREE = 0.5, 3
"""All attempts together cost at most this part of the iterations, and so many gradients more."""
OVERDRAFT = 2
"""An attempt ends when it has cost this many times what was expected."""
PATIENCE = 30
"""Iterations after which attempts no longer wait for the active set to settle."""
BLOCK = 64
"""Instances that are polished at a time."""


class Found(NamedTuple):
    """What an attempt found for some instances of the batch."""

    rows: Tensor
    """Their positions in the batch, (b,)."""
    x: Tensor
    """(b, n), in the precision of the problem."""
    objective: Tensor
    """F(x) in float64, (b,)."""
    lower: Tensor
    """A lower bound on F* in float64, (b,)."""
    residual: Tensor
    """Length of the prox-gradient map, (b,)."""
    cost: Tensor
    """In gradients, (b,)."""


class Attempts:
    """For every instance of a batch: its last active set, and when to try next.

    An attempt that was not enough goes on, the next time, from the point `kept` that it found, as
    long as F is lower there (`best`) than at the iterate.
    """

    def __init__(self, problem: Problem):
        shape, device = (problem.batch, problem.n), problem.device
        self.possible = can_polish(problem)
        self.free = torch.zeros(shape, dtype=torch.bool, device=device)
        self.next = torch.full((problem.batch,), 3, device=device)
        self.wait = torch.full((problem.batch,), FIRST_WAIT, device=device)
        self.spent = torch.zeros(problem.batch, dtype=torch.float64, device=device)
        self.budget = torch.zeros(problem.batch, dtype=torch.float64, device=device)
        self.kept = torch.zeros(shape, dtype=problem.dtype, device=device)
        self.best = torch.full_like(self.spent, torch.inf)

    def due(
        self, problem: Problem, x: Tensor, gap: Tensor, index: Tensor, k: int, gradients: int
    ) -> Tensor:
        """Instances whose active set has nearly settled, and where an attempt is not too dear.

        x (b, n) is that of the instances `index` of the batch after k iterations, `gap` (b,) the
        relative gap. After `PATIENCE` iterations an attempt waits for neither, and may cost all
        that is left.
        """
        piece = problem.r.piece(x, torch.zeros_like(x))
        assert piece is not None
        changed = (piece.free != self.free[index]).sum(-1)
        self.free[index] = piece.free
        count = piece.free.sum(-1)
        late = k >= PATIENCE and is_direct(problem, int(count.max()))
        ready = (late | (SETTLED * changed <= count)) & (count > 0) & (self.next[index] <= k)
        if not bool(ready.any()):
            return ready
        cost = estimate(problem, count)
        left = SHARE * k * gradients + FREE - self.spent[index]
        self.budget[index] = left if late else OVERDRAFT * cost
        return ready & (cost <= left) & (late | (gap <= PROMISING) | gap.isinf())

    def start(self, x: Tensor, upper: Tensor, rows: Tensor) -> Tensor:
        """Where to start from: x with F(x) <= upper, or the point of the last attempt if better."""
        return torch.where((self.best[rows] < upper)[:, None], self.kept[rows], x)

    def failed(self, found: Found, those: Tensor, k: int) -> None:
        """Wait longer before the next attempt of these instances."""
        rows = found.rows[those]
        self.spent[rows] += found.cost[those]
        self.next[rows] = k + self.wait[rows].clamp(max=max(k // 4, 8))
        self.wait[rows] *= 2
        F = found.objective[those]
        # A point from which an attempt could not get further is not worth another one.
        self.best[rows] = torch.where(self.best[rows] > F, F, torch.inf)
        self.kept[rows] = found.x[those]


def attempt(problem: Problem, x: Tensor, rows: Tensor, tol: float, budget: Tensor) -> list[Found]:
    """Polish the instances of a problem, which are `rows` of a batch, in blocks."""
    found = []
    for part in torch.arange(len(rows), device=rows.device).split(BLOCK):
        some = problem.select(part)
        result = polish(some, x[part], tol, budget[part])
        found.append(_found(some, result, rows[part]))
    return found


def _found(problem: Problem, result: Polished, rows: Tensor) -> Found:
    exact = problem.to(torch.float64)
    x, objective, cost = result.x.to(problem.dtype), result.objective, result.cost
    at = result.at
    if problem.dtype != torch.float64:  # the answer is the rounded point
        objective, cost = exact.objective(x.double()), cost + 0.5
        if problem.r.level() is None:  # no gap: the residual may decide
            at, cost = exact.f.evaluate(x.double()), cost + 0.5
    residual = exact.rounded_residual(at)
    return Found(rows, x, objective, result.lower, residual, cost.ceil().to(torch.int64))
