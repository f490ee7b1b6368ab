"""r(x) = 0 on the simplex {x >= 0, sum x = radius}, infinite elsewhere."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from proxlearn.problems.penalties.penalty_term import Penalty, zero_or_inf
from proxlearn.problems.penalty_descriptions import OnSimplex
from proxlearn.problems.powers import times_power

FEASIBLE = 1e-5
"""Relative error of the sum up to which a point counts as on the simplex."""


@dataclass(frozen=True)
class Simplex(Penalty):
    """``r(x) = 0`` where x >= 0 and sum x = radius (B,), infinite elsewhere."""

    radius: Tensor

    separable = False
    finite = False
    indicator = True

    @property
    def batch(self) -> int:
        return len(self.radius)

    def value(self, x: Tensor) -> Tensor:
        return self._value(x, FEASIBLE)

    def strict_value(self, x: Tensor) -> Tensor:
        return self._value(x, x.shape[-1] * torch.finfo(x.dtype).eps)

    def _value(self, x: Tensor, error: float) -> Tensor:
        """r(x) where the sum may be off by this part of the radius."""
        close = (x.sum(-1) - self.radius).abs() <= error * self.radius
        return zero_or_inf((x >= 0) & close[:, None], x)

    def prox(self, v: Tensor, p: Tensor) -> Tensor:
        """max(0, v - xi p), with xi such that the sum is the radius: exact, by sorting.

        The sum as a function of xi is piecewise linear with breakpoints v_i / p_i. If the k
        largest of them are active, xi_k = (sum of their v - radius) / (sum of their p); the
        right k is the last one whose breakpoint exceeds its xi_k.
        """
        p, radius = p.expand_as(v), self.radius[:, None]
        level = v / p
        breakpoints, order = level.sort(-1, descending=True)
        total_v = v.gather(-1, order).cumsum(-1)
        total_p = p.gather(-1, order).cumsum(-1)
        xi = (total_v - radius) / total_p
        last = (breakpoints > xi).sum(-1, keepdim=True).clamp(min=1) - 1
        active = level >= breakpoints.gather(-1, last)
        x = torch.where(active, v - xi.gather(-1, last) * p, torch.zeros_like(v))
        # Far from the simplex the difference has lost digits that the sum must not miss: the
        # same xi once more, of what is left, and what then remains is rounding.
        again = (x.sum(-1, keepdim=True) - radius) / total_p.gather(-1, last)
        x = torch.where(active, x - again * p, x).clamp(min=0)
        return x * (radius / x.sum(-1, keepdim=True))

    def in_units(self, variable: Tensor, objective: Tensor) -> "Simplex":
        return replace(self, radius=times_power(self.radius, -variable))

    def tie(self, p: Tensor) -> Tensor:
        """p itself: this prox takes a value for each coordinate."""
        return p

    def conjugate(self, v: Tensor) -> Tensor:
        return self.radius * v.amax(-1)

    def core_form(self) -> OnSimplex:
        return OnSimplex(self.radius)
