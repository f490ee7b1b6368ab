"""r(x) = 0 for x >= 0, infinite elsewhere."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from proxlearn.problems.penalties.penalty_term import Penalty, zero_or_inf
from proxlearn.problems.penalty_descriptions import Separable


@dataclass(frozen=True)
class NonNegative(Penalty):
    """``r(x) = 0`` where every x_i >= 0, infinite elsewhere."""

    finite = False
    indicator = True

    @property
    def batch(self) -> int:
        return 1

    def value(self, x: Tensor) -> Tensor:
        return zero_or_inf(x >= 0, x)

    def prox(self, v: Tensor, p: Tensor) -> Tensor:
        return v.clamp(min=0)

    def in_units(self, variable: Tensor, objective: Tensor) -> "NonNegative":
        return self

    def conjugate(self, v: Tensor) -> Tensor:
        return zero_or_inf(v <= 0, v)

    def sides(self) -> Tensor:
        return torch.ones(1, 1)

    def core_form(self) -> Separable:
        return Separable(lower=np.zeros((1, 1)))
