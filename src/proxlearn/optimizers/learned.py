"""Learned optimizers outside the scheme: a network turns subgradients into updates."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from proxlearn.optimizers.base import SubgradientState, refuse_constraints
from proxlearn.problem import Problem
from proxlearn.rules.learned import Learnable, check_size
from proxlearn.smooth import Evaluation


@dataclass(frozen=True)
class NetworkSettings:
    """Units and layers of the LSTM."""

    hidden: int = 20
    layers: int = 2

    def __post_init__(self) -> None:
        check_size("hidden", self.hidden, 256)
        check_size("layers", self.layers, 8)


class LearnedUpdate(Learnable):
    """x+ = x + u, where a network chooses u from a subgradient g of F at x.

    g is a constant to the training, as the authors of these methods have it: no second
    derivatives of F.
    """

    Settings = NetworkSettings
    name: str
    gradients = 1

    def optimizer(self) -> "LearnedUpdate":
        """This is an optimizer itself."""
        return self

    @abstractmethod
    def start(self, x0: Tensor) -> Any:
        """The memory before the first iteration."""

    @abstractmethod
    def forward(self, g: Tensor, k: int, memory: Any) -> tuple[Tensor, Any]:
        """The update u (B, n) of iteration k = 0, 1, ..., and the memory for the next one."""

    def init(self, problem: Problem, x0: Tensor) -> SubgradientState:
        """The state before the first iteration."""
        refuse_constraints(self.name, problem)
        return SubgradientState(x0, 0, None, self.start(x0))

    def point(self, state: SubgradientState) -> Tensor:
        """Where the next iteration evaluates f."""
        return state.x

    def step(self, problem: Problem, state: SubgradientState) -> SubgradientState:
        """One iteration."""
        return self.advance(problem, state, problem.f.evaluate(state.x))

    def advance(
        self, problem: Problem, state: SubgradientState, at: Evaluation
    ) -> SubgradientState:
        """One iteration, with f evaluated at x already."""
        g = at.grad + problem.r.subgrad(state.x)
        u, memory = self.forward(g.detach(), state.k, state.memory)
        return SubgradientState(state.x + u.to(state.x.dtype), state.k + 1, at, memory)
