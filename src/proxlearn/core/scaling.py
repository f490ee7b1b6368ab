"""Powers of two that bring the numbers of a problem to moderate size, exactly."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from proxlearn.core import kernel

Array = npt.NDArray[np.float64]

MODERATE: tuple[float, float] = kernel.MODERATE
"""Sizes of numbers whose squares and their products stay well inside the range of float64."""


def is_moderate(A: Any, b: Array, s: Any, *rows: Any, largest: float | None = None) -> bool:
    """True where no square of a number overflows or vanishes, which is nearly always so.

    `largest` is the largest magnitude of A's entries, found here where it is not given.
    """
    if largest is None:
        entries = A.data if scipy.sparse.issparse(A) else A
        largest = kernel.largest_magnitude(entries) if entries.size else 0.0
    return bool(largest < np.inf and kernel.are_moderate(float(largest), b, s, *rows))


def moderate_rows(b: Array) -> npt.NDArray[np.bool_]:
    """Which rows of b (B, m) hold numbers of moderate size alone, (B,)."""
    if kernel.are_moderate(b):
        return np.ones(len(b), dtype=bool)
    return np.array([kernel.are_moderate(np.ascontiguousarray(row)) for row in b])


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
    def choose(A: Any, b: Array, s: Any, scales: bool, unit: Callable[[Array], Array]) -> "Scaling":
        """Units in which the largest entry of each column and of s is about 1.

        That of b as well, where the loss `scales` with b. `unit` makes units of the columns (n,)
        such as the penalty allows.
        """
        columns = abs(A).max(axis=0)
        columns = columns.toarray().ravel() if scipy.sparse.issparse(columns) else columns
        by_column = _power_of_two(np.asarray(columns, dtype=np.float64))
        size = float(_power_of_two(np.abs(b).max())) if scales else 1.0
        return Scaling(unit(by_column), size, float(_power_of_two(np.max(s))))

    def scale_data(self, A: Any, b: Array, s: Any) -> tuple[Any, Array, Any]:
        """A, b and the weights of the samples in these units."""
        if scipy.sparse.issparse(A):
            A = (A @ scipy.sparse.diags_array(1.0 / self.A)).tocsc()
        else:
            A = np.asarray(A, dtype=np.float64) / self.A
        return A, b / self.b, s / self.s

    def repeated(self, copies: int) -> "Scaling":
        """The same for an x that has the columns of A several times."""
        return self if copies == 1 else replace(self, A=np.tile(self.A, copies))

    def scale_options(self, options: dict[str, Any], those: tuple[str, ...]) -> dict[str, Any]:
        """Options of the loss; `those` are in the units of b."""
        return options | {name: options[name] / self.b for name in those}


UNCHANGED = Scaling()
"""Nothing is rescaled."""


def _power_of_two(size: Any) -> Any:
    """The power of two next to a size; 1 for 0."""
    exponent = np.minimum(np.frexp(size)[1], 1023)  # 2^1024 is not a number of float64
    return np.where(np.asarray(size) > 0, np.ldexp(1.0, exponent), 1.0)
