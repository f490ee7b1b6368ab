"""Smooth problems, r = 0: least squares and ridge logistic regression, both ill-conditioned."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from proxlearn.problems.operators import Dense
from proxlearn.problems.penalties import Zero
from proxlearn.problems.problem import Problem
from proxlearn.problems.smooth import Autograd, LeastSquares
from proxlearn.training.families.family import Family, number, randn, unit_columns, whole


@dataclass(frozen=True)
class GaussianLeastSquares(Family):
    """A normal with columns of lengths between 1 and 1/spread, b = A x_true + noise."""

    m: int = whole(100)
    n: int = whole(50)
    spread: float = number(10.0, 1)
    noise: float = number(0.3, 0)

    def draw(self, generator: torch.Generator) -> tuple[Tensor, ...]:
        A = unit_columns(randn(generator, self.m, self.n)) * _lengths(self, generator)
        b = A @ randn(generator, self.n)
        noise = randn(generator, self.m)
        return A, b + self.noise * noise * b.norm() / noise.norm()

    def build(self, *data: Tensor) -> Problem:
        A, b = data
        return Problem(LeastSquares(Dense(A), b), Zero())


@dataclass(frozen=True)
class GaussianRidgeLogistic(Family):
    """Mean logistic loss + ridge/2 ||x||^2, features of scales between 1 and 1/spread.

    Labels are those of a^T x_true with a share of `flipped` ones.
    """

    m: int = whole(200)
    n: int = whole(50)
    spread: float = number(10.0, 1)
    ridge: float = number(1e-3)
    flipped: float = number(0.1, 0, 1)

    def draw(self, generator: torch.Generator) -> tuple[Tensor, ...]:
        A = randn(generator, self.m, self.n) * _lengths(self, generator)
        wrong = torch.rand(self.m, generator=generator, device=generator.device) < self.flipped
        return A, ((A @ randn(generator, self.n) >= 0) ^ wrong).to(A.dtype)

    def build(self, *data: Tensor) -> Problem:
        A, b = data
        ridge = b.new_full((len(b),), self.ridge)
        L = Dense(A).norm() ** 2 / (4 * self.m) + ridge
        return Problem(Autograd(_ridge_logistic, self.n, L, (A, b, ridge)), Zero())


def _lengths(family: GaussianLeastSquares | GaussianRidgeLogistic, g: torch.Generator) -> Tensor:
    """n numbers between 1 and 1/spread, uniform in the logarithm."""
    return family.spread ** -torch.rand(family.n, generator=g, device=g.device)


def _ridge_logistic(x: Tensor, A: Tensor, b: Tensor, ridge: Tensor) -> Tensor:
    z = (A @ x[:, :, None])[:, :, 0]
    return softplus((1 - 2 * b) * z, threshold=40).mean(-1) + 0.5 * ridge * x.square().sum(-1)
