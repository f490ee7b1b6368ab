"""A family: a distribution of problems."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from typing import Any

import torch
from torch import Tensor

from proxlearn.checks import check_seed
from proxlearn.errors import InputError
from proxlearn.problems.problem import Problem

Seed = torch.Generator | int

LARGEST = 2**31
"""No size of a family is larger: it would not fit into any memory."""
LEAST, MOST = 1e-30, 1e30
"""Range of a family's numbers: what float32, in which problems are drawn, can work with."""
LIMITS = "limits"
"""Key of the `Limits` of a parameter in the metadata of its field."""


@dataclass(frozen=True)
class Limits:
    """The values that a parameter of a family may have."""

    low: float
    high: float
    whole: bool

    def check(self, family: "Family", name: str) -> None:
        """Refuse the value of this parameter unless it is a number within the limits."""
        value = getattr(family, name)
        kind = hasattr(value, "__index__") if self.whole else isinstance(value, (int, float))
        if not kind or isinstance(value, bool) or not self.low <= value <= self.high:
            what = "a whole number" if self.whole else "a number"
            raise InputError(
                f"{name} of {type(family).__name__} is {value!r}; "
                f"expected {what} from {self.low:.15g} to {self.high:.15g}"
            )


def whole(default: int, low: int = 1, high: int = LARGEST) -> Any:
    """A parameter of a family that is a whole number, such as a size."""
    return field(default=default, metadata={LIMITS: Limits(low, high, True)})


def number(default: float, low: float = LEAST, high: float = MOST) -> Any:
    """A parameter of a family that is a number, > 0 unless other limits are given."""
    return field(default=default, metadata={LIMITS: Limits(low, high, False)})


@dataclass(frozen=True)
class Family(ABC):
    """A distribution of problems. Subclasses are frozen dataclasses.

    Parameters that are declared by `whole` or `number` are checked. Instances are drawn one after
    the other, so the first problems of a larger batch are those of a smaller one. Every random
    number comes from the generator, and the global random state is untouched.
    """

    def __post_init__(self) -> None:
        for parameter in fields(self):
            if LIMITS in parameter.metadata:
                parameter.metadata[LIMITS].check(self, parameter.name)

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


class Union(Family):
    """A family each of whose batches belongs to one of several families, which `fixed` draws."""

    @abstractmethod
    def fixed(self, generator: torch.Generator) -> Family:
        """The family of one batch."""

    def draw(self, generator: torch.Generator) -> tuple[Tensor, ...]:
        raise NotImplementedError("a batch is drawn from the family that `fixed` returns")

    def build(self, *data: Tensor) -> Problem:
        raise NotImplementedError("a batch is built by the family that `fixed` returns")


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
