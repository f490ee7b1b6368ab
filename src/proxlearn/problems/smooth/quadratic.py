"""f(x) = 1/2 x^T Q x - c^T x."""

from dataclasses import dataclass

from torch import Tensor

from proxlearn.problems.operators import Operator
from proxlearn.problems.smooth.smooth_term import Evaluation, Smooth


@dataclass(frozen=True)
class Quadratic(Smooth):
    """``f(x) = 1/2 x^T Q x - c^T x`` with Q symmetric, semidefinite; c (B, n); L = ||Q||."""

    Q: Operator
    c: Tensor

    @property
    def n(self) -> int:
        return self.c.shape[-1]

    @property
    def batch(self) -> int:
        return max(self.Q.batch, self.c.shape[0])

    @property
    def like(self) -> Tensor:
        return self.c

    def lipschitz(self) -> Tensor:
        return self.Q.norm()

    def evaluate(self, x: Tensor) -> Evaluation:
        Qx = self.Q.forward(x)
        return Evaluation(x, (x * (0.5 * Qx - self.c)).sum(-1), Qx - self.c)
