"""r(x) = 0."""

from dataclasses import dataclass

import torch
from torch import Tensor

from proxlearn.problems.penalties.penalty_term import Penalty, zero_or_inf
from proxlearn.problems.penalty_descriptions import Separable


@dataclass(frozen=True)
class Zero(Penalty):
    """``r(x) = 0``: smooth minimisation."""

    vanishes = True

    @property
    def batch(self) -> int:
        return 1

    def value(self, x: Tensor) -> Tensor:
        return x.new_zeros(len(x))

    def prox(self, v: Tensor, p: Tensor) -> Tensor:
        return v

    def subgrad(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x)

    def in_units(self, variable: Tensor, objective: Tensor) -> "Zero":
        return self

    def conjugate(self, v: Tensor) -> Tensor:
        return zero_or_inf(v == 0, v)

    def core_form(self) -> Separable:
        return Separable()
