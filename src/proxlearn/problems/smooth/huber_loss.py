"""f(x) = Huber's loss of A x - b: squares of small errors, straight lines beyond delta."""

from dataclasses import dataclass

import torch
from torch import Tensor

from proxlearn.problems.operators import Operator
from proxlearn.problems.powers import times_power
from proxlearn.problems.smooth.smooth_term import GLM, LinearLoss, units_of_squares


@dataclass(frozen=True)
class Huber(GLM):
    """``f(x) = sum_i phi(z_i - b_i)``, z = A x, with b (B, m) and delta (B,) or (1,).

    ``phi(e) = e^2 / 2`` for ``|e| <= delta`` and ``delta |e| - delta^2 / 2`` beyond. The second
    derivative of phi is at most 1, so L = ||A||^2.
    """

    A: Operator
    b: Tensor
    delta: Tensor

    @property
    def batch(self) -> int:
        return max(self.A.batch, self.b.shape[0], self.delta.shape[0])

    def lipschitz(self) -> Tensor:
        return self.A.norm() ** 2

    def linear_loss(self) -> LinearLoss:
        return LinearLoss("huber", self.A, self.b, {"delta": self.delta})

    def loss(self, z: Tensor) -> Tensor:
        size = (z - self.b).abs()
        inner = torch.minimum(size, self.delta[:, None])
        return (inner * (size - 0.5 * inner)).sum(-1)

    def dloss(self, z: Tensor) -> Tensor:
        delta = self.delta[:, None]
        return torch.maximum(torch.minimum(z - self.b, delta), -delta)

    def loss_conjugate(self, u: Tensor) -> Tensor:
        # A multiple of delta in [0, 1] may be rounded up by a digit.
        slack = 1 + 4 * torch.finfo(u.dtype).eps
        inside = (u.abs() <= slack * self.delta[:, None]).all(-1)
        return torch.where(inside, (u * (0.5 * u + self.b)).sum(-1), torch.inf)

    def hessian_product(self, u: Tensor, v: Tensor) -> Tensor:
        return torch.where(u.abs() < self.delta[:, None], v, 0.0)

    def natural_units(self) -> tuple[Tensor, Tensor] | None:
        return units_of_squares(self.A, self.b)

    def in_units(self, variable: Tensor, objective: Tensor) -> "Huber":
        # As for least squares; delta has the unit of b.
        c = torch.div(objective, 2, rounding_mode="trunc")
        A, b = self.A.times_power(variable - c), times_power(self.b, -c)
        return Huber(A, b, times_power(self.delta.expand_as(c), -c))
