"""A way to call a solver: settings, what it does before it can solve, and its tolerances."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from contest.task import Task

GRID = tuple(float(f"{10 ** (-k / 2):.2g}") for k in range(29))
"""Tolerances from 1 to 1e-14, two a decade."""
EXACT = (0.0,)
"""The grid of a method that has no tolerance: it ends at the solution."""

LARS_UP_TO = 1000
"""Columns up to which LARS is tried: it takes a step, and a product, for each non-zero."""


@dataclass(frozen=True)
class Variant:
    """One setting of a solver."""

    settings: str
    prepare: Callable[[Task], Any]
    """Conversions, Gram matrices, constants: all that is done once for given data; timed."""
    solve: Callable[[Any, float], np.ndarray]
    """What was prepared and a tolerance to X (B, n); timed."""
    grid: tuple[float, ...] = GRID
    whole: bool = False
    """Spreads its work over the cores itself, or cannot; else each core gets its own problems."""


OURS = ("proxlearn", "core alone", "learned start", "FISTA start")
"""The first of every table: `solve` as it is called, and the core with each start."""


@dataclass(frozen=True)
class Peer:
    """A solver and the settings among which the calibration chooses the fastest."""

    name: str
    variants: tuple[Variant, ...] = ()
    absent: str = ""
    """Why it does not take part."""


One = Callable[[np.ndarray, np.ndarray, float, float], np.ndarray]
"""(A in Fortran order, b, lam, tol) to x."""


def one_by_one(
    settings: str, one: One, dtype: type = np.float64, grid: tuple[float, ...] = GRID
) -> Variant:
    """A solver of single problems: its data are copied to Fortran order first."""

    def prepare(task: Task) -> Any:
        return list(zip(task.columns(dtype), task.targets(dtype), task.lam.tolist(), strict=True))

    def solve(problems: Any, tol: float) -> np.ndarray:
        return np.stack([one(A, b, lam, tol) for A, b, lam in problems])

    return Variant(settings, prepare, solve, grid)


SINGLE = GRID[:17]
"""Tolerances for float32, which cannot see gaps below 1e-8."""
