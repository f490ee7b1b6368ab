"""One problem, in the form in which the compiled solver takes it."""

import math
import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from proxlearn.core import kernel
from proxlearn.core.dual_cone import strictly_feasible
from proxlearn.core.losses import LOSSES, LossKind
from proxlearn.core.penalty_kinds import SEPARABLE, PenaltyKind
from proxlearn.core.reduction import Reduction, Reductions, centred, weighted_mean
from proxlearn.core.scaling import UNCHANGED, Scaling, is_moderate
from proxlearn.core.starts import MOST, PATIENCE, Start

Array = npt.NDArray[np.float64]

LEAST_OPTION = 1e-290
"""Below it, options of the loss in the core's units have too few digits."""


@dataclass
class Limits:
    """When a solve stops."""

    tol: float = 1e-6
    max_iter: int = 1000
    seconds: float = math.inf


@dataclass(frozen=True)
class Part:
    """Problems that are a part of `total` ones, which share the weights of their samples."""

    total: int
    kept: dict[str, Any] = field(default_factory=dict)
    """What was computed from A alone. Parts that share A may share this dictionary."""


@dataclass
class Glm:
    """Problems that share their loss: A (m, n), (B, m, n) or sparse, and numbers that broadcast.

    b is (1 or B, m). The weights of the samples are a number or (1 or B, m), the other four numbers
    or (1 or B, n).
    """

    A: Any
    b: Array
    loss: str
    sample_weight: Any
    l1: Any
    l2: Any
    lower: Any
    upper: Any
    intercept: bool = False
    largest: float | None = None
    options: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    """What else the loss takes, each (1 or B,)."""
    penalty: PenaltyKind = SEPARABLE
    """Which penalty the numbers belong to."""
    level: Any = 0.0
    """(1 or B, G), where the penalty has groups."""
    tasks: int = 1
    """Targets that share A, with least squares and row groups: b is (1 or B, T m), task after
    task, and x (B, n T), column after column."""

    @property
    def numbers(self) -> tuple[Any, ...]:
        """The numbers of the penalty."""
        return tuple([getattr(self, name) for name in self.penalty.names])

    @property
    def kind(self) -> LossKind:
        """The loss."""
        return LOSSES[self.loss]

    @cached_property
    def batch(self) -> int:
        """Number of problems."""
        own = len(self.A) if self.A.ndim == 3 else 1
        rows = self.b, self.sample_weight, *self.numbers, *self.options.values()
        return max(own, *[1 if isinstance(row, float) else len(row) for row in rows])

    @property
    def copies(self) -> int:
        """How often x has the columns of A: once, or once for each class."""
        name = self.kind.copies
        return 1 if name is None else int(self.options[name][0])

    @property
    def coordinates(self) -> int:
        """Number of coordinates of x."""
        return int(self.A.shape[-1]) * self.copies

    def condensed(self) -> "Glm":
        """The same with one row of numbers where each problem has its own b and equal numbers.

        Problems that differ in b alone are solved together, which takes half of the time for 256
        LASSO problems with A 64 x 128 (2026-11-18).
        """
        if self.batch == 1 or len(self.b) != self.batch:
            return self
        rows = {name: getattr(self, name) for name in ("sample_weight", *self.penalty.names)}
        once = {
            name: row[:1]
            for name, row in rows.items()
            if not isinstance(row, float) and len(row) > 1 and (row == row[:1]).all()
        }
        return replace(self, **once)

    def in_rows(self) -> "Glm":
        """The same with rows in place of numbers."""
        m, n = self.A.shape[-2], self.coordinates
        lengths = {"sample_weight": m, "l1": n, "l2": n, "lower": n, "upper": n}
        given = {name: getattr(self, name) for name in lengths}
        filled: dict[str, Any] = {
            name: np.full((1, lengths[name]), v)
            for name, v in given.items()
            if isinstance(v, float)
        }
        return replace(self, **filled)


def of_problem(value: Any, i: int) -> Any:
    """What belongs to problem i: a row of (1 or B, ...), or the number that all share."""
    if isinstance(value, float):
        return value
    return value[i if len(value) > 1 else 0]


def matrix_of(glm: Glm, i: int) -> Any:
    """A of problem i, (m, n)."""
    return of_problem(glm.A, i) if glm.A.ndim == 3 else glm.A


class Single:
    """One problem in the units in which the core solves it."""

    def __init__(
        self,
        glm: Glm,
        i: int,
        start: Array | None,
        factor: float = 1.0,
        reductions: Reductions | None = None,
    ):
        A = matrix_of(glm, i)
        b, s = of_problem(glm.b, i), of_problem(glm.sample_weight, i)
        penalty, rows, kind = glm.penalty, tuple([of_problem(v, i) for v in glm.numbers]), glm.kind
        self.glm, self.place, self.n = glm, i, A.shape[1] * glm.tasks
        self.quadratic, self.copies = kind.quadratic, glm.copies
        options = {name: of_problem(v, i) for name, v in glm.options.items()}
        self.single, self.units = A.dtype.itemsize == 4, UNCHANGED
        self.lost = False  # whether an option of the loss vanishes beside b
        if not is_moderate(A, b, s, *rows, largest=glm.largest):
            A, b, s = self._scale(A, b, s)
            rows = penalty.scale(self.units, rows)
            options = self.units.scale_options(options, kind.scaled_options)
            self.lost = any(options[name] < LEAST_OPTION for name in kind.scaled_options)
        self.mean: Array | None = None
        self.reduced: Reduction | None = None
        self.direct: Single | None = None
        self.middle = 0.0
        ones = False
        if glm.intercept:
            s = np.full(len(b), s) if isinstance(s, float) else s
            share = s / s.sum()
            # A sparse A of several classes is not centred: that would cost a pass over z a column.
            uncentred = self.copies > 1 and scipy.sparse.issparse(A)
            self.mean = np.zeros(self.n) if uncentred else weighted_mean(A, share)
            if self.quadratic:
                self.middle = float(share @ b)
                b = centred(b[None], np.array([self.middle]), s)[0]
            else:
                ones = True
                penalty, rows = penalty.extend(rows, self.n, self.copies)
        self.penalty, self.rows, self.width = penalty, rows, self.copies * (self.n + ones)
        if reductions is not None and self.units is UNCHANGED and penalty.penalises_all(rows):
            s = np.full(len(b), s) if isinstance(s, float) else s
            reduced = reductions.of(A, s, self.mean)
            if reduced is not None:
                self._reduce(reduced, b, start, factor)
                return
        self._make_solver(A, s, kind.compiled(b, s, **options), ones, start, factor)

    def _scale(self, A: Any, b: Array, s: Any) -> tuple[Any, Array, Any]:
        """Choose the units; A, b and the weights of the samples in them."""
        glm = self.glm
        unit = glm.penalty.unit if glm.tasks == 1 else np.asarray  # a row of x has one column of A
        self.units, self.single = Scaling.choose(A, b, s, glm.kind.scales, unit), False
        data = self.units.scale_data(A, b, s)
        self.units = self.units.repeated(self.copies)
        if glm.tasks > 1:
            self.units = replace(self.units, A=np.repeat(self.units.A, glm.tasks))
        return data

    def _make_solver(
        self, A: Any, s: Any, loss: Any, ones: bool, start: Array | None, factor: float
    ) -> None:
        """The compiled solver; with `ones` it has a column of ones for the intercept."""
        r = self.penalty.compiled(self.width, self._numbers(factor))
        first = None if start is None else self._inward(start)
        data = _data(A, ones, self.mean, not self.quadratic and self.copies == 1)
        data = data if self.glm.tasks == 1 else kernel.Tasks(data, self.glm.tasks)
        if self.glm.kind.copies is not None:
            data = kernel.Classes(data, self.copies)
        self.solver = kernel.Solver(data, loss, r, first)
        if self.quadratic and r.has_one_sided():
            inward = strictly_feasible(A, s, self.rows, self.mean)
            if inward is not None:
                self.solver.point_inside(inward)

    def lead(
        self, start: Start, limits: Limits, until: float, steps: dict[bool, float] | None = None
    ) -> None:
        """Let a first-order method improve the point at which the solver begins.

        Problems that share A and the weights of the samples share `steps`, in which 1/L is kept,
        for reduced problems and for others.
        """
        curvature = self.glm.kind.curvature
        assert curvature is not None
        known = {} if steps is None or self.units is not UNCHANGED else steps
        reduced, left = self.reduced is not None, seconds_left(until)
        method = start.compiled(self.solver, curvature, known.get(reduced, 0.0))
        method.patience = PATIENCE
        self.solver.lead(method, min(MOST, limits.max_iter), start.part, left)
        if method.step > 0:
            known[reduced] = method.step

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
        loss = kernel.Squares(targets[0], 1.0)
        first = None if start is None else self._inward(start)
        r = self.penalty.compiled(self.n, self._numbers(factor))
        self.solver = kernel.Solver(kernel.Dense(reduced.R), loss, r, first)
        self.solver.reduced(offsets[0], reduced.norms, sizes[0], reduced.rounding, reduced.gram)

    def _numbers(self, factor: float) -> tuple[Any, ...]:
        return self.rows if factor == 1.0 else self.penalty.times(factor, self.rows)

    def _inward(self, start: Array) -> Array:
        """x, with the intercept where there is one, in the core's units."""
        n = self.copies * self.n
        x: Array = start[:n] / self.units.x
        if self.mean is not None and not self.quadratic:
            by_class = x.reshape(self.copies, self.n)
            last = start[n:] / self.units.b if len(start) > n else np.zeros(self.copies)
            x = np.column_stack([by_class, last + by_class @ self.mean]).ravel()
        return np.ascontiguousarray(x)

    def _outward(self, x: Array) -> tuple[Array, Any]:
        """Coefficients (..., n) and constants (...) of points (..., width) of centred columns.

        With several classes they are (..., classes n) and (..., classes).
        """
        if self.mean is None:
            return x, np.zeros(x.shape[:-1])
        if self.copies == 1:
            last = self.middle if self.quadratic else x[..., self.n]
            x = x[..., : self.n]
            return x, last - x @ self.mean
        by_class = x.reshape(*x.shape[:-1], self.copies, self.n + 1)
        coefficients = by_class[..., : self.n]
        constants = by_class[..., self.n] - coefficients @ self.mean
        return coefficients.reshape(*x.shape[:-1], -1), constants

    def path(self, limits: Limits, until: float, factors: Array) -> tuple[Array, Array, Array]:
        """x (K, n), intercepts (K,) and the five other numbers of `Answer` for falling factors."""
        K = len(factors)
        x, numbers = np.zeros((K, self.width)), np.empty((K, 5))
        done = 0
        if self.units is UNCHANGED:
            left = seconds_left(until)
            self.solver.penalise(*self.rows)
            done = self.solver.path(
                factors, x, numbers, self.single, limits.tol, limits.max_iter, left
            )
        x, constant = self._outward(x)
        for k in range(done, K):
            fell = factors[k - 1] / factors[k] if k > 0 and factors[k] > 0 else 1.0
            fell = math.inf if k > 0 and factors[k] == 0 else fell
            found = self.solve(limits, until, float(factors[k]), fell)
            x[k], constant[k], numbers[k] = found[0], found[1], found[2:]
        return x, constant, numbers

    def solve(
        self, limits: Limits, until: float, factor: float = 1.0, fell: float = 1.0
    ) -> tuple[Any, ...]:
        """x, intercept, objective, gap, status, iterations and passes for one factor."""
        if self.direct is not None:
            return self.direct.solve(limits, until, factor, fell)
        solver = self.solver
        if fell != 1.0:
            solver.penalise(*self._numbers(factor))
        left = seconds_left(until)
        status = solver.solve(limits.tol, limits.max_iter, left, fell)
        if status == 1 and solver.is_reduced():
            return self._directly(limits, until, factor)
        if self.single:
            status = solver.round_to_single(limits.tol)
        x = np.empty(self.width)
        solver.solution(x)
        constant, scale = 0.0, math.nan if self.lost else self.units.objective
        if self.mean is not None:
            x, constant = self._outward(x)
            constant = constant * self.units.b
        if self.units is not UNCHANGED:
            if solver.gap == math.inf and status == 0:
                status = 1  # violations that are small in these units may be large in the user's
            x = x * self.units.x
            if not (math.isfinite(solver.objective * scale) and np.isfinite(x).all()):
                status = 3  # float64 cannot hold the answer
        return (
            x, constant, solver.objective * scale, solver.gap * scale,
            status, solver.iterations, solver.passes,
        )  # fmt: skip


def seconds_left(until: float) -> float:
    """Seconds until a time of `time.perf_counter`, which may be infinite."""
    return math.inf if until == math.inf else max(until - time.perf_counter(), 0.0)


def _data(A: Any, intercept: bool, mean: Array | None, may_be_rare: bool) -> Any:
    """A for the core; a dense one with few entries other than 0 may be read as a sparse one."""
    if scipy.sparse.issparse(A):
        values = np.ascontiguousarray(A.data, dtype=np.float64)
        rows, starts = A.indices.astype(np.int32, copy=False), A.indptr.astype(np.int32, copy=False)
        return kernel.Sparse(values, rows, starts, A.shape[0], intercept, mean)
    rare = kernel.rare_entries(A) if may_be_rare else None
    return (
        kernel.Sparse(*rare, len(A), intercept, mean) if rare else kernel.Dense(A, intercept, mean)
    )
