"""`solve` with its answer as tensors, for tests that compare it with other tensors."""

from dataclasses import replace

import torch

import proxlearn as pl
from proxlearn.solving.solution import History


def solve(problem, *arguments, **options):
    solution = pl.solve(problem, *arguments, **options)
    history = solution.history
    if history is not None:
        parts = (history.objective, history.gap, history.grad_evals, history.seconds)
        history = History(*(torch.as_tensor(part) for part in parts))
    names = ("x", "objective", "gap", "iterations", "grad_evals")
    tensors = {name: torch.as_tensor(getattr(solution, name)) for name in names}
    return replace(solution, history=history, **tensors)
