"""f(x) = mean logistic loss of the margins A x for labels 0 and 1."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from proxlearn.problems.operators import Operator
from proxlearn.problems.smooth.smooth_term import GLM, LinearLoss


@dataclass(frozen=True)
class Logistic(GLM):
    """``f(x) = 1/m sum_i [log(1 + exp(z_i)) - b_i z_i]``, z = A x, b (B, m) in {0, 1}.

    The second derivative of the loss is at most 1/4, so L = ||A||^2 / (4 m).
    """

    A: Operator
    b: Tensor

    has_labels = True

    def lipschitz(self) -> Tensor:
        return self.A.norm() ** 2 / (4 * self.m)

    def linear_loss(self) -> LinearLoss:
        return LinearLoss("logistic", self.A, self.b)

    def loss(self, z: Tensor) -> Tensor:
        # log(1 + e^z) - b z for b in {0, 1} is softplus of the margin against the label: no
        # difference of large numbers at any margin. Above 40, where e^-40 is below the rounding,
        # it is the margin itself, and e^z must not overflow.
        return softplus((1 - 2 * self.b) * z, threshold=40).mean(-1)

    def dloss(self, z: Tensor) -> Tensor:
        sign = 1 - 2 * self.b  # sigmoid(z) - b without cancellation for large margins
        return sign * torch.sigmoid(sign * z) / self.m

    def _wrong(self, u: Tensor) -> Tensor:
        """The probability given to the wrong label, in [0, 1], from the dual point."""
        return (1 - 2 * self.b) * (self.m * u)

    def loss_conjugate(self, u: Tensor) -> Tensor:
        q = self._wrong(u)
        entropy = torch.special.xlogy(q, q) + torch.special.xlogy(1 - q, 1 - q)
        return torch.where((q >= 0) & (q <= 1), entropy, torch.inf).mean(-1)

    def hessian_product(self, u: Tensor, v: Tensor) -> Tensor:
        q = self._wrong(u)
        return q * (1 - q) * (v / self.m)

    def through_hessian(self, u: Tensor, v: Tensor, shift: Tensor | None) -> Tensor:
        return self.A.through(v, self.hessian_product(u, torch.ones_like(u)), shift)[1]
