"""The description of the penalty of a linear model by plain arrays, which every engine reads.

`Separable` penalises and bounds each coordinate by itself, `Grouped` penalises groups of them, and
`OnSimplex` constrains their sum. Each says what the core's `describe` takes (`numbers`), and makes
an object of PyTorch when that is asked for (`term`).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from proxlearn.core.penalty_kinds import Groups, Simplex
from proxlearn.core.single import of_problem
from proxlearn.problems.arrays import to_numpy

if TYPE_CHECKING:
    from proxlearn.problems.penalties import Penalty


@dataclass
class Separable:
    """The penalty and the bounds; arrays of NumPy or PyTorch, None for what is not there."""

    lam: Any = None
    """(B,)"""
    lam2: Any = None
    """(B,)"""
    weights: Any = None
    """(B, n) or (1, n); 0 leaves a coordinate unpenalised."""
    lower: Any = None
    """(B or 1, n or 1)"""
    upper: Any = None
    """(B or 1, n or 1)"""

    separable = True
    squares_only = False
    tasks = 1
    proximal = True
    radius = None
    at_most = False

    @property
    def batch(self) -> int:
        """Number of instances, 1 where all instances of a problem share the penalty."""
        parts = (self.lam, self.lam2, self.weights, self.lower, self.upper)
        return max([1, *[len(part) for part in parts if part is not None]])

    @property
    def per_instance(self) -> dict[str, Any]:
        """Its numbers by name, each with an axis for the instances, or None."""
        return {"lam": self.lam, "lam2": self.lam2, "weights": self.weights}

    @property
    def nonnegative(self) -> bool:
        """True where every coordinate is bounded by 0 from below, and by nothing from above."""
        return self.upper is None and self.lower is not None and not np.any(to_numpy(self.lower))

    @property
    def has_path(self) -> bool:
        """True where lam can be varied: there is one, and no constraint but x >= 0."""
        return self.lam is not None and (self.lower is None or self.nonnegative)

    def for_tasks(self, tasks: int) -> None:
        """None: the core knows several tasks with row groups only."""

    def times(self, n: int, level: Any) -> Any:
        """w_j times a level (B,) or None, a number or (B or 1, n)."""
        if level is None:
            return 0.0
        if self.weights is None and len(level) == 1:
            return float(level[0])
        weights = np.ones((1, n)) if self.weights is None else _double(self.weights)
        return weights * _double(level)[:, None]

    @property
    def uniform(self) -> tuple[float, float, float, float] | None:
        """l1, l2, lower and upper of one instance, if all coordinates share them; None if not."""
        lower = -np.inf
        if self.weights is not None or self.upper is not None:
            return None
        if self.lower is not None:
            if self.lower.size > 1:
                return None
            lower = float(self.lower[0, 0])
        elif self.lam is None:
            return None
        l1 = 0.0 if self.lam is None else float(self.lam[0])
        return l1, 0.0 if self.lam2 is None else float(self.lam2[0]), lower, np.inf

    def bounds(self, n: int) -> tuple[Any, Any]:
        """Lower and upper, each a number or (B or 1, n)."""
        low = -np.inf if self.lower is None else _double(self.lower) * np.ones(n)
        return low, np.inf if self.upper is None else _double(self.upper) * np.ones(n)

    def numbers(self, n: int) -> dict[str, Any]:
        """What the core's `describe` takes for n coordinates."""
        lower, upper = self.bounds(n)
        l1, l2 = self.times(n, self.lam), self.times(n, self.lam2)
        return {"l1": l1, "l2": l2, "lower": lower, "upper": upper}

    def at_one(self) -> "Separable":
        """The same with lam = 1; lam2 keeps its ratio to lam."""
        ratio = None if self.lam2 is None else _double(self.lam2) / _double(self.lam)
        return replace(self, lam=np.ones(1), lam2=ratio)

    def free(self, n: int, i: int) -> npt.NDArray[np.bool_]:
        """Which coordinates of instance i are not penalised, (n,)."""
        if self.weights is None:
            return np.zeros(n, dtype=bool)
        return np.asarray(of_problem(_double(self.weights), i) == 0)

    def lam_max(self, c: npt.NDArray[np.float64], i: int) -> float:
        """The smallest lam for which 0 is optimal in instance i, where -df/dx at 0 is c (n,)."""
        sizes = np.abs(c) if self.lower is None else c
        if self.weights is None:
            return float(np.max(sizes, initial=0.0))
        w = of_problem(_double(self.weights), i)
        return float(np.max(sizes[w > 0] / w[w > 0], initial=0.0))

    def term(self) -> "Penalty":
        """The same as an object of PyTorch."""
        from proxlearn.problems.penalties import L1, ElasticNet, NonNegative, NonNegativeElasticNet
        from proxlearn.problems.tensors import as_tensor

        if self.lam is None:
            return NonNegative()
        lam = as_tensor(self.lam)
        weights = None if self.weights is None else as_tensor(self.weights)
        lam2 = None if self.lam2 is None else as_tensor(self.lam2)
        if self.lower is not None:
            return NonNegativeElasticNet(lam, 0 * lam if lam2 is None else lam2, weights)
        return L1(lam, weights) if lam2 is None else ElasticNet(lam, lam2, weights)


@dataclass(frozen=True)
class Grouped:
    """``lam (l1_ratio sum_j v_j |x_j| + (1 - l1_ratio) sum_g w_g |x_g|)``.

    Arrays of NumPy or PyTorch; None for what is not there.
    """

    lam: Any
    """(B,)"""
    groups: Any
    """(n,): the group of each coordinate, from 0 to G-1."""
    weights: Any = None
    """w (B or 1, G); 0 leaves a group without its length."""
    l1_ratio: Any = None
    """(B,); None for group l1 alone."""
    l1_weights: Any = None
    """v (B or 1, n)"""

    tasks: int = 1
    """More than 1 where the groups are the rows of a matrix with so many columns."""

    separable = False
    has_path = True
    squares_only = False
    proximal = False
    uniform = None
    radius = None
    at_most = False

    @property
    def batch(self) -> int:
        """Number of instances, 1 where all instances of a problem share the penalty."""
        return max(len(part) for part in self.per_instance.values() if part is not None)

    @property
    def per_instance(self) -> dict[str, Any]:
        """Its numbers by name, each with an axis for the instances, or None."""
        names = ("lam", "weights", "l1_ratio", "l1_weights")
        return {name: getattr(self, name) for name in names}

    def for_tasks(self, tasks: int) -> "Grouped | None":
        """The same for several tasks; None where the groups are not the rows of (n, T)."""
        groups = to_numpy(self.groups)
        rows = np.array_equal(groups, np.arange(len(groups)) // tasks)
        return replace(self, tasks=tasks) if rows and self.l1_ratio is None else None

    @cached_property
    def layout(self) -> Groups:
        """The groups as the core takes them."""
        return Groups(np.ascontiguousarray(to_numpy(self.groups), dtype=np.intp), self.tasks)

    def numbers(self, n: int) -> dict[str, Any]:
        """What the core's `describe` takes for n coordinates."""
        lam = _double(self.lam)[:, None]
        alpha = 0.0 if self.l1_ratio is None else _double(self.l1_ratio)[:, None]
        level, l1 = (1.0 - alpha) * lam, alpha * lam
        if self.weights is not None:
            level = level * _double(self.weights)
        if self.l1_weights is not None:
            l1 = l1 * _double(self.l1_weights)
        l1 = np.broadcast_to(l1, (len(l1), n))
        level = np.broadcast_to(level, (len(level), len(self.layout.starts) - 1))
        given = {"level": level, "groups": self.layout}
        return given if self.l1_ratio is None else given | {"l1": l1}

    def at_one(self) -> "Grouped":
        """The same with lam = 1."""
        return replace(self, lam=np.ones(1))

    def free(self, n: int, i: int) -> npt.NDArray[np.bool_]:
        """Which coordinates of instance i are not penalised, (n,)."""
        numbers = self.at_one().numbers(n)
        level, l1 = of_problem(numbers["level"], i), numbers.get("l1")
        free = level[self.layout.group_of] == 0
        return np.asarray(free if l1 is None else free & (of_problem(l1, i) == 0))

    def lam_max(self, c: npt.NDArray[np.float64], i: int) -> float:
        """The smallest lam for which 0 is optimal in instance i, where -df/dx at 0 is c (n,)."""
        c = np.where(self.free(len(c), i), 0.0, c)
        top = float(np.max(np.abs(c), initial=0.0))
        if not 0 < top < np.inf:
            return top
        # In units of `top`: the squares of a group may leave the range of float64.
        return top / self.at_one().largest_scale(c / top, i)

    def largest_scale(self, c: npt.NDArray[np.float64], i: int) -> float:
        """The largest s for which r* is finite at s c (n,) in instance i; infinite where c is 0."""
        numbers = self.numbers(len(c))
        level = np.ascontiguousarray(of_problem(numbers["level"], i))
        l1 = (
            np.ascontiguousarray(of_problem(numbers["l1"], i))
            if "l1" in numbers
            else np.zeros(len(c))
        )
        return float(
            self.layout.compiled(len(c), (l1, level)).largest_scale(np.ascontiguousarray(c))
        )

    def term(self) -> "Penalty":
        """The same as an object of PyTorch."""
        from proxlearn.problems.penalties import GroupL1, SparseGroupL1
        from proxlearn.problems.tensors import as_tensor

        def tensor(value: Any) -> Any:
            return None if value is None else as_tensor(value)

        lam, weights = as_tensor(self.lam), tensor(self.weights)
        groups = as_tensor(self.groups).to(lam.device)
        if self.l1_ratio is None:
            return GroupL1(lam, groups, weights)
        return SparseGroupL1(
            lam, groups, as_tensor(self.l1_ratio), weights, tensor(self.l1_weights)
        )


@dataclass(frozen=True)
class OnSimplex:
    """``x >= 0`` and ``sum x = radius``, or ``sum x <= radius`` with `at_most`."""

    radius: Any
    """(B,), of NumPy or PyTorch."""
    at_most: bool = False

    separable = False
    has_path = False
    squares_only = True
    proximal = False
    uniform = None
    tasks = 1
    lam: Any = None

    @property
    def batch(self) -> int:
        """Number of instances, 1 where all instances of a problem share the constraint."""
        return len(self.radius)

    @property
    def per_instance(self) -> dict[str, Any]:
        """The radius, (B,)."""
        return {"radius": self.radius}

    def numbers(self, n: int) -> dict[str, Any]:
        """What the core's `describe` takes for n coordinates."""
        return {"level": _double(self.radius)[:, None], "simplex": Simplex(self.at_most)}

    def for_tasks(self, tasks: int) -> None:
        """None: the core knows several tasks with row groups only."""
        return

    def at_one(self) -> "OnSimplex":
        """The same: there is no lam."""
        return self

    def free(self, n: int, i: int) -> npt.NDArray[np.bool_]:
        """No coordinate is free."""
        return np.zeros(n, dtype=bool)

    def lam_max(self, c: npt.NDArray[np.float64], i: int) -> float:
        """There is no lam."""
        return 0.0

    def term(self) -> "Penalty":
        """The same as an object of PyTorch."""
        from proxlearn.problems.penalties import Simplex, SumAtMost
        from proxlearn.problems.tensors import as_tensor

        return (SumAtMost if self.at_most else Simplex)(as_tensor(self.radius))


def _double(value: Any) -> npt.NDArray[np.float64]:
    """In float64, in C order."""
    return np.ascontiguousarray(to_numpy(value), dtype=np.float64)
