"""Base classes of everything that has weights and can be trained."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from proxlearn.core.starts import CompactStart
from proxlearn.methods.scheme import Coefficients, Scheme, Stepwise, View
from proxlearn.problems.problem import Problem

UNITS = ("lipschitz", "norm")
"""Names of the units of p; `unit_step` computes them."""


class Learnable(nn.Module, ABC):
    """Weights, and the settings from which they can be rebuilt; `optimizer` makes a method of them.

    `Settings` is a frozen dataclass of plain values; a checkpoint's card holds them. The module
    holds weights only: iterates and hidden states live in the optimizer's state.
    """

    Settings: ClassVar[type[Any]]

    window: ClassVar[int] = 10
    """Iterations after which the safeguard looks whether the weights make progress."""
    rate: ClassVar[float] = 0.6
    """The certified gap has to fall to this part over a window, or FISTA takes over."""

    def __init__(self, settings: Any, generator: torch.Generator | None = None):
        super().__init__()
        self.settings = settings

    @property
    def layers(self) -> int | None:
        """Most iterations it can take; None where there is no end."""
        return None

    @abstractmethod
    def optimizer(self) -> Stepwise:
        """The optimizer with these weights."""

    def core_start(self) -> CompactStart | None:
        """The same as a start of the compiled core; None where that cannot run it."""
        return None

    def __call__(self, *inputs: Any) -> Any:
        """Call `forward` without the hooks of nn.Module, which nothing here uses."""
        return self.forward(*inputs)


class LearnedRule(Learnable):
    """A rule with weights: it chooses the coefficients of the scheme."""

    looks_at = "y"

    @property
    def gradients(self) -> int:
        """Gradients an iteration."""
        return 1

    def optimizer(self) -> Scheme:
        """The scheme with this rule."""
        return Scheme(self)

    def differentiable(self) -> "LearnedRule":
        """The same rule with gradients through its inputs, for rules that detach them."""
        return self

    @abstractmethod
    def init(self, problem: Problem, x0: Tensor) -> Any:
        """The rule's memory before the first iteration."""

    @abstractmethod
    def forward(self, view: View, memory: Any) -> tuple[Coefficients, Any]:
        """The coefficients of this iteration, and the memory for the next one."""


def unit_step(problem: Problem, unit: str) -> Tensor:
    """The step that a learned p is a multiple of, (B, 1).

    'lipschitz' is 1/L. 'norm' is the unit of the paper's code: 1/||A|| for a logistic or softmax
    loss, whose L is ||A||^2/(4m) or ||A||^2/(2m), and 1/L = 1/||A||^2 for least squares.
    """
    model = problem.f.as_glm()
    if unit == "norm" and model is not None and model.has_labels:
        return (1 / model.A.norm()).expand(problem.batch)[:, None]
    return problem.safe_step()


def uniform(generator: torch.Generator | None, bound: float, *shape: int) -> nn.Parameter:
    """A weight drawn uniformly from [-bound, bound]."""
    return nn.Parameter((2 * torch.rand(*shape, generator=generator) - 1) * bound)
