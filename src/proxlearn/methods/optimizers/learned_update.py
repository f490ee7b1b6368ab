"""Learned optimizers outside the scheme: a network turns subgradients into updates."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from proxlearn.checks import check_choice, check_seed, check_size
from proxlearn.errors import InputError
from proxlearn.methods.optimizers.optimizer import SubgradientState, refuse_constraints
from proxlearn.methods.rules.coefficient_network import Hidden
from proxlearn.methods.rules.learned_rule import Learnable
from proxlearn.methods.rules.lstm import STARTS, Lstm
from proxlearn.methods.scheme import Stepwise
from proxlearn.problems.problem import Problem
from proxlearn.problems.smooth import Evaluation


@dataclass(frozen=True)
class NetworkSettings:
    """Units and layers of the LSTM, and its initial state."""

    hidden: int = 20
    layers: int = 2
    start: str = "zero"
    """Initial hidden state: 'zero'; 'gaussian', the same draw for every instance; or 'fresh', as in
    the paper's code, a draw of its own for every instance (see `Lstm.start`)."""
    start_seed: int = 0
    start_scale: float = 1.0
    """Standard deviation of the Gaussian initial state."""

    def __post_init__(self) -> None:
        check_size("hidden", self.hidden, 256)
        check_size("layers", self.layers, 8)
        check_choice("start", self.start, STARTS)
        check_seed(self.start_seed)
        if not self.start_scale >= 0:
            raise InputError(f"setting start_scale is {self.start_scale}; expected at least 0")


INPUT_LAYERS = ("none", "elu")


@dataclass(frozen=True)
class LayeredSettings(NetworkSettings):
    """The same with or without a layer before the LSTM."""

    input_layer: str = "none"
    """'none': the inputs go to the LSTM unchanged. 'elu': as RNNprop was published, by Lv et al.
    and in the paper's code, a linear layer with ELU makes `hidden` features of them first."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("input_layer", self.input_layer, INPUT_LAYERS)


class LearnedUpdate(Learnable, Stepwise):
    """x+ = x + u, where a network chooses u from a subgradient g of F at x.

    g is a constant to the training, as the authors of these methods have it: no second
    derivatives of F.
    """

    Settings = NetworkSettings
    name: str
    gradients = 1

    def optimizer(self) -> "LearnedUpdate":
        """Return the object itself, which is an optimizer."""
        return self

    cells: Lstm

    @abstractmethod
    def start(self, x0: Tensor, hidden: Hidden) -> Any:
        """The memory before the first iteration, with the LSTM's initial state."""

    @abstractmethod
    def forward(self, g: Tensor, x: Tensor, k: int, memory: Any) -> tuple[Tensor, Any]:
        """The update u (B, n) of iteration k = 0, 1, ..., and the memory for the next one."""

    def init(self, problem: Problem, x0: Tensor) -> SubgradientState:
        """The state before the first iteration."""
        refuse_constraints(self.name, problem)
        s = self.settings
        hidden = self.cells.start(s.start, problem, x0, s.start_seed, s.start_scale)
        return SubgradientState(x0, 0, None, self.start(x0, hidden))

    def point(self, state: SubgradientState) -> Tensor:
        """Where the next iteration evaluates f."""
        return state.x

    def advance(
        self, problem: Problem, state: SubgradientState, at: Evaluation
    ) -> SubgradientState:
        """One iteration, with f evaluated at x already."""
        g = at.grad + problem.r.subgrad(state.x)
        u, memory = self.forward(g.detach(), state.x, state.k, state.memory)
        return SubgradientState(state.x + u.to(state.x.dtype), state.k + 1, at, memory)
