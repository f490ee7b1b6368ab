"""A family: a distribution of problems."""

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor

from proxlearn.checks import check_seed
from proxlearn.errors import InputError
from proxlearn.problems.problem import Problem

Seed = torch.Generator | int


class Family(ABC):
    """A distribution of problems. Subclasses are frozen dataclasses.

    Instances are drawn one after the other, so the first problems of a larger batch are those of
    a smaller one; every draw comes from the generator, the global random state is untouched.
    """

    @abstractmethod
    def draw(self, generator: torch.Generator) -> tuple[Tensor, ...]:
        """The data of one instance."""

    @abstractmethod
    def build(self, *data: Tensor) -> Problem:
        """The problem of the stacked data of a batch."""

    def fixed(self, generator: torch.Generator) -> "Family":
        """The family of one batch: itself, or one whose sizes have just been drawn."""
        return self

    def of_split(self, split: str) -> "Family":
        """The family with the data for "train", "validation" or "test"; itself without any."""
        return self

    def sample(self, batch: int, generator: Seed, **to: Any) -> Problem:
        """`batch` independent problems, float32 unless `to` says otherwise.

        `generator` is a torch.Generator or a seed; any seed, 0 included, gives the same bits
        again. `to` is passed to `Problem.to`: ``dtype=torch.float64``, ``device="cuda"``.
        """
        if batch < 1:
            raise InputError(f"batch is {batch}; expected at least one problem")
        if not isinstance(generator, torch.Generator):
            check_seed(generator)
            generator = torch.Generator().manual_seed(generator)
        family = self.fixed(generator)
        data = [family.draw(generator) for _ in range(batch)]
        problem = family.build(*(torch.stack(parts) for parts in zip(*data, strict=True)))
        return problem.to(**to) if to else problem


LARGEST = 2**31
"""No size of a family is larger: it would not fit into any memory."""


LEAST, MOST = 1e-30, 1e30
"""Range of a family's numbers: what float32, in which problems are drawn, can work with."""


def check_sizes(family: Family, low: int, high: int, *names: str) -> None:
    """Refuses parameters of a family that are not whole numbers from `low` to `high`."""
    for name in names:
        value = getattr(family, name)
        whole = hasattr(value, "__index__") and not isinstance(value, bool)
        if not whole or not low <= value <= high:
            raise InputError(
                f"{name} of {type(family).__name__} is {value!r}; "
                f"expected a whole number from {low} to {high}"
            )


def check_numbers(family: Family, low: float, high: float, *names: str) -> None:
    """Refuses parameters of a family that are not numbers from `low` to `high`."""
    for name in names:
        value = getattr(family, name)
        fine = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not fine or not low <= value <= high:
            raise InputError(
                f"{name} of {type(family).__name__} is {value!r}; "
                f"expected a number from {low:g} to {high:g}"
            )


def randn(generator: torch.Generator, *shape: int) -> Tensor:
    """Standard normal numbers."""
    return torch.randn(*shape, generator=generator, device=generator.device)


def sparse_vector(generator: torch.Generator, n: int, nonzeros: int) -> Tensor:
    """n numbers, `nonzeros` of them standard normal at uniform positions, the others 0."""
    x = torch.zeros(n, device=generator.device)
    where = torch.randperm(n, generator=generator, device=generator.device)[:nonzeros]
    x[where] = randn(generator, nonzeros)
    return x


def unit_columns(A: Tensor) -> Tensor:
    """A with each column divided by its length."""
    lengths: Tensor = A.norm(dim=0, keepdim=True)
    return A / lengths
