"""f(x) = mean cross-entropy of several classes."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from proxlearn.batch import SHARED
from proxlearn.operators import Operator
from proxlearn.smooth.base import GLM


@dataclass(frozen=True)
class Softmax(GLM):
    """``f(x) = 1/m sum_i [logsumexp(z_i) - z_i,label(i)]``, z = A W^T.

    x (B, C*d) is the weight matrix W (C, d) row by row, as scikit-learn's ``coef_``; z, u and
    the one-hot labels `b` are (B, C, m). The Hessian diag(p) - p p^T has norm at most 1/2, so
    L = ||A||^2 / (2 m).
    """

    A: Operator
    b: Tensor
    classes: int = field(metadata=SHARED)

    @property
    def batch(self) -> int:
        return max(self.A.batch, self.b.shape[0])

    @property
    def n(self) -> int:
        return self.classes * self.A.shape[1]

    @property
    def m(self) -> int:
        """Number of samples."""
        return self.A.shape[0]

    def lipschitz(self) -> Tensor:
        return self.A.norm() ** 2 / (2 * self.m)

    def predict(self, x: Tensor) -> Tensor:
        return self.A.forward(x.reshape(len(x), self.classes, -1))

    def pull(self, u: Tensor) -> Tensor:
        return self.A.adjoint(u).reshape(len(u), -1)

    def loss(self, z: Tensor) -> Tensor:
        # The label's score is subtracted before the logsumexp, where no cancellation is left.
        return torch.logsumexp(z - (z * self.b).sum(1, keepdim=True), 1).mean(-1)

    def dloss(self, z: Tensor) -> Tensor:
        return (torch.softmax(z, 1) - self.b) / self.m

    def loss_conjugate(self, u: Tensor) -> Tensor:
        p = self.m * u + self.b  # a probability vector over the classes for each sample
        tolerance = 64 * torch.finfo(p.dtype).eps
        inside = (p >= -tolerance).all(1) & ((p.sum(1) - 1).abs() <= tolerance)
        p = p.clamp(min=0)
        entropy = torch.special.xlogy(p, p).sum(1)
        return torch.where(inside, entropy, torch.inf).mean(-1)

    def hessian_product(self, u: Tensor, v: Tensor) -> Tensor:
        p = self.m * u + self.b
        return p * (v - (p * v).sum(1, keepdim=True)) / self.m
