"""r(x) = sum_i w_i (lam |x_i| + lam2/2 x_i^2)."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.problems.penalties.l1 import L1
from proxlearn.problems.penalties.penalty_term import Penalty, soft_threshold
from proxlearn.problems.penalty_descriptions import Separable
from proxlearn.problems.powers import times_power


@dataclass(frozen=True)
class ElasticNet(Penalty):
    """``r(x) = sum_i w_i (lam |x_i| + lam2/2 x_i^2)`` with lam, lam2 (B,), lam2 > 0.

    Weights w are (B, n), (1, n) or None for ones; 0 leaves a coordinate unpenalised.
    """

    lam: Tensor
    lam2: Tensor
    weights: Tensor | None = None

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
        # (q x) x, not q x^2: the square of a small or large x leaves the range of the dtype.
        return (t * x.abs() + 0.5 * (q * x) * x).sum(-1)

    def prox(self, v: Tensor, p: Tensor) -> Tensor:
        t, q = self.pair()
        return soft_threshold(v, p * t) / (1 + p * q)

    def subgrad(self, x: Tensor) -> Tensor:
        t, q = self.pair()
        return t * x.sign() + q * x

    def in_units(self, variable: Tensor, objective: Tensor) -> "ElasticNet":
        lam = times_power(self.lam, variable - objective)
        return ElasticNet(lam, times_power(self.lam2, 2 * variable - objective), self.weights)

    def conjugate(self, v: Tensor) -> Tensor:
        t, q = self.pair()
        excess = (v.abs() - t).clamp(min=0)
        quotient = excess * (excess / (2 * q))  # excess^2 alone may leave the range
        return torch.where(excess == 0, torch.zeros_like(excess), quotient).sum(-1)

    def with_lam(self, lam: Tensor) -> "ElasticNet":
        """The ratio lam2 / lam is kept."""
        if bool((self.lam <= 0).any()):
            raise InputError(
                "lam is 0, so its ratio to lam2 is unknown; expected an elastic net > 0"
            )
        return replace(self, lam=lam, lam2=lam * (self.lam2 / self.lam))

    def norm_with(self, lam: Tensor) -> L1:
        return L1(lam, self.weights)

    def free(self) -> Tensor | None:
        if self.weights is None or bool((self.weights != 0).all()):
            return None
        return self.weights == 0

    def core_form(self) -> Separable:
        return Separable(self.lam, self.lam2, self.weights)
