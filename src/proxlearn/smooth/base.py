"""What a smooth term f is, and the generalised linear models that most of them are."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from proxlearn.operators import Operator


@dataclass(frozen=True)
class Evaluation:
    """f at a point, everything that one pass over the data gives."""

    point: Tensor
    """Where f was evaluated, (B, n)."""
    value: Tensor
    """f(point), (B,)."""
    grad: Tensor
    """grad f(point), (B, n)."""
    dual: Tensor | None = None
    """For f(x) = phi(A x): u = grad phi(A point), grad = A^T u; what a dual certificate needs."""


class Smooth(ABC):
    """A smooth convex f, one for each instance of a batch. Subclasses are frozen dataclasses."""

    gradients_are_free = False
    """True where f is constant: then a method that evaluates it has computed no gradient."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of variables."""

    @property
    @abstractmethod
    def batch(self) -> int:
        """Number of instances, 1 where all instances of a problem share this f."""

    @property
    @abstractmethod
    def like(self) -> Tensor:
        """A tensor with the dtype and the device of this term."""

    @abstractmethod
    def evaluate(self, x: Tensor) -> Evaluation:
        """Value and gradient at x (B, n) from one residual."""

    @abstractmethod
    def lipschitz(self) -> Tensor:
        """An upper bound on the Lipschitz constant of grad f, (batch,)."""

    def value(self, x: Tensor) -> Tensor:
        """f(x), (B,)."""
        return self.evaluate(x).value

    def grad(self, x: Tensor) -> Tensor:
        """grad f(x), (B, n)."""
        return self.evaluate(x).grad

    def value_and_grad(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """f(x) (B,) and grad f(x) (B, n), sharing the residual."""
        e = self.evaluate(x)
        return e.value, e.grad

    def conjugate(self, e: Evaluation, s: Tensor) -> Tensor:
        """f*(s grad f(x)) at an evaluated x, (B,), or an upper bound on it, for s (B,) in [0, 1].

        For s = 1 Fenchel's equality gives <grad f(x), x> - f(x) for every convex f. Elsewhere it
        is infinite unless a subclass knows better: an unknown bound is no bound.
        """
        equality = (e.grad * e.point).sum(-1) - e.value
        return torch.where(s == 1, equality, torch.inf)


class GLM(Smooth):
    """f(x) = phi(A x) with an explicit loss phi: least squares, logistic, softmax."""

    A: Operator

    @property
    def like(self) -> Tensor:
        return torch.empty(0, dtype=self.A.dtype, device=self.A.device)

    @property
    def n(self) -> int:
        return self.A.shape[1]

    @abstractmethod
    def loss(self, z: Tensor) -> Tensor:
        """phi(z), (B,)."""

    @abstractmethod
    def dloss(self, z: Tensor) -> Tensor:
        """grad phi(z), of z's shape."""

    @abstractmethod
    def loss_conjugate(self, u: Tensor) -> Tensor:
        """phi*(u), (B,)."""

    @abstractmethod
    def hessian_product(self, u: Tensor, v: Tensor) -> Tensor:
        """The Hessian of phi, at the z where its gradient is u, times v; of u's shape."""

    def predict(self, x: Tensor) -> Tensor:
        """z = A x, (B, m)."""
        return self.A.forward(x)

    def pull(self, u: Tensor) -> Tensor:
        """A^T u, (B, n)."""
        return self.A.adjoint(u)

    def value(self, x: Tensor) -> Tensor:
        return self.loss(self.predict(x))

    def evaluate(self, x: Tensor) -> Evaluation:
        z = self.predict(x)
        u = self.dloss(z)
        return Evaluation(x, self.loss(z), self.pull(u), u)

    def conjugate(self, e: Evaluation, s: Tensor) -> Tensor:
        """f*(A^T (s u)) <= phi*(s u): the dual of a generalised linear model."""
        assert e.dual is not None
        return self.loss_conjugate(s.reshape(-1, *[1] * (e.dual.ndim - 1)) * e.dual)
