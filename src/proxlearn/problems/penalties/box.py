"""r(x) = 0 for lower <= x <= upper, infinite elsewhere."""

from dataclasses import dataclass

import torch
from torch import Tensor

from proxlearn.problems.penalties.penalty_term import Penalty, zero_or_inf
from proxlearn.problems.penalty_descriptions import Separable
from proxlearn.problems.powers import times_power


@dataclass(frozen=True)
class Box(Penalty):
    """``r(x) = 0`` where lower <= x <= upper, else infinite; bounds (B, n), (1, n) or (1, 1)."""

    lower: Tensor
    upper: Tensor

    finite = False
    indicator = True

    @property
    def batch(self) -> int:
        return max(len(self.lower), len(self.upper))

    def value(self, x: Tensor) -> Tensor:
        return zero_or_inf((x >= self.lower) & (x <= self.upper), x)

    def prox(self, v: Tensor, p: Tensor) -> Tensor:
        return torch.minimum(torch.maximum(v, self.lower), self.upper)

    def in_units(self, variable: Tensor, objective: Tensor) -> "Box":
        return Box(times_power(self.lower, -variable), times_power(self.upper, -variable))

    def conjugate(self, v: Tensor) -> Tensor:
        corner = torch.where(v > 0, self.upper, self.lower)
        return torch.where(v == 0, torch.zeros_like(v), corner * v).sum(-1)

    def sides(self) -> Tensor | None:
        up, down = self.upper.isposinf(), self.lower.isneginf()
        both = up & down
        if not bool((up | down).any()) or bool(both.any()):
            return None  # an unbounded coordinate leaves no strictly feasible direction
        return up.to(self.upper.dtype) - down.to(self.lower.dtype)

    def core_form(self) -> Separable:
        return Separable(lower=self.lower, upper=self.upper)
