"""One problem, in the form in which the compiled solver takes it."""

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from proxlearn.core import kernel
from proxlearn.core.dual_cone import strictly_feasible
from proxlearn.core.reduction import Reduction, reduction, weighted_mean
from proxlearn.core.scaling import UNCHANGED, Scaling, is_moderate

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Limits:
    """When a solve stops."""

    tol: float = 1e-6
    max_iter: int = 1000
    seconds: float = math.inf


@dataclass(frozen=True)
class Glm:
    """Problems that share their loss: A (m, n), (B, m, n) or sparse, and arrays that broadcast.

    b is (B, m); weights of the samples (m,) or (B, m); l1, l2, lower and upper (1 or B, n).
    """

    A: Any
    b: Array
    loss: str
    sample_weight: Array
    l1: Array
    l2: Array
    lower: Array
    upper: Array
    intercept: bool = False
    largest: float | None = None

    @property
    def batch(self) -> int:
        """Number of problems."""
        own = len(self.A) if self.A.ndim == 3 else 1
        rows = self.b, self.sample_weight, self.l1, self.l2, self.lower, self.upper
        return max(own, *map(len, rows))


class Single:
    """One problem in the units in which the core solves it."""

    def __init__(
        self,
        glm: Glm,
        i: int,
        start: Array | None,
        factor: float = 1.0,
        reductions: "Reductions | None" = None,
    ):
        A = glm.A
        if A.ndim == 3:
            A = A[i if len(A) > 1 else 0]
        b, s = glm.b[i if len(glm.b) > 1 else 0], glm.sample_weight
        s = s[i if len(s) > 1 else 0]
        rows: tuple[Array, ...] = glm.l1, glm.l2, glm.lower, glm.upper
        rows = tuple([v[i if len(v) > 1 else 0] for v in rows])
        self.glm, self.place, self.n = glm, i, A.shape[1]
        self.squares = glm.loss == "squares"
        self.single, self.units = A.dtype == np.float32, UNCHANGED
        if not is_moderate(A, b, s, *rows, largest=glm.largest):
            self.units, self.single = Scaling.choose(A, b, s, self.squares), False
            A, b, s = self.units.scale_data(A, b, s)
            rows = self.units.scale_penalty(*rows)
        self.mean: Array | None = None
        self.reduced: Reduction | None = None
        self.direct: Single | None = None
        self.middle = 0.0
        ones = False
        if glm.intercept:
            share = s / s.sum()
            self.mean = weighted_mean(A, share)
            if self.squares:
                self.middle = float(share @ b)
                b = b - self.middle
            else:
                ones = True
                last = (0.0, 0.0, -np.inf, np.inf)
                rows = tuple(np.append(row, end) for row, end in zip(rows, last, strict=True))
        self.rows = rows
        if reductions is not None and self.units is UNCHANGED:
            reduced = reductions.of(A, s, self.mean)
            if reduced is not None:
                self._reduce(reduced, b, start, factor)
                return
        loss = kernel.Squares(b, s) if self.squares else kernel.Logistic(b, s)
        penalty = kernel.Separable(*self._penalty(factor))
        first = None if start is None else self._inward(start)
        self.solver = kernel.Solver(_data(A, ones, self.mean), loss, penalty, first)
        if self.squares and penalty.has_one_sided():
            inward = strictly_feasible(A, s, rows, self.mean)
            if inward is not None:
                self.solver.point_inside(inward)

    def _directly(self, limits: Limits, until: float, factor: float) -> tuple[Any, ...]:
        """Solve the problem itself from now on, where rounding hides the reduced one's gap."""
        x = np.empty(self.n)
        self.solver.solution(x)
        self.direct = Single(self.glm, self.place, x, factor)
        return self.direct.solve(limits, until, factor)

    def _reduce(self, reduced: Reduction, b: Array, start: Array | None, factor: float) -> None:
        """Solve a square problem in place of a tall one."""
        self.reduced = reduced
        targets, offsets, sizes = reduced.targets(b[None])
        loss = kernel.Squares(targets[0], np.ones(self.n))
        first = None if start is None else self._inward(start)
        penalty = kernel.Separable(*self._penalty(factor))
        self.solver = kernel.Solver(kernel.Dense(reduced.R), loss, penalty, first)
        self.solver.reduced(offsets[0], reduced.norms, sizes[0], reduced.rounding, reduced.gram)

    def _penalty(self, factor: float) -> tuple[Array, ...]:
        if factor == 1.0:
            return self.rows
        l1, l2, lower, upper = self.rows
        return factor * l1, factor * l2, lower, upper

    def _inward(self, start: Array) -> Array:
        """x, with the intercept where there is one, in the core's units."""
        x: Array = start[: self.n] / self.units.x
        if self.mean is not None and not self.squares:
            last = start[self.n] if len(start) > self.n else 0.0
            x = np.append(x, last + (x @ self.mean))
        return np.ascontiguousarray(x)

    def solve(
        self, limits: Limits, until: float, factor: float = 1.0, fell: float = 1.0
    ) -> tuple[Any, ...]:
        """x, intercept, objective, gap, status, iterations and passes for one factor."""
        if self.direct is not None:
            return self.direct.solve(limits, until, factor, fell)
        solver = self.solver
        if fell != 1.0:
            solver.penalise(*self._penalty(factor))
        left = math.inf if until == math.inf else max(until - time.perf_counter(), 0.0)
        status = solver.solve(limits.tol, limits.max_iter, left, fell)
        if status == 1 and solver.is_reduced():
            return self._directly(limits, until, factor)
        if self.single:
            status = solver.round_to_single(limits.tol)
        x = np.empty(len(self.rows[0]))
        solver.solution(x)
        constant, scale = 0.0, self.units.objective
        if self.mean is not None:
            last = self.middle if self.squares else x[self.n]
            x = x[: self.n]
            constant = float(last - x @ self.mean) * self.units.b
        if self.units is not UNCHANGED:
            if solver.gap == math.inf and status == 0:
                status = 1  # small violations in these units may be large ones in the user's
            x = x * self.units.x
            if not (math.isfinite(solver.objective * scale) and np.isfinite(x).all()):
                status = 3  # float64 cannot hold the answer
        return (
            x, constant, solver.objective * scale, solver.gap * scale,
            status, solver.iterations, solver.passes,
        )  # fmt: skip


class Reductions:
    """The reductions of the matrices of a `Glm`, each made once."""

    def __init__(self) -> None:
        self.made: dict[tuple[int, int], tuple[Any, Any, Reduction | None]] = {}

    def of(self, A: Any, s: Array, mean: Array | None) -> Reduction | None:
        """That of A with weights s; problems of a batch share both as the same arrays."""
        key = A.ctypes.data, s.ctypes.data
        if key not in self.made:
            self.made[key] = A, s, reduction(A, s, mean)
        return self.made[key][2]


def reductions_that_pay(glm: Glm, solves: int) -> Reductions | None:
    """Reductions where they pay: least squares with m >= 2 n, solved many times.

    The factor costs about as much as n/8 passes over A (a matrix product is that much faster
    than a pass), and every pass then costs n/m of what it did.
    """
    A = glm.A
    if glm.loss != "squares" or scipy.sparse.issparse(A) or A.ndim != 2:
        return None
    m, n = A.shape
    penalised = (glm.l1 > 0).all() or (glm.l2 > 0).all()
    return Reductions() if penalised and m >= 2 * n and 8 * solves > n else None


def _data(A: Any, intercept: bool, mean: Array | None) -> Any:
    if scipy.sparse.issparse(A):
        values = np.ascontiguousarray(A.data, dtype=np.float64)
        rows, starts = A.indices.astype(np.int32, copy=False), A.indptr.astype(np.int32, copy=False)
        return kernel.Sparse(values, rows, starts, A.shape[0], intercept, mean)
    return kernel.Dense(A, intercept, mean)
