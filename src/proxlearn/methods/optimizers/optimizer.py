"""What an optimizer is, and the state of those that follow a subgradient instead of the scheme."""

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.problems.batch import SHARED
from proxlearn.problems.problem import Problem
from proxlearn.problems.smooth import Evaluation


class OptimizerState(Protocol):
    """What the solve loop reads of any optimizer's state."""

    @property
    def x(self) -> Tensor:
        """The answer so far, (B, n)."""

    @property
    def k(self) -> int:
        """Iterations done."""

    @property
    def at(self) -> Evaluation | None:
        """The last evaluation of f."""


class Optimizer(Protocol):
    """An iterative method as a pure pair of functions; states are immutable and batched."""

    @property
    def gradients(self) -> int:
        """Gradients an iteration."""

    def init(self, problem: Problem, x0: Tensor) -> Any:
        """The state before the first iteration."""

    def step(self, problem: Problem, state: Any) -> Any:
        """The state after one more iteration."""


@runtime_checkable
class Layered(Optimizer, Protocol):
    """An optimizer that may have an end: an unrolled network has weights for so many iterations."""

    @property
    def layers(self) -> int | None:
        """The largest number of iterations; None where there is no end."""


@runtime_checkable
class Ruled(Optimizer, Protocol):
    """An optimizer that a rule, or a network with weights, makes."""

    @property
    def rule(self) -> Any:
        """What chooses the coefficients of the scheme, or writes the update itself."""


def most_iterations(optimizer: Optimizer) -> int | None:
    """The largest number of iterations of an optimizer; None where there is no end."""
    return optimizer.layers if isinstance(optimizer, Layered) else None


def rule_of(optimizer: Optimizer) -> Any:
    """The rule of an optimizer that has one, or the optimizer itself."""
    return optimizer.rule if isinstance(optimizer, Ruled) else optimizer


@dataclass(frozen=True)
class SubgradientState:
    """State of a method x+ = x - update(g), g in grad f(x) + dr(x)."""

    x: Tensor
    k: int = field(metadata=SHARED)
    at: Evaluation | None
    memory: Any

    @property
    def y(self) -> Tensor:
        """Where the next subgradient is taken: x itself."""
        return self.x


def follow_subgradient(problem: Problem, x: Tensor) -> tuple[Evaluation, Tensor]:
    """f evaluated at x, and a subgradient of F = f + r there, (B, n), for each instance."""
    at = problem.f.evaluate(x)
    return at, at.grad + problem.r.subgrad(x)


def refuse_constraints(name: str, problem: Problem) -> None:
    """Methods without a prox cannot stay inside a set."""
    if not problem.r.finite:
        raise InputError(
            f"'{name}' follows subgradients, and the penalty {type(problem.r).__name__} is a "
            "constraint; use a method with a prox, such as 'fista-restart'"
        )
