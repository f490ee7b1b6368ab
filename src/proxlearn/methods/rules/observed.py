"""A rule that shows what it chooses."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from proxlearn.methods.scheme import Coefficients, Rule, View
from proxlearn.problems.problem import Problem


class Around:
    """A rule around another one, from which it has all but the choice of the coefficients."""

    rule: Rule

    @property
    def looks_at(self) -> str:
        """As the rule itself."""
        return self.rule.looks_at

    @property
    def gradients(self) -> int:
        """As the rule itself."""
        return self.rule.gradients

    def init(self, problem: Problem, x0: Tensor) -> Any:
        """As the rule itself."""
        return self.rule.init(problem, x0)


@dataclass(frozen=True)
class Observed(Around):
    """A rule that shows what it chooses: `look(view, coefficients)` is called at every iteration.

    >>> import proxlearn as pl
    >>> from proxlearn.methods.rules.observed import Observed
    >>> seen = []
    >>> problem = pl.lasso([[2.0, 0.0], [0.0, 1.0]], [1.0, 1.0], lam=0.1)
    >>> rule = Observed(pl.rules.Ista(), lambda view, c: seen.append(round(c.p.item(), 6)))
    >>> _ = pl.solve(problem, pl.Scheme(rule), tol=0, max_iter=2)
    >>> seen
    [0.25, 0.25]
    """

    rule: Rule
    look: Callable[[View, Coefficients], None]

    def __call__(self, view: View, memory: Any) -> tuple[Coefficients, Any]:
        """What the rule chooses, shown."""
        coefficients, memory = self.rule(view, memory)
        self.look(view, coefficients)
        return coefficients, memory
