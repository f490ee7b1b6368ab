"""f(x) = mean deviance of Poisson regression with a log link, halved."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.special import xlogy

from proxlearn.problems.operators import Operator
from proxlearn.problems.smooth.smooth_term import GLM, LinearLoss


@dataclass(frozen=True)
class Poisson(GLM):
    """``f(x) = 1/m sum_i [exp(z_i) - b_i z_i + b_i log b_i - b_i]``, z = A x, counts b (B, m) >= 0.

    The second derivative exp(z) of the loss has no bound. `lipschitz` holds where f(x) <= f(0),
    which is where a method that never increases F = f + r stays if it starts at 0.
    """

    A: Operator
    b: Tensor

    curvature_is_bounded = False

    def lipschitz(self) -> Tensor:
        # No term exceeds R = m f(0). The largest root mu of mu - b log(mu/b) - b = R is the limit
        # of mu <- R + b + b log(mu/b), which falls towards it from 2 R + 4 b.
        R = (self.m * self.value_at_zero())[:, None]
        mu = 2 * R + 4 * self.b
        for _ in range(20):
            mu = R + self.b + xlogy(self.b, mu) - xlogy(self.b, self.b)
        return self.A.norm() ** 2 * mu.amax(-1) / self.m

    def linear_loss(self) -> LinearLoss:
        return LinearLoss("poisson", self.A, self.b)

    def loss(self, z: Tensor) -> Tensor:
        d = z - self.b.clamp(min=torch.finfo(z.dtype).tiny).log()
        # The terms of a good fit cancel before b multiplies them.
        small = d.clamp(max=40)
        near = self.b * (torch.expm1(small) - small)
        far = torch.exp(z) - self.b * (1 + d)
        return torch.where((self.b > 0) & (d < 40), near, far).mean(-1)

    def dloss(self, z: Tensor) -> Tensor:
        return (torch.exp(z) - self.b) / self.m

    def loss_conjugate(self, u: Tensor) -> Tensor:
        q = self.b + self.m * u
        q = torch.where(q.abs() <= 4 * torch.finfo(q.dtype).eps * self.b, 0.0, q)
        value = xlogy(q, q) - q - xlogy(self.b, self.b) + self.b
        return torch.where((q >= 0).all(-1), value.mean(-1), torch.inf)

    def hessian_product(self, u: Tensor, v: Tensor) -> Tensor:
        return (u + self.b / self.m) * v
