"""r(x) = lam sum_i w_i |x_i|."""

from dataclasses import dataclass

import torch
from torch import Tensor

from proxlearn.problems.penalties.penalty_term import Penalty, soft_threshold, zero_or_inf
from proxlearn.problems.penalty_descriptions import Separable
from proxlearn.problems.powers import times_power


@dataclass(frozen=True)
class L1(Penalty):
    """``r(x) = lam sum_i w_i |x_i|`` with lam (B,) and weights w (B, n), (1, n) or None for ones.

    A weight of 0 leaves a coordinate unpenalised: an intercept.
    """

    lam: Tensor
    weights: Tensor | None = None

    is_l1 = True

    @property
    def batch(self) -> int:
        return max(len(self.lam), 1 if self.weights is None else len(self.weights))

    @property
    def threshold(self) -> Tensor:
        """lam w, (B, n) or (B, 1)."""
        lam = self.lam[:, None]
        return lam if self.weights is None else lam * self.weights

    def level(self) -> Tensor:
        return self.threshold

    def value(self, x: Tensor) -> Tensor:
        return (self.threshold * x.abs()).sum(-1)

    def prox(self, v: Tensor, p: Tensor) -> Tensor:
        return soft_threshold(v, p * self.threshold)

    def subgrad(self, x: Tensor) -> Tensor:
        return self.threshold * x.sign()

    def in_units(self, variable: Tensor, objective: Tensor) -> "L1":
        return L1(times_power(self.lam, variable - objective), self.weights)

    def conjugate(self, v: Tensor) -> Tensor:
        rounding = 1 + 8 * torch.finfo(v.dtype).eps
        return zero_or_inf(v.abs() <= rounding * self.threshold, v)

    def dual_scale(self, g: Tensor) -> Tensor:
        t = self.threshold.expand_as(g)
        over = (g.abs() > t) & (t > 0)
        # Divided by 1 elsewhere: 0/0 would spoil the derivative, though no one looks at its value.
        ratio = torch.where(over, t / torch.where(over, g.abs(), 1.0), torch.ones_like(g))
        return ratio.amin(-1)

    def with_lam(self, lam: Tensor) -> "L1":
        return L1(lam, self.weights)

    def free(self) -> Tensor | None:
        if self.weights is None or bool((self.weights != 0).all()):
            return None
        return self.weights == 0

    def core_form(self) -> Separable:
        return Separable(lam=self.lam, weights=self.weights)
