"""f(x) = 1/2 ||A x - b||^2."""

from dataclasses import dataclass

from torch import Tensor

from proxlearn.operators import Operator
from proxlearn.smooth.base import GLM


@dataclass(frozen=True)
class LeastSquares(GLM):
    """``f(x) = 1/2 ||A x - b||^2`` with b (B, m); L = ||A||^2."""

    A: Operator
    b: Tensor

    @property
    def batch(self) -> int:
        return max(self.A.batch, self.b.shape[0])

    def lipschitz(self) -> Tensor:
        return self.A.norm() ** 2

    def loss(self, z: Tensor) -> Tensor:
        return 0.5 * (z - self.b).square().sum(-1)

    def dloss(self, z: Tensor) -> Tensor:
        return z - self.b

    def loss_conjugate(self, u: Tensor) -> Tensor:
        return (u * (0.5 * u + self.b)).sum(-1)

    def hessian_product(self, u: Tensor, v: Tensor) -> Tensor:
        return v.expand_as(u)
