"""Starts in PyTorch: a few iterations of any optimizer, from which the compiled core goes on."""

import time
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from proxlearn import optimizers
from proxlearn.core.starts import MOST
from proxlearn.exact import solve_exactly
from proxlearn.first_order import iterate, most_iterations
from proxlearn.optimizers import Optimizer
from proxlearn.problem import Problem
from proxlearn.solution import Solution
from proxlearn.tensors import as_tensor, start_point


@torch.no_grad()
def solve_from_start(
    problem: Problem,
    optimizer: str | Optimizer,
    tol: float,
    max_iter: int,
    x0: Any,
    time_limit: float | None,
    safeguard: bool,
    threads: int | None,
) -> Solution:
    """Solve a problem of the core, begun by an optimizer that the core itself cannot run.

    The optimizer takes at most `MOST` iterations, which count as those of `solve` do. A start that
    did not lower F is dropped, for each instance by itself. The answer is in tensors.
    """
    began = time.perf_counter()
    method = optimizers.get(optimizer)
    first = start_point(problem, x0)
    most = min(MOST, max_iter, most_iterations(method) or MOST)
    start = iterate(
        problem, method, tol=tol, max_iter=most, x0=first, time_limit=time_limit,
        safeguard=safeguard,
    )  # fmt: skip
    seconds = time.perf_counter() - began
    left = max_iter - int(start.iterations.max())
    if start.solved or left == 0 or (time_limit is not None and seconds >= time_limit):
        return start
    x = _lowered(problem, start.x.reshape(first.shape), start.objective, first)
    remaining = None if time_limit is None else time_limit - seconds
    end = solve_exactly(problem, x, tol, left, remaining, threads)
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
