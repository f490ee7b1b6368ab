"""Families wide enough for real data: designs, sizes, penalties and noise are all drawn.

A batch has one size, drawn first; everything else is an instance's own. Five designs: independent
columns, neighbours correlated like a time series, a few common factors (gene expression,
questionnaires), a spectrum that falls like a power (natural images), and counts, mostly zero with a
long tail (words in a text).
"""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from proxlearn.problems.operators import Dense
from proxlearn.problems.penalties import L1
from proxlearn.problems.problem import Problem
from proxlearn.problems.smooth import LeastSquares, Logistic, Smooth, Softmax
from proxlearn.training.families.family import (
    LARGEST,
    MOST,
    Family,
    Limits,
    Union,
    number,
    randn,
    sparse_vector,
    whole,
)


def uniform(generator: torch.Generator, low: float, high: float) -> float:
    """One number, uniform between two."""
    u = torch.rand((), generator=generator, device=generator.device, dtype=torch.float64)
    return low + (high - low) * float(u)


def log_uniform(generator: torch.Generator, low: float, high: float) -> float:
    """One number whose logarithm is uniform."""
    return math.exp(uniform(generator, math.log(low), math.log(high)))


def design(generator: torch.Generator, m: int, n: int) -> Tensor:
    """A matrix (m, n) with standardised columns, of one of the five kinds."""
    kind = int(uniform(generator, 0, 5))
    A = randn(generator, m, n)
    if kind == 1:
        rho = uniform(generator, 0.3, 0.98)
        lags = torch.arange(n, dtype=torch.float64, device=A.device)
        covariance = rho ** (lags[:, None] - lags).abs()
        A = A @ torch.linalg.cholesky(covariance).T.to(A.dtype)
    elif kind == 2:
        factors = int(uniform(generator, 1, 11))
        common = randn(generator, m, factors) @ randn(generator, factors, n)
        A = common / math.sqrt(factors) + log_uniform(generator, 0.1, 2) * A
    elif kind == 3:
        rank = min(m, n)
        decay = torch.arange(1, rank + 1, device=A.device) ** -uniform(generator, 0.2, 1.2)
        smooth = (randn(generator, m, rank) * decay) @ randn(generator, rank, n)
        A = smooth + 0.01 * A
    elif kind == 4:
        topics = randn(generator, m, 3) @ randn(generator, 3, n) / math.sqrt(3)
        A = A + uniform(generator, 0, 1) * topics
        rare = torch.rand(n, generator=generator, device=A.device) * uniform(generator, 0, 1.5)
        A = (uniform(generator, 0.3, 1.5) * A).exp() * (rare < A) + 1e-3 * randn(generator, m, n)
    A = A - A.mean(0)
    scale: Tensor = A.norm(dim=0).clamp(min=1e-6) / math.sqrt(m)
    return A / scale


@dataclass(frozen=True)
class Wide(Family):
    """What the wide families share: sizes between two bounds, lam between two parts of lam_max."""

    smallest: int = whole(30)
    """Least number of columns."""
    fewest: int = whole(30)
    """Least number of rows."""
    rows: int = 1000
    columns: int = 1000
    entries: int = whole(40_000)
    """Largest number of entries of A, which keeps a minibatch in memory and cache."""
    lam_low: float = number(0.01)
    lam_high: float = 0.9
    """lam / lam_max is log-uniform between these."""

    m: int = whole(0, 0)
    n: int = whole(0, 0)
    """Size of the batch, drawn where it is 0."""

    def __post_init__(self) -> None:
        super().__post_init__()
        Limits(self.fewest, LARGEST, True).check(self, "rows")
        Limits(self.smallest, LARGEST, True).check(self, "columns")
        Limits(self.lam_low, MOST, False).check(self, "lam_high")

    def fixed(self, generator: torch.Generator) -> "Wide":
        """m and n log-uniform, below `entries` together."""
        if self.m and self.n:
            return self
        m = round(log_uniform(generator, self.fewest, self.rows))
        widest = max(self.smallest, min(self.columns, self.entries // m))
        return replace(self, m=m, n=round(log_uniform(generator, self.smallest, widest)))

    def lam(self, generator: torch.Generator, gradient_at_zero: Tensor) -> Tensor:
        """A part of lam_max = ||grad f(0)||_inf, above which x = 0."""
        part = log_uniform(generator, self.lam_low, self.lam_high)
        return part * gradient_at_zero.abs().amax().clamp(min=1e-6)

    def truth(self, generator: torch.Generator) -> Tensor:
        """A sparse x, 1% to 50% of it non-zero."""
        return sparse_vector(
            generator, self.n, max(1, round(self.n * log_uniform(generator, 0.01, 0.5)))
        )

    @abstractmethod
    def loss(self, A: Dense, b: Tensor) -> Smooth:
        """The smooth term of a batch."""

    def build(self, *data: Tensor) -> Problem:
        A, b, lam = data
        return Problem(self.loss(Dense(A), b), L1(lam))


@dataclass(frozen=True)
class WideLasso(Wide):
    """LASSO over all designs, with noise between 1% and 100% of the signal."""

    def draw(self, generator: torch.Generator) -> tuple[Tensor, ...]:
        A = design(generator, self.m, self.n) / math.sqrt(self.m)
        signal, noise = A @ self.truth(generator), randn(generator, self.m)
        level = log_uniform(generator, 0.01, 1.0)
        b = signal + level * noise * (signal.norm() / noise.norm())
        return A, b, self.lam(generator, A.T @ b)

    def loss(self, A: Dense, b: Tensor) -> Smooth:
        return LeastSquares(A, b)


@dataclass(frozen=True)
class WideLogistic(Wide):
    """Logistic regression over all designs, from nearly separable to nearly random labels."""

    lam_low: float = number(0.003)

    def draw(self, generator: torch.Generator) -> tuple[Tensor, ...]:
        A = design(generator, self.m, self.n)
        scores = A @ self.truth(generator)
        scores = scores / scores.std().clamp(min=1e-6) * log_uniform(generator, 0.5, 20)
        scores = scores + uniform(generator, -1, 1)
        b = (torch.sigmoid(scores) > torch.rand(self.m, generator=generator)).to(A.dtype)
        return A, b, self.lam(generator, A.T @ (0.5 - b) / self.m)

    def loss(self, A: Dense, b: Tensor) -> Smooth:
        return Logistic(A, b)


@dataclass(frozen=True)
class WideSoftmax(Wide):
    """Several classes over all designs; the number of classes is drawn with the size."""

    columns: int = 100
    entries: int = whole(15_000)
    lam_low: float = number(0.003)
    classes: int = 0
    """Number of classes, drawn where it is 0."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.classes != 0:
            Limits(2, LARGEST, True).check(self, "classes")

    def fixed(self, generator: torch.Generator) -> "WideSoftmax":
        """Draw sizes, and between 3 and 10 classes."""
        sized = super().fixed(generator)
        classes = self.classes or int(uniform(generator, 3, 11))
        return replace(self, m=sized.m, n=sized.n, classes=classes)

    def draw(self, generator: torch.Generator) -> tuple[Tensor, ...]:
        A = design(generator, self.m, self.n)
        W = torch.stack([self.truth(generator) for _ in range(self.classes)])
        scores = A @ W.T
        scores = scores / scores.std().clamp(min=1e-6) * log_uniform(generator, 0.5, 10)
        gumbel = -torch.log(-torch.log(torch.rand(scores.shape, generator=generator) + 1e-9) + 1e-9)
        labels = (scores + gumbel).argmax(-1)
        b = torch.nn.functional.one_hot(labels, self.classes).T.to(A.dtype).contiguous()
        return A, b, self.lam(generator, (1 / self.classes - b) @ A / self.m)

    def loss(self, A: Dense, b: Tensor) -> Smooth:
        return Softmax(A, b, self.classes)


@dataclass(frozen=True)
class General(Union):
    """The union: a batch is LASSO (2 in 5), logistic (2 in 5) or softmax (1 in 5)."""

    def fixed(self, generator: torch.Generator) -> Family:
        """Draw the kind, then its size."""
        kinds = [WideLasso(), WideLasso(), WideLogistic(), WideLogistic(), WideSoftmax()]
        return kinds[int(uniform(generator, 0, len(kinds)))].fixed(generator)
