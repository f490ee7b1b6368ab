"""f(x) = mean cross-entropy of several classes."""

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from proxlearn.problems.batch import SHARED
from proxlearn.problems.interior import Direction
from proxlearn.problems.operators import Operator
from proxlearn.problems.smooth.smooth_term import GLM, LinearLoss


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

    has_labels = True

    @classmethod
    def of_labels(cls, A: Operator, labels: Tensor, classes: Tensor) -> "Softmax":
        """The term of labels (B, m), numbers 0, ..., C-1, with C in `classes` (1,)."""
        C = int(classes[0])
        return cls(A, one_hot(labels.long(), C).mT.to(labels.dtype).contiguous(), C)

    def linear_loss(self) -> LinearLoss | None:
        whole = ((self.b == 0) | (self.b == 1)).all() and (self.b.sum(1) == 1).all()
        if not bool(whole):
            return None
        labels = self.b.argmax(1).to(self.b.dtype)
        return LinearLoss("softmax", self.A, labels, {"classes": torch.tensor([self.classes])})

    @property
    def n(self) -> int:
        return self.classes * self.A.shape[1]

    def lipschitz(self) -> Tensor:
        return self.A.norm() ** 2 / (2 * self.m)

    def predict(self, x: Tensor) -> Tensor:
        return self.A.forward(x.reshape(len(x), self.classes, -1))

    def pull(self, u: Tensor) -> Tensor:
        return self.A.adjoint(u).reshape(len(u), -1)

    def _zero_margins(self) -> Tensor:
        return self.like.new_zeros(self.batch, self.classes, self.m)

    def interior(self, sides: Tensor) -> Direction | None:
        return None  # none: dual points are differences of probability vectors

    def loss(self, z: Tensor) -> Tensor:
        # The label's score is subtracted before the logsumexp, where no cancellation is left.
        return torch.logsumexp(z - (z * self.b).sum(1, keepdim=True), 1).mean(-1)

    def dloss(self, z: Tensor) -> Tensor:
        # The differences sum to 0 to rounding of 1 only, and a dual point has to more exactly.
        u = torch.softmax(z, 1) - self.b
        return (u - self.b * u.sum(1, keepdim=True)) / self.m

    def _probabilities(self, u: Tensor) -> Tensor:
        """The probability vector over the classes for each sample, from the dual point."""
        return self.b + self.m * u

    def loss_conjugate(self, u: Tensor) -> Tensor:
        p = self._probabilities(u)
        tolerance = 64 * torch.finfo(p.dtype).eps
        inside = (p >= -tolerance).all(1) & ((p.sum(1) - 1).abs() <= tolerance)
        p = p.clamp(min=0)
        entropy = torch.special.xlogy(p, p).sum(1)
        return torch.where(inside, entropy, torch.inf).mean(-1)

    def hessian_product(self, u: Tensor, v: Tensor) -> Tensor:
        p = self._probabilities(u)
        return p * (v - (p * v).sum(1, keepdim=True)) / self.m
