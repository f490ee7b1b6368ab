"""Subgradient descent with a diminishing step."""

from dataclasses import dataclass

from torch import Tensor

from proxlearn.methods.optimizers.optimizer import (
    SubgradientState,
    follow_subgradient,
    refuse_constraints,
)
from proxlearn.problems.problem import Problem


@dataclass(frozen=True)
class Subgradient:
    """``x+ = x - scale/(L sqrt(k + 1)) g`` with g a subgradient of F at x."""

    scale: float = 1.0

    gradients = 1

    def init(self, problem: Problem, x0: Tensor) -> SubgradientState:
        refuse_constraints("subgradient", problem)
        return SubgradientState(x0, 0, None, problem.safe_step())

    def step(self, problem: Problem, state: SubgradientState) -> SubgradientState:
        at, g = follow_subgradient(problem, state.x)
        x = state.x - self.scale / (state.k + 1) ** 0.5 * state.memory * g
        return SubgradientState(x, state.k + 1, at, state.memory)
