"""Starts for the core: a few iterations of a first-order method before the exact one.

A start changes the point at which the core begins, and so the time that it takes. It changes
nothing about what is proven at the end. `proxlearn.solving.named_starts` has the starts by name.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from proxlearn.checks import check_size
from proxlearn.core import kernel

Array = npt.NDArray[np.float64]

MOST = 24
"""Iterations of a start at most.

Tried once, on 2026-11-18, with 12, 16 and 24 iterations of the rule `logistic` on logistic
regressions of 300 x 20 to 20,000 x 50: they are about as good on small ones; from 400 columns on,
24 was up to a third faster than 16. benchmarks/starts.py measures the 24 that were chosen.
"""
PATIENCE = 2
"""Iterations in a row in which no coordinate changes its sign, after which a start ends.

On 12 logistic regressions (600 x 200 to 4000 x 100) with the rule `logistic`, 1 and 4 take 0.96 and
1.06 times as long (2026-11-19, CPU time).
"""


class Start(Protocol):
    """What gives the core a point to begin at."""

    @property
    def part(self) -> float:
        """The part of all columns that must violate their optimality conditions at x0."""

    def compiled(self, solver: Any, curvature: float, step: float) -> Any:
        """The method for the problem of a compiled solver; `step` is 1/L, or 0 if not known."""


@dataclass(frozen=True)
class FistaStart:
    """Iterations of FISTA, with or without restart."""

    restart: bool = False
    part: float = 0.0

    def compiled(self, solver: Any, curvature: float, step: float) -> Any:
        """The method for one problem."""
        return kernel.FistaStart(solver.A, solver.f, solver.r, curvature, step, self.restart)


@dataclass(frozen=True)
class CompactSettings:
    """What must be known of a compact rule beside its weights."""

    hidden: int = 16
    """Units in each of the two hidden layers."""
    largest_log_p: float = 2.0
    """p is at most exp(this) / L."""

    def __post_init__(self) -> None:
        check_size("hidden", self.hidden, 256)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The weights by name, in the order in which the compiled rule takes them."""
        H = self.hidden
        return {
            "coordinate_weight": (H, 4), "instance_weight": (5, H), "first_bias": (H,),
            "hidden_weight": (H, H), "hidden_bias": (H, 1),
            "head_weight": (2, H), "head_bias": (2, 1),
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class CompactStart:
    """Iterations of the compact rule (`proxlearn.methods.rules.compact`) with given weights."""

    settings: CompactSettings
    weights: tuple[Array, ...]
    """In the order of `CompactSettings.shapes`, biases as vectors."""
    part: float = 0.0

    @classmethod
    def of(cls, settings: CompactSettings, tensors: dict[str, Any]) -> "CompactStart":
        """The start with weights by name, of any precision."""
        arrays = []
        for name in settings.shapes():
            array = np.ascontiguousarray(tensors[name], dtype=np.float64)
            arrays.append(array.ravel() if name.endswith("bias") else array)
        return cls(settings, tuple(arrays))

    def compiled(self, solver: Any, curvature: float, step: float) -> Any:
        """The method for one problem."""
        top = float(self.settings.largest_log_p)
        A, f, r = solver.A, solver.f, solver.r
        return kernel.CompactStart(A, f, r, curvature, step, self.weights, top)
