"""Gaussian designs: the paper's two families, and one for each other penalty and loss."""

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.problems.operators import Dense
from proxlearn.problems.penalties import L1, Box, ElasticNet, GroupL1, NonNegative, Penalty, Simplex
from proxlearn.problems.problem import Problem
from proxlearn.problems.smooth import LeastSquares, Logistic, Smooth, Softmax
from proxlearn.training.families.family import (
    Family,
    Limits,
    number,
    randn,
    sparse_vector,
    unit_columns,
    whole,
)


@dataclass(frozen=True)
class GaussianDesign(Family):
    """What these families share: a normal A, a sparse true x, and an l1 penalty."""

    m: int = whole(250)
    n: int = whole(500)
    nonzeros: int = 50
    lam: float = number(0.1)

    def __post_init__(self) -> None:
        super().__post_init__()
        Limits(1, self.parts(), True).check(self, "nonzeros")

    def parts(self) -> int:
        """The number of coordinates, or of groups of them, of which `nonzeros` are not 0."""
        return self.n

    def truth(self, generator: torch.Generator) -> Tensor:
        """The x that b comes from."""
        return sparse_vector(generator, self.n, self.nonzeros)

    @abstractmethod
    def loss(self, A: Dense, b: Tensor) -> Smooth:
        """The smooth term of a batch."""

    def penalty(self, b: Tensor) -> Penalty:
        """The penalty of a batch with targets b (B, m)."""
        return L1(_full(b, self.lam))

    def build(self, *data: Tensor) -> Problem:
        A, b = data
        return Problem(self.loss(Dense(A), b), self.penalty(b))


@dataclass(frozen=True)
class GaussianLasso(GaussianDesign):
    """The paper's LASSO: A normal with unit columns, b = A x_true, `nonzeros` normal entries."""

    def draw(self, generator: torch.Generator) -> tuple[Tensor, ...]:
        A = unit_columns(randn(generator, self.m, self.n))
        return A, A @ self.truth(generator)

    def loss(self, A: Dense, b: Tensor) -> Smooth:
        return LeastSquares(A, b)


@dataclass(frozen=True)
class GaussianElasticNet(GaussianLasso):
    """The LASSO family with a quadratic term, lam2/2 ||x||^2."""

    lam2: float = number(0.1)

    def penalty(self, b: Tensor) -> Penalty:
        return ElasticNet(_full(b, self.lam), _full(b, self.lam2))


@dataclass(frozen=True)
class GaussianGroupLasso(GaussianLasso):
    """Groups of `size` neighbours, `nonzeros` of the groups active."""

    nonzeros: int = 10
    size: int = whole(5)

    def parts(self) -> int:
        return self.n // self.size

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n % self.size:
            raise InputError(
                f"n of {type(self).__name__} is {self.n} and size is {self.size}; "
                "expected n to be a multiple of size, so that all groups are equal"
            )

    def truth(self, generator: torch.Generator) -> Tensor:
        groups = sparse_vector(generator, self.parts(), self.nonzeros)
        return (groups != 0).repeat_interleave(self.size) * randn(generator, self.n)

    def penalty(self, b: Tensor) -> Penalty:
        return GroupL1(_full(b, self.lam), torch.arange(self.n, device=b.device) // self.size)


@dataclass(frozen=True)
class GaussianNnls(GaussianLasso):
    """Non-negative least squares with noise of relative size `noise`."""

    m: int = whole(500)
    n: int = whole(250)
    noise: float = number(0.1, 0)

    def draw(self, generator: torch.Generator) -> tuple[Tensor, ...]:
        A, b = super().draw(generator)
        noise = randn(generator, self.m)
        return A, b + self.noise * noise * b.norm() / noise.norm()

    def truth(self, generator: torch.Generator) -> Tensor:
        return super().truth(generator).abs()

    def penalty(self, b: Tensor) -> Penalty:
        return NonNegative()


@dataclass(frozen=True)
class GaussianBox(GaussianNnls):
    """Least squares with x in [-bound, bound], which cuts off part of the true x."""

    bound: float = number(0.5)

    def truth(self, generator: torch.Generator) -> Tensor:
        return sparse_vector(generator, self.n, self.nonzeros)

    def penalty(self, b: Tensor) -> Penalty:
        bound = b.new_full((1, 1), self.bound)
        return Box(-bound, bound)


@dataclass(frozen=True)
class GaussianSimplex(GaussianNnls):
    """Unmixing: x on the simplex, `nonzeros` of the fractions positive."""

    nonzeros: int = 10

    def truth(self, generator: torch.Generator) -> Tensor:
        x = super().truth(generator)
        return x / x.sum()

    def penalty(self, b: Tensor) -> Penalty:
        return Simplex(b.new_ones(len(b)))


@dataclass(frozen=True)
class GaussianLogistic(GaussianDesign):
    """The paper's logistic regression: normal features, labels 1 where a^T x_true >= 0."""

    m: int = whole(1000)
    n: int = whole(50)
    nonzeros: int = 20

    def draw(self, generator: torch.Generator) -> tuple[Tensor, ...]:
        A = randn(generator, self.m, self.n)
        return A, (A @ self.truth(generator) >= 0).to(A.dtype)

    def loss(self, A: Dense, b: Tensor) -> Smooth:
        return Logistic(A, b)


@dataclass(frozen=True)
class GaussianSoftmax(GaussianDesign):
    """Normal features, `classes` sparse true weight vectors, the label is the largest score."""

    m: int = whole(500)
    n: int = whole(40)
    nonzeros: int = 10
    lam: float = number(0.02)
    classes: int = whole(5, 2)

    def draw(self, generator: torch.Generator) -> tuple[Tensor, ...]:
        A = randn(generator, self.m, self.n)
        W = torch.stack([self.truth(generator) for _ in range(self.classes)])
        labels = (A @ W.T).argmax(-1)
        return A, torch.nn.functional.one_hot(labels, self.classes).T.to(A.dtype).contiguous()

    def loss(self, A: Dense, b: Tensor) -> Smooth:
        return Softmax(A, b, self.classes)


def _full(b: Tensor, value: float) -> Tensor:
    return b.new_full((len(b),), value)
