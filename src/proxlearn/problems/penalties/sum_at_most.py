"""r(x) = 0 where x >= 0 and sum x <= radius, infinite elsewhere."""

from dataclasses import dataclass

import torch
from torch import Tensor

from proxlearn.problems.penalties.penalty_term import zero_or_inf
from proxlearn.problems.penalties.simplex_set import Simplex
from proxlearn.problems.penalty_descriptions import OnSimplex


@dataclass(frozen=True)
class SumAtMost(Simplex):
    """``r(x) = 0`` where x >= 0 and sum x <= radius (B,), infinite elsewhere."""

    def _value(self, x: Tensor, error: float) -> Tensor:
        inside = x.sum(-1) <= (1 + error) * self.radius
        return zero_or_inf((x >= 0) & inside[:, None], x)

    def prox(self, v: Tensor, p: Tensor) -> Tensor:
        """max(0, v) where its sum is at most the radius, elsewhere the prox of the simplex."""
        positive = v.clamp(min=0)
        inside = positive.sum(-1, keepdim=True) <= self.radius[:, None]
        return torch.where(inside, positive, super().prox(v, p))

    def conjugate(self, v: Tensor) -> Tensor:
        return self.radius * v.amax(-1).clamp(min=0)

    def core_form(self) -> OnSimplex:
        return OnSimplex(self.radius, at_most=True)
