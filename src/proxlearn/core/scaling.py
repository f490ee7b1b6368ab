"""Powers of two that bring the numbers of a problem to moderate size, exactly."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from proxlearn.core import kernel

Array = npt.NDArray[np.float64]

MODERATE = (2.0**-200, 2.0**200)
"""Sizes of numbers whose squares and their products stay well inside the range of float64."""


def is_moderate(A: Any, b: Array, s: Array, *rows: Array, largest: float | None = None) -> bool:
    """True where no square of a number overflows or vanishes, which is nearly always so.

    `largest` is the largest magnitude of A's entries, found here where it is not given.
    """
    if largest is None:
        entries = A.data if scipy.sparse.issparse(A) else A
        largest = kernel.largest_magnitude(entries) if entries.size else 0.0
    sizes = largest == 0.0 or MODERATE[0] <= largest <= MODERATE[1]
    return bool(sizes and kernel.are_moderate(*MODERATE, b, s, *rows))


@dataclass(frozen=True)
class Scaling:
    """Powers of two by which data are divided, so that squares neither overflow nor vanish."""

    A: Array | float = 1.0
    """For each column, (n,)."""
    b: float = 1.0
    s: float = 1.0

    @property
    def x(self) -> Any:
        return self.b / self.A

    @property
    def objective(self) -> float:
        return self.s * self.b * self.b

    @staticmethod
    def choose(A: Any, b: Array, s: Array, squares: bool) -> "Scaling":
        """Units in which the largest entry of each column, of b and of s is about 1."""
        columns = abs(A).max(axis=0)
        columns = columns.toarray().ravel() if scipy.sparse.issparse(columns) else columns
        by_column = _power_of_two(np.asarray(columns, dtype=np.float64))
        size = float(_power_of_two(np.abs(b).max())) if squares else 1.0
        return Scaling(by_column, size, float(_power_of_two(s.max())))

    def scale_data(self, A: Any, b: Array, s: Array) -> tuple[Any, Array, Array]:
        """A, b and the weights of the samples in these units."""
        if scipy.sparse.issparse(A):
            A = (A @ scipy.sparse.diags_array(1.0 / self.A)).tocsc()
        else:
            A = np.asarray(A, dtype=np.float64) / self.A
        return A, b / self.b, s / self.s

    def scale_penalty(self, l1: Array, l2: Array, lower: Array, upper: Array) -> tuple[Array, ...]:
        """The penalty's numbers in these units."""
        with np.errstate(over="ignore", under="ignore"):
            return (
                l1 / self.A / self.b / self.s, l2 / self.A / self.A / self.s,
                lower / self.b * self.A, upper / self.b * self.A,
            )  # fmt: skip


UNCHANGED = Scaling()
"""Nothing is rescaled."""


def _power_of_two(size: Any) -> Any:
    """The power of two next to a size; 1 for 0."""
    exponent = np.frexp(size)[1]
    return np.where(np.asarray(size) > 0, np.ldexp(1.0, exponent), 1.0)
