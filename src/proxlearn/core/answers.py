"""What the core found for some problems, as arrays."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from proxlearn.core.single import Glm

Array = npt.NDArray[np.float64]

STATUSES = ("SOLVED", "MAX_ITER", "TIME_LIMIT", "NUMERICAL_ERROR")
"""What the numbers in `Answer.status` stand for."""


@dataclass(frozen=True)
class Answer:
    """What the core found for B problems; a path of K values has arrays of (K, B, ...)."""

    x: npt.NDArray[Any]
    """(B, n), in the precision of A."""
    intercept: Array
    """(B,)"""
    objective: Array
    """(B,)"""
    gap: Array
    """An upper bound on F(x) - F*, (B,); infinite where none is known."""
    status: npt.NDArray[np.int8]
    """(B,), places in `STATUSES`."""
    iterations: npt.NDArray[np.int64]
    """Working sets, (B,)."""
    passes: Array
    """Products with all of A or A^T, (B,)."""

    def __getitem__(self, k: int) -> "Answer":
        """The answers for the k-th value of a path."""
        return Answer(
            self.x[k], self.intercept[k], self.objective[k], self.gap[k],
            self.status[k], self.iterations[k], self.passes[k],
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.objective)

    def __iter__(self) -> "Iterator[Answer]":
        return (self[k] for k in range(len(self)))


def answer_of(glm: Glm, x: Array, constant: Array, numbers: Array) -> Answer:
    """The answer; `numbers` (..., 5) are objective, gap, status, iterations and passes."""
    objective, gap, status, iterations, passes = (numbers[..., i] for i in range(5))
    precision = np.float32 if glm.A.dtype == np.float32 else np.float64
    return Answer(
        x.astype(precision, copy=False), constant, objective, gap,
        status.astype(np.int8), iterations.astype(np.int64), passes,
    )  # fmt: skip


def collected(glm: Glm, rows: list[tuple[Any, ...]]) -> Answer:
    """The answer of rows: x, intercept and the five other numbers of each problem."""
    x, constant, *numbers = zip(*rows, strict=True)
    points = x[0][None] if len(x) == 1 else np.array(x)
    return answer_of(glm, points, np.array(constant), np.column_stack(numbers))
