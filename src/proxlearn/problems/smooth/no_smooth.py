"""f(x) = 0: the penalty alone is minimised, by the proximal point method."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from proxlearn.problems.batch import SHARED
from proxlearn.problems.smooth.smooth_term import Evaluation, Smooth


@dataclass(frozen=True)
class NoSmooth(Smooth):
    """``f(x) = 0`` on n variables; L = 0."""

    variables: int = field(metadata=SHARED)
    L: Tensor = field(default_factory=lambda: torch.zeros(1, dtype=torch.float64))

    gradients_are_free = True

    @property
    def n(self) -> int:
        return self.variables

    @property
    def batch(self) -> int:
        return len(self.L)

    @property
    def like(self) -> Tensor:
        return self.L

    def lipschitz(self) -> Tensor:
        return self.L

    def evaluate(self, x: Tensor) -> Evaluation:
        return Evaluation(x, x.new_zeros(len(x)), torch.zeros_like(x))
