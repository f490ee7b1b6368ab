"""r(x) = sum_i w_i (lam x_i + lam2/2 x_i^2) for x >= 0, infinite elsewhere."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from proxlearn.problems.penalties.penalty_term import Penalty, zero_or_inf
from proxlearn.problems.penalty_descriptions import Separable
from proxlearn.problems.powers import times_power


@dataclass(frozen=True)
class NonNegativeElasticNet(Penalty):
    """``r(x) = sum_i w_i (lam x_i + lam2/2 x_i^2)`` where x >= 0, infinite elsewhere.

    lam and lam2 >= 0 are (B,), weights w > 0 are (B, n), (1, n) or None for ones. With lam2 = 0 it
    is the l1 norm of non-negative coordinates, with both 0 the constraint alone.
    """

    lam: Tensor
    lam2: Tensor
    weights: Tensor | None = None

    finite = False

    @property
    def batch(self) -> int:
        return max(len(self.lam), len(self.lam2), 1 if self.weights is None else len(self.weights))

    def pair(self) -> tuple[Tensor, Tensor]:
        """w lam and w lam2, each (B, n) or (B, 1)."""
        w = 1.0 if self.weights is None else self.weights
        return self.lam[:, None] * w, self.lam2[:, None] * w

    def level(self) -> Tensor:
        return self.pair()[0]

    def value(self, x: Tensor) -> Tensor:
        t, q = self.pair()
        return ((t + 0.5 * q * x) * x).sum(-1) + zero_or_inf(x >= 0, x)

    def prox(self, v: Tensor, p: Tensor) -> Tensor:
        t, q = self.pair()
        return (v - p * t).clamp(min=0) / (1 + p * q)

    def in_units(self, variable: Tensor, objective: Tensor) -> "NonNegativeElasticNet":
        lam = times_power(self.lam, variable - objective)
        lam2 = times_power(self.lam2, 2 * variable - objective)
        return NonNegativeElasticNet(lam, lam2, self.weights)

    def conjugate(self, v: Tensor) -> Tensor:
        t, q = self.pair()
        rounding = torch.where(q > 0, 0.0, 8 * torch.finfo(v.dtype).eps * t)
        excess = (v - t - rounding).clamp(min=0)
        quotient = excess * (excess / (2 * q))  # excess^2 alone may leave the range
        return torch.where(excess == 0, 0.0, quotient).sum(-1)

    def dual_scale(self, g: Tensor) -> Tensor:
        t, q = (part.expand_as(g) for part in self.pair())
        outside = (-g > t) & (q == 0) & (t > 0)
        return torch.where(outside, t / g.abs(), torch.ones_like(g)).amin(-1)

    def sides(self) -> Tensor | None:
        t, q = self.pair()
        free = (t == 0) & (q == 0)
        return free.to(t.dtype) if bool(free.any()) else None

    def core_form(self) -> Separable:
        return Separable(self.lam, self.lam2, self.weights, lower=np.zeros((1, 1)))
