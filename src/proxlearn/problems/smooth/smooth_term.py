"""What a smooth term f is, and the generalised linear models that most of them are."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from proxlearn.problems.batch import leaves
from proxlearn.problems.interior import Direction, interior_direction
from proxlearn.problems.operators import Operator
from proxlearn.problems.powers import extreme


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
    """Where f(x) = phi(A x), u = grad phi(A point) with grad = A^T u: what a certificate needs."""


@dataclass(frozen=True)
class LinearLoss:
    """A loss of A x that the compiled core can solve."""

    name: str
    """In `proxlearn.core.losses.LOSSES`."""
    A: Operator
    b: Tensor
    """(B, m)"""
    options: dict[str, Tensor] = field(default_factory=dict)
    """What else the loss takes, each (B,) or (1,)."""


class Smooth(ABC):
    """A smooth convex f, one for each instance of a batch. Subclasses are frozen dataclasses."""

    gradients_are_free = False
    """True where f is constant: then a method that evaluates it has computed no gradient."""

    curvature_is_bounded = True
    """False where `lipschitz` holds only at points x with f(x) <= f(0)."""

    has_labels = False
    """True where the target is a class, as in logistic regression."""
    scales_with_target = False
    """True where t b as target and t x as point give t^2 f, as least squares does."""

    def as_glm(self) -> "GLM | None":
        """This term as a loss of A x; None where it is none."""
        return None

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

    def evaluate_proximal(self, w: Tensor, gamma: Tensor) -> Evaluation | None:
        """f evaluated at v, the minimiser of f(v) + |v - w|^2 / (2 gamma), for gamma (B, 1).

        None where there is no closed form for it.
        """
        return None

    @property
    def has_proximal(self) -> bool:
        """True where `evaluate_proximal` has a closed form."""
        return False

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

    def value_at_zero(self) -> Tensor:
        """f(0), (batch,)."""
        like = self.like
        return self.value(torch.zeros(self.batch, self.n, dtype=like.dtype, device=like.device))

    def natural_units(self) -> tuple[Tensor, Tensor] | None:
        """Exponents k and l, (batch,), such that 2^-l f(2^k x) has data of size 1.

        None where the numbers are no problem as they are, or f does not know how to scale itself.
        """
        return None

    def in_units(self, variable: Tensor, objective: Tensor) -> "Smooth":
        """x -> 2^-objective f(2^variable x) for exponents (B,), as far as numbers are exact."""
        raise NotImplementedError

    def numbers(self) -> list[Tensor]:
        """The numbers that f consists of, each (batch or 1, ...)."""
        return leaves(self)

    def linear_loss(self) -> LinearLoss | None:
        """What the compiled core needs to know of this term; None where it does not know it."""
        return None

    def conjugate(self, e: Evaluation, s: Tensor) -> Tensor:
        """f*(s grad f(x)) at an evaluated x, (B,), or an upper bound on it, for s (B,) in [0, 1].

        For s = 1 Fenchel's equality gives <grad f(x), x> - f(x) for every convex f. Elsewhere it
        is infinite unless a subclass has a formula.
        """
        equality = (e.grad * e.point).sum(-1) - e.value
        return torch.where(s == 1, equality, torch.inf)


class GLM(Smooth):
    """f(x) = phi(A x) with an explicit loss phi: least squares, logistic, softmax."""

    A: Operator
    b: Tensor
    """The target, (B, m)."""

    def as_glm(self) -> "GLM":
        return self

    @property
    def like(self) -> Tensor:
        return torch.empty(0, dtype=self.A.dtype, device=self.A.device)

    @property
    def n(self) -> int:
        return self.A.shape[1]

    @property
    def m(self) -> int:
        """Number of samples."""
        return self.A.shape[0]

    @property
    def batch(self) -> int:
        return max(self.A.batch, self.b.shape[0])

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

    def through_hessian(self, u: Tensor, v: Tensor, shift: Tensor | None) -> Tensor:
        """A^T (H A v + shift) with the Hessian H of phi where its gradient is u."""
        product = self.hessian_product(u, self.predict(v))
        return self.pull(product if shift is None else product + shift)

    def predict(self, x: Tensor) -> Tensor:
        """z = A x, (B, m)."""
        return self.A.forward(x)

    def pull(self, u: Tensor) -> Tensor:
        """A^T u, (B, n)."""
        return self.A.adjoint(u)

    def interior(self, sides: Tensor) -> Direction | None:
        """Directions v (B, ...) with sides_j a_j^T v > 0 wherever sides_j is not 0."""
        return interior_direction(self.A, sides)

    def best_multiple(self, u: Tensor, slope: Tensor) -> Tensor:
        """The s >= 0 that maximises -phi*(s u) - s slope, (B,), where it has a formula, else 1."""
        return slope.new_ones(len(u))

    def natural_units(self) -> tuple[Tensor, Tensor] | None:
        """Where the loss has no units, A alone is scaled: A x = (2^k A) (2^-k x)."""
        largest = self.A.largest()
        if largest is None:
            return None
        a = extreme(largest)
        return (-a, torch.zeros_like(a)) if bool(a.any()) else None

    def in_units(self, variable: Tensor, objective: Tensor) -> "GLM":
        changed: GLM = replace(self, A=self.A.times_power(variable))  # type: ignore[type-var]
        return changed

    def numbers(self) -> list[Tensor]:
        return [*self.A.numbers(), *leaves(self)]

    def value(self, x: Tensor) -> Tensor:
        return self.loss(self.predict(x))

    def value_at_zero(self) -> Tensor:
        return self.loss(self._zero_margins())

    def _zero_margins(self) -> Tensor:
        """A 0, (batch, m)."""
        return self.like.new_zeros(self.batch, self.A.shape[0])

    def evaluate(self, x: Tensor) -> Evaluation:
        if x.requires_grad and not any(t.requires_grad for t in self.numbers()):
            value, grad, u = _Evaluated.apply(x, self)  # type: ignore[no-untyped-call]
            return Evaluation(x, value, grad, u)
        return Evaluation(x, *self._evaluated(x))

    def _evaluated(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """f(x), its gradient, and the dual point u = grad phi(A x)."""
        z = self.predict(x)
        u = self.dloss(z)
        return self.loss(z), self.pull(u), u

    def evaluated_once(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The same for an x that no gradient flows through; a loss may have a faster way."""
        return self._evaluated(x)

    def conjugate(self, e: Evaluation, s: Tensor) -> Tensor:
        """f*(A^T (s u)) <= phi*(s u): the dual of a generalised linear model."""
        assert e.dual is not None
        return self.loss_conjugate(s.reshape(-1, *[1] * (e.dual.ndim - 1)) * e.dual)


class _Evaluated(torch.autograd.Function):
    """x -> f(x), its gradient and the dual point u, for a constant f.

    With H the Hessian of phi the derivatives are u' = H A x', grad' = A^T u' and value' = u^T A x'.
    Their transpose costs one product with A and one with A^T, as the evaluation does, and needs of
    it nothing but u. Autograd by itself would keep what every step of the loss made of z.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, f: GLM) -> tuple[Tensor, Tensor, Tensor]:
        value, grad, u = f.evaluated_once(x)
        ctx.f = f
        ctx.save_for_backward(u)
        ctx.set_materialize_grads(False)
        return value, grad, u

    @staticmethod
    def backward(
        ctx: Any, by_value: Tensor | None, by_grad: Tensor | None, by_u: Tensor | None
    ) -> tuple[Tensor | None, None]:
        (u,), f = ctx.saved_tensors, ctx.f
        parts = [] if by_u is None else [f.hessian_product(u, by_u)]
        if by_value is not None:
            parts.append(by_value.reshape(-1, *[1] * (u.ndim - 1)) * u)
        shift = sum(parts[1:], parts[0]) if parts else None
        if by_grad is None:
            return (None if shift is None else f.pull(shift)), None
        return f.through_hessian(u, by_grad, shift), None


def units_of_squares(A: Operator, b: Tensor) -> tuple[Tensor, Tensor] | None:
    """`natural_units` of a loss that is a square of A x - b near 0."""
    largest = A.largest()
    if largest is None:
        return None
    a, c = extreme(largest), extreme(b.abs().amax(-1))
    return (c - a, (2 * c).expand_as(c - a)) if bool(a.any()) or bool(c.any()) else None
