"""THE EQUATION: one update that covers every method of the paper.

    x_hat = x - p * grad f(x)              y_hat = y - p * grad f(y)
    x+    = prox_{r,p}( (1 - b) * x_hat + b * y_hat - b1 )
    y+    = x+ + a * (x+ - x) + b2

A rule chooses p, a, b, b1, b2 at every iteration, each a scalar, one value an instance (B, 1) or
one a coordinate (B, n). With b fixed at 1 there is one gradient an iteration, at y; with b fixed
at 0 one, at x.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from proxlearn.problems.batch import SHARED
from proxlearn.problems.problem import Problem
from proxlearn.problems.smooth import Evaluation


@dataclass(frozen=True)
class Coefficients:
    """The coefficients p, a, b, b1, b2 of one iteration.

    Parameters
    ----------
    p : Tensor (B, n) or (B, 1)
        Steps, > 0.
    a, b, b1, b2 : Tensor (B, n) or (B, 1), or float
        The others; a number is the same for all coordinates and iterations.

    Examples
    --------
    >>> import torch
    >>> Coefficients(p=torch.ones(1, 1), a=0.5).b
    1.0
    """

    p: Tensor
    a: Tensor | float = 0.0
    b: Tensor | float = 1.0
    b1: Tensor | float = 0.0
    b2: Tensor | float = 0.0


@dataclass(frozen=True)
class View:
    """What a rule may look at when it chooses the coefficients of iteration k."""

    problem: Problem
    k: int
    x: Tensor
    y: Tensor
    at: Evaluation
    """f evaluated where the rule asked for it (`Rule.looks_at`)."""


@runtime_checkable
class Rule(Protocol):
    """Chooses p, a, b, b1, b2. A frozen dataclass, or an nn.Module where there are weights."""

    @property
    def looks_at(self) -> str:
        """'y' or 'x': where the gradient is taken that the rule sees."""

    @property
    def gradients(self) -> int:
        """How many gradients one iteration costs: 1 where b is fixed at 1 or 0, else 2."""

    def init(self, problem: Problem, x0: Tensor, /) -> Any:
        """The rule's memory before the first iteration; every tensor leads with the batch axis."""

    def __call__(self, view: View, memory: Any, /) -> tuple[Coefficients, Any]:
        """The coefficients of this iteration, and the memory for the next one."""


@dataclass(frozen=True)
class State:
    """Where an optimizer stands: its answer x (B, n), and all it needs to go on."""

    x: Tensor
    k: int = field(metadata=SHARED)
    at: Evaluation | None
    """The last evaluation of f, which certificates come from; None before the first step."""
    y: Tensor
    memory: Any


class Stepwise(ABC):
    """An optimizer each of whose iterations evaluates f at one point and then moves.

    The safeguard evaluates f once for two such optimizers.
    """

    @property
    @abstractmethod
    def gradients(self) -> int:
        """Gradients an iteration."""

    @abstractmethod
    def init(self, problem: Problem, x0: Tensor) -> Any:
        """The state before the first iteration."""

    def point(self, state: Any) -> Tensor | None:
        """Where the next iteration evaluates f; None where `evaluate` has to find the point."""
        return None

    def evaluate(self, problem: Problem, state: Any) -> Evaluation:
        """What the next iteration needs of f."""
        point = self.point(state)
        assert point is not None
        return problem.f.evaluate(point)

    @abstractmethod
    def advance(self, problem: Problem, state: Any, at: Evaluation) -> Any:
        """One iteration, with f evaluated by `evaluate` already."""

    def step(self, problem: Problem, state: Any) -> Any:
        """One iteration; pure."""
        return self.advance(problem, state, self.evaluate(problem, state))


@dataclass(frozen=True)
class Scheme(Stepwise):
    """The optimizer that a rule makes of the equation.

    Parameters
    ----------
    rule : Rule
        Chooses the coefficients of each iteration.

    Examples
    --------
    >>> import proxlearn as pl
    >>> from proxlearn.methods.rules import Fista
    >>> problem = pl.families.GaussianLasso(m=20, n=40, nonzeros=4).sample(2, 0)
    >>> pl.solve(problem, Scheme(Fista()), tol=1e-3).solved
    True
    """

    rule: Rule

    @property
    def gradients(self) -> int:
        """Gradients an iteration."""
        return self.rule.gradients

    def init(self, problem: Problem, x0: Tensor) -> State:
        """x = y = x0."""
        return State(x0, 0, None, x0, self.rule.init(problem, x0))

    def point(self, state: State) -> Tensor:
        """Where the next iteration evaluates f."""
        return state.y if self.rule.looks_at == "y" else state.x

    def advance(self, problem: Problem, state: State, at: Evaluation) -> State:
        """One iteration, with f evaluated at `point` already."""
        f, r = problem.f, problem.r
        x, y = state.x, state.y
        c, memory = self.rule(View(problem, state.k, x, y, at), state.memory)
        p, a, b, b1, b2 = c.p, c.a, c.b, c.b1, c.b2

        def hat(v: Tensor) -> Tensor:
            return v - p * (at.grad if v is at.point else f.grad(v))

        if not isinstance(b, Tensor) and b in (0, 1):  # only one of x_hat, y_hat is needed
            v = hat(y) if b == 1 else hat(x)
        else:
            v = (1 - b) * hat(x) + b * hat(y)
        x_next = r.prox(v - b1, p)
        y_next = x_next + a * (x_next - x) + b2
        return State(x_next, state.k + 1, at, y_next, memory)
