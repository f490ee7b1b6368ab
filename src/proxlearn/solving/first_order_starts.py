"""Solves that begin in the loop in PyTorch and end elsewhere: in the compiled core, or in float64.

A start in the loop is a few iterations of any optimizer, from which the core goes on. A problem in
float32 that the core does not cover begins in float32 and ends in float64.
"""

import time
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from proxlearn.core.starts import MOST
from proxlearn.methods import optimizers
from proxlearn.methods.optimizers import Optimizer
from proxlearn.methods.optimizers.optimizer import most_iterations
from proxlearn.problems.certificates import length
from proxlearn.problems.problem import Problem
from proxlearn.problems.tensors import as_tensor, start_point
from proxlearn.solving.exact import solve_exactly
from proxlearn.solving.first_order import LoopSettings, iterate
from proxlearn.solving.solution import Solution, Status

SINGLE = 1e-4
"""Relative gap that iterations in float32 certify; the rounding of x allows about 1e-5."""


@torch.no_grad()
def solve_from_start(
    problem: Problem,
    optimizer: str | Optimizer,
    settings: LoopSettings,
    x0: Any,
    threads: int | None,
) -> Solution:
    """Solve a problem of the core, begun by an optimizer that the core itself cannot run.

    The optimizer takes at most `MOST` iterations, which count as those of `solve` do. A start that
    did not lower F is dropped, for each instance by itself. The answer is in tensors.
    """
    began = time.perf_counter()
    method = optimizers.get(optimizer)
    first = start_point(problem, x0)
    most = min(MOST, settings.max_iter, most_iterations(method) or MOST)
    start = iterate(problem, method, replace(settings, max_iter=most), first)
    rest = _rest(settings, start, began)
    if start.solved or rest.max_iter == 0 or rest.time_limit == 0:
        return start
    x = _lowered(problem, start.x.reshape(first.shape), start.objective, first)
    end = solve_exactly(problem, x, settings.tol, rest.max_iter, rest.time_limit, threads)
    return replace(
        end,
        iterations=start.iterations + as_tensor(end.iterations),
        grad_evals=start.grad_evals + as_tensor(end.grad_evals),
        seconds=time.perf_counter() - began,
    )


def _lowered(problem: Problem, x: Tensor, objective: Tensor, first: Tensor) -> Tensor:
    """x where F(x), the given objectives (B,), is below F of the first points, else those."""
    lower = objective <= problem.objective(first)
    return torch.where(lower[:, None], x, first)


def _rest(settings: LoopSettings, start: Solution, began: float) -> LoopSettings:
    """The settings with the iterations and the time that a start has left."""
    left = settings.max_iter - int(start.iterations.max())
    if settings.time_limit is None:
        return replace(settings, max_iter=left)
    seconds = max(settings.time_limit - (time.perf_counter() - began), 0.0)
    return replace(settings, max_iter=left, time_limit=seconds)


def needs_double(problem: Problem, tol: float) -> bool:
    """True where float32 is too coarse to certify the tolerance."""
    return problem.dtype == torch.float32 and 0 < tol < SINGLE


@torch.no_grad()
def iterate_in_double(
    problem: Problem, optimizer: str | Optimizer, settings: LoopSettings, x0: Any
) -> Solution:
    """Iterate in float32 down to `SINGLE`, then in float64; the answer is rounded to float32.

    The lower bound on F* of the second part certifies the rounded point; without a gap, what
    counts is the prox-gradient map at the rounded point.
    """
    began = time.perf_counter()
    start = iterate(problem, optimizer, replace(settings, tol=SINGLE), x0)
    tol, rest = settings.tol, _rest(settings, start, began)
    exact = problem.to(torch.float64)
    first = start.x.reshape(problem.batch, -1)
    first = torch.where(first.isfinite(), first, 0.0).double()
    end = iterate(exact, optimizer, replace(rest, tol=0.5 * tol), first)
    x = end.x.reshape(problem.batch, -1).to(problem.dtype)
    c = exact.certificate(x.double(), residual=True)
    gap = torch.fmin(c.gap, (c.objective - (end.objective - end.gap)).clamp(min=0))
    assert c.residual is not None
    small = c.residual <= tol * length(exact.f.grad(torch.zeros_like(first)))
    met = torch.where(gap.isfinite(), gap <= exact.allowed_gap(tol, c.objective), small)
    return replace(
        end,
        x=x.reshape(start.x.shape),
        objective=c.objective,
        gap=gap,
        status=tuple(
            Status.MAX_ITER if old == Status.SOLVED and not holds else old
            for old, holds in zip(end.status, met.tolist(), strict=True)
        ),
        iterations=start.iterations + end.iterations,
        grad_evals=start.grad_evals + end.grad_evals,
        seconds=time.perf_counter() - began,
    )
