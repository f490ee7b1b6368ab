"""The penalties that the core knows: which numbers each takes, and what Python does with them.

A penalty's numbers are rows of a `Glm`, each a number or (1 or B, n). Compiled penalties have a
file each beside this one.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from proxlearn.core import kernel
from proxlearn.core.scaling import Scaling

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]


class PenaltyKind(Protocol):
    """What a `Glm` asks of its penalty; `rows` are the numbers of one problem."""

    @property
    def names(self) -> tuple[str, ...]:
        """The fields of a `Glm` that hold the numbers, in the order of `rows`."""

    @property
    def proximal(self) -> bool:
        """True where the compiled penalty has a proximal operator, which a start needs."""

    @property
    def tasks(self) -> int:
        """More than 1 where x is a matrix with so many columns, whose rows are the groups."""

    def unit(self, columns: Array) -> Array:
        """Units of A's columns, (n,), that the penalty allows, from those that suit the data."""

    def scale(self, units: Scaling, rows: tuple[Any, ...]) -> tuple[Any, ...]:
        """The numbers in the units of `units`."""

    def extend(
        self, rows: tuple[Any, ...], n: int, copies: int
    ) -> tuple["PenaltyKind", tuple[Any, ...]]:
        """The same with a coordinate more for each of `copies` of n, which is not penalised."""

    def times(self, factor: float, rows: tuple[Any, ...]) -> tuple[Any, ...]:
        """The numbers of `factor` times the penalty; bounds stay."""

    def compiled(self, n: int, rows: tuple[Any, ...]) -> Any:
        """The penalty of n coordinates as an object of the compiled core."""

    def penalises_all(self, rows: tuple[Any, ...]) -> bool:
        """True where every coordinate is penalised."""


@dataclass(frozen=True)
class Separable:
    """``sum_j l1_j |x_j| + l2_j/2 x_j^2`` with ``lower_j <= x_j <= upper_j``."""

    names = ("l1", "l2", "lower", "upper")
    proximal = True
    tasks = 1

    def unit(self, columns: Array) -> Array:
        return columns

    def scale(self, units: Scaling, rows: tuple[Any, ...]) -> tuple[Any, ...]:
        l1, l2, lower, upper = rows
        with np.errstate(over="ignore", under="ignore"):
            return (
                l1 / units.A / units.b / units.s, l2 / units.A / units.A / units.s,
                lower / units.b * units.A, upper / units.b * units.A,
            )  # fmt: skip

    def extend(
        self, rows: tuple[Any, ...], n: int, copies: int
    ) -> tuple["PenaltyKind", tuple[Any, ...]]:
        longer = []
        for row, end in zip(rows, (0.0, 0.0, -np.inf, np.inf), strict=True):
            filled = np.full((copies, n + 1), end)
            filled[:, :n] = row if isinstance(row, float) else np.reshape(row, (copies, n))
            longer.append(filled.ravel())
        return self, tuple(longer)

    def times(self, factor: float, rows: tuple[Any, ...]) -> tuple[Any, ...]:
        l1, l2, lower, upper = rows
        return factor * l1, factor * l2, lower, upper

    def compiled(self, n: int, rows: tuple[Any, ...]) -> Any:
        return kernel.Separable(n, *rows)

    def penalises_all(self, rows: tuple[Any, ...]) -> bool:
        return bool(np.all(rows[0] > 0) or np.all(rows[1] > 0))


SEPARABLE = Separable()


@dataclass(frozen=True, eq=False)
class Groups:
    """``sum_j l1_j |x_j| + sum_g level_g |x_g|_2``: the group of each coordinate, from 0 to G-1."""

    group_of: Integers
    """(n,)"""
    tasks: int = 1
    """More than 1 where the groups are the rows of a matrix with so many columns."""

    names = ("l1", "level")
    proximal = False

    @cached_property
    def starts(self) -> Integers:
        """(G + 1,): where each group begins in `members`."""
        sizes = np.bincount(self.group_of)
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)

    @cached_property
    def members(self) -> Integers:
        """(n,): the coordinates, group after group."""
        return np.argsort(self.group_of, kind="stable").astype(np.intp)

    def lengths(self, v: Array) -> Array:
        """|v_g| of a vector (n,), for each group, (G,)."""
        largest = float(np.max(np.abs(v), initial=0.0)) or 1.0  # squares of the rest are safe
        scaled = v / largest
        lengths: Array = np.sqrt(np.bincount(self.group_of, scaled * scaled)) * largest
        return lengths

    def unit(self, columns: Array) -> Array:
        """A group has one unit, that of its largest column."""
        largest = np.zeros(len(self.starts) - 1)
        np.maximum.at(largest, self.group_of, columns)
        return largest[self.group_of]

    def scale(self, units: Scaling, rows: tuple[Any, ...]) -> tuple[Any, ...]:
        l1, level = rows
        first = np.broadcast_to(units.A, len(self.group_of))[self.members[self.starts[:-1]]]
        with np.errstate(over="ignore", under="ignore"):
            return l1 / units.A / units.b / units.s, level / first / units.b / units.s

    def extend(
        self, rows: tuple[Any, ...], n: int, copies: int
    ) -> tuple["PenaltyKind", tuple[Any, ...]]:
        groups = len(self.starts) - 1
        l1 = np.append(np.broadcast_to(rows[0], n), 0.0)
        level = np.append(np.broadcast_to(rows[1], groups), 0.0)
        return Groups(np.append(self.group_of, groups)), (l1, level)

    def times(self, factor: float, rows: tuple[Any, ...]) -> tuple[Any, ...]:
        l1, level = rows
        return factor * l1, factor * level

    def compiled(self, n: int, rows: tuple[Any, ...]) -> Any:
        return kernel.Groups(self.starts, self.members, self.group_of, *rows, self.tasks)

    def penalises_all(self, rows: tuple[Any, ...]) -> bool:
        return bool(np.all(rows[0] > 0) or np.all(rows[1] > 0))


@dataclass(frozen=True)
class Simplex:
    """``x >= 0`` and ``sum x = level``, or ``sum x <= level`` with `slack`.

    Only least squares is solved with it, by `OnSimplex` and the active-set method in place of the
    loop, so that there is no compiled penalty.
    """

    slack: bool = False

    names = ("level",)
    proximal = False
    tasks = 1

    def unit(self, columns: Array) -> Array:
        """All columns have one unit, since the sum of x in several would be another constraint."""
        return np.full_like(columns, columns.max())

    def scale(self, units: Scaling, rows: tuple[Any, ...]) -> tuple[Any, ...]:
        return (rows[0] / units.b * np.max(units.A),)

    def extend(
        self, rows: tuple[Any, ...], n: int, copies: int
    ) -> tuple["PenaltyKind", tuple[Any, ...]]:
        raise NotImplementedError("the simplex has no intercept")

    def times(self, factor: float, rows: tuple[Any, ...]) -> tuple[Any, ...]:
        """A constraint has no multiples."""
        return rows

    def compiled(self, n: int, rows: tuple[Any, ...]) -> Any:
        raise NotImplementedError("the loop does not solve on the simplex")

    def penalises_all(self, rows: tuple[Any, ...]) -> bool:
        return True
