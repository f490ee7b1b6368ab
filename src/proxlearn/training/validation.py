"""The validation score of a rule on one batch of problems."""

from typing import Any

import torch
from torch import Tensor

from proxlearn.methods.optimizers import Optimizer
from proxlearn.problems.problem import Problem
from proxlearn.problems.tensors import start_point
from proxlearn.solving.dual_points import DualAverage
from proxlearn.training.config import TrainConfig


def score(optimizer: Optimizer, config: TrainConfig, problem: Problem, optimum: Tensor) -> float:
    """The validation score of one batch."""
    state, logs = optimizer.init(problem, start_point(problem, None)), []
    objectives = []
    lower, mean = torch.full_like(optimum, -torch.inf), DualAverage()
    for k in range(1, config.horizon + 1):
        before, state = state, optimizer.step(problem, state)
        if config.score == "objective":
            if k > 1:
                objectives.append(_objective_before(problem, before, state).mean())
            continue
        if config.score == "certified-gap":
            mean.add(k, state.at)
            lower = torch.fmax(lower, problem.lower_bound(state.at))
            lower = torch.fmax(lower, mean.bound(problem))
        least = lower if config.score == "certified-gap" else optimum
        gap = (problem.objective(state.x) - least) / optimum
        gap = gap.nan_to_num(nan=10.0).clamp(1e-7, 10)
        each = config.loss in ("log-gap", "log-certified-gap")
        logs.append(gap.log10().mean() if each else gap.mean().log10())
    if config.score == "objective":
        objectives.append(problem.objective(state.y).mean())
        return float(torch.stack(objectives).mean().nan_to_num(nan=torch.inf).log10())
    return float(logs[-1] if config.score == "last-gap" else torch.stack(logs).mean())


def _objective_before(problem: Problem, before: Any, after: Any) -> Tensor:
    """F at the y of the state before a step, (B,): the step has mostly evaluated f there."""
    if after.at is None or after.at.point is not before.y:
        return problem.objective(before.y)
    value: Tensor = after.at.value + problem.r.value(before.y)
    return value
