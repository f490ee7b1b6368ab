"""Generalised linear models with separable penalties, solved by the compiled core.

    minimise over x    sum_i s_i phi(a_i^T x + c; b_i) + sum_j l1_j |x_j| + l2_j/2 x_j^2
    subject to         lower_j <= x_j <= upper_j,        c = 0 unless there is an intercept

for one right-hand side b or many, NumPy arrays in and out. `solve_glm` solves, `path_glm` follows
falling multiples of l1 and l2. Arguments are taken as they are: whoever calls has validated them.
"""

import math
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from proxlearn.core import kernel

Array = npt.NDArray[np.float64]

STATUSES = ("SOLVED", "MAX_ITER", "TIME_LIMIT", "NUMERICAL_ERROR", "INTERRUPTED")
"""What the numbers in `Answer.status` stand for."""

MODERATE = (2.0**-200, 2.0**200)
"""Sizes of numbers whose squares and their products stay well inside the range of float64."""


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

    @property
    def batch(self) -> int:
        """Number of problems."""
        own = 1 if scipy.sparse.issparse(self.A) or self.A.ndim == 2 else len(self.A)
        return max(own, *(len(v) for v in (self.b, self.sample_weight, self.l1, self.l2)))


def describe(
    A: Any,
    b: Any,
    loss: str,
    *,
    l1: Any = 0.0,
    l2: Any = 0.0,
    lower: Any = -np.inf,
    upper: Any = np.inf,
    sample_weight: Any = None,
    intercept: bool = False,
) -> Glm:
    """Bring arrays to the shapes and layouts that the core reads; A is copied only if it must be.

    Parameters
    ----------
    A : array (m, n) or (B, m, n), or scipy sparse matrix (m, n)
        Dense arrays of float32 and float64 in C or Fortran order are used in place.
    b : array (m,) or (B, m)
        Targets of "squares"; labels 0 and 1 of "logistic".
    loss : {"squares", "logistic"}
    l1, l2, lower, upper : numbers, (n,), or (B, n)
    sample_weight : array (m,) or (B, m), optional
        1 by default for "squares" and 1/m for "logistic".
    intercept : bool
        Whether an unpenalised constant is added to the predictions.

    Returns
    -------
    Glm
        The problems, for `solve_glm` and `path_glm`.
    """
    A = _layout(A)
    m, n = A.shape[-2:]
    targets = np.atleast_2d(np.asarray(b, dtype=np.float64))
    if loss == "logistic":
        targets = 2.0 * targets - 1.0
    share = 1.0 if loss == "squares" else 1.0 / m
    weights = np.full((1, m), share) if sample_weight is None else np.atleast_2d(sample_weight)
    rows = [np.asarray(v, dtype=np.float64) for v in (l1, l2, lower, upper)]
    rows = [np.full((1, n), v) if v.ndim == 0 else np.atleast_2d(v) for v in rows]
    rows = [np.ascontiguousarray(v) for v in rows]
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    return Glm(A, np.ascontiguousarray(targets), loss, weights, *rows, intercept=intercept)


def solve_glm(glm: Glm, x0: Any = None, limits: Limits | None = None, threads: int = 1) -> Answer:
    """Solve every problem of a `Glm`, each from x0 (n,) or (B, n) or from 0.

    Examples
    --------
    >>> import numpy as np
    >>> from proxlearn.core.glm import describe, solve_glm
    >>> answer = solve_glm(describe(np.eye(2), [3.0, 0.5], "squares", l1=1.0))
    >>> answer.x[0].tolist(), answer.status.tolist()
    ([2.0, 0.0], [0])
    """
    limits = Limits() if limits is None else limits
    started = time.perf_counter()

    def one(i: int) -> list[tuple[Any, ...]]:
        left = limits.seconds - (time.perf_counter() - started)
        start = None if x0 is None else np.asarray(x0, dtype=np.float64).reshape(-1, _width(glm))
        first = None if start is None else start[i if len(start) > 1 else 0]
        problem = _Problem(glm, i, first)
        return [problem.solve(Limits(limits.tol, limits.max_iter, max(left, 0.0)))]

    return _collect(glm, [rows[0] for rows in _each(one, glm.batch, threads)])


def path_glm(
    glm: Glm, factors: Any, x0: Any = None, limits: Limits | None = None, threads: int = 1
) -> list[Answer]:
    """Solve with l1 and l2 multiplied by each of `factors` (K,) or (K, B), which fall.

    Working set, Gram matrix and solution are kept from one factor to the next.
    """
    limits = Limits() if limits is None else limits
    factors = np.asarray(factors, dtype=np.float64).reshape(len(factors), -1)
    started = time.perf_counter()

    def one(i: int) -> list[tuple[Any, ...]]:
        column = factors[:, i if factors.shape[1] > 1 else 0]
        start = None if x0 is None else np.asarray(x0, dtype=np.float64).reshape(-1, _width(glm))
        first = None if start is None else start[i if len(start) > 1 else 0]
        problem = _Problem(glm, i, first, column[0])
        rows, last = [], column[0]
        for factor in column:
            left = limits.seconds - (time.perf_counter() - started)
            allowed = Limits(limits.tol, limits.max_iter, max(left, 0.0))
            rows.append(problem.solve(allowed, factor, last / factor))
            last = factor
        return rows

    by_problem = list(_each(one, glm.batch, threads))
    return [_collect(glm, [rows[k] for rows in by_problem]) for k in range(len(factors))]


class _Problem:
    """One problem in the units in which the core solves it."""

    def __init__(self, glm: Glm, i: int, start: Array | None, factor: float = 1.0):
        own = not scipy.sparse.issparse(glm.A) and glm.A.ndim == 3
        A, self.single = (glm.A[i if len(glm.A) > 1 else 0] if own else glm.A), False
        self.single = A.dtype == np.float32
        b, s, l1, l2, lower, upper = (
            v[i if len(v) > 1 else 0]
            for v in (glm.b, glm.sample_weight, glm.l1, glm.l2, glm.lower, glm.upper)
        )
        self.glm, self.squares, self.n = glm, glm.loss == "squares", A.shape[1]
        self.units = units = _Units.choose(A, b, s, l1, l2, lower, upper, self.squares)
        A, b, s = units.scale_data(A, b, s)
        self.l1, self.l2, self.lower, self.upper = units.scale_penalty(l1, l2, lower, upper)
        self.level = self._level(A, b, s)
        self.mean, self.middle = None, 0.0
        ones = glm.intercept and not self.squares
        if glm.intercept:
            share = s / s.sum()
            self.mean = np.ascontiguousarray(share @ A, dtype=np.float64)
            if self.squares:
                self.middle = float(share @ b)
                b = b - self.middle
        if ones:
            free = (0.0, 0.0, -np.inf, np.inf)
            rows = (self.l1, self.l2, self.lower, self.upper)
            self.l1, self.l2, self.lower, self.upper = (
                np.append(row, last) for row, last in zip(rows, free, strict=True)
            )
        Loss = kernel.Squares if self.squares else kernel.Logistic
        self.penalty = kernel.Separable(*self._penalty(factor))
        first = None if start is None else self._inward(start)
        self.solver = kernel.Solver(_data(A, ones, self.mean), Loss(b, s), self.penalty, first)
        inward = _strictly_feasible(A, s, self) if self.squares else None
        if inward is not None:
            self.solver.point_inside(*inward)

    def _penalty(self, factor: float) -> tuple[Array, Array, Array, Array]:
        if factor == 1.0:
            return self.l1, self.l2, self.lower, self.upper
        return factor * self.l1, factor * self.l2, self.lower, self.upper

    def _inward(self, start: Array) -> Array:
        """x, with the intercept where there is one, in the core's units."""
        x: Array = start[: self.n] / self.units.x
        if self.glm.intercept and not self.squares:
            last = start[self.n] if len(start) > self.n else 0.0
            x = np.append(x, last + (x @ self.mean))
        return np.ascontiguousarray(x)

    def _level(self, A: Any, b: Array, s: Array) -> float:
        """F at the feasible point nearest to 0."""
        rest = np.clip(0.0, self.lower, self.upper)
        z = A @ rest if rest.any() else np.zeros(len(b))
        r = float((self.l1 * np.abs(rest) + 0.5 * (self.l2 * rest) * rest).sum())
        if self.squares:
            return float(0.5 * (s * (b - z) * (b - z)).sum()) + r
        return float((s * np.logaddexp(0.0, -b * z)).sum()) + r

    def solve(self, limits: Limits, factor: float = 1.0, fell: float = 1.0) -> tuple[Any, ...]:
        """x, intercept, objective, gap, status, iterations and passes for one factor."""
        solver = self.solver
        if fell != 1.0:
            solver.penalise(*self._penalty(factor))
        status = solver.solve(limits.tol, limits.max_iter, self.level, limits.seconds, fell)
        x = np.empty(len(self.l1))
        solver.solution(x)
        if self.single and self.units.trivial:
            solver.round_to_single()
            solver.solution(x)
            allowed = max(limits.tol * abs(solver.objective), np.finfo(float).eps * self.level)
            if status == 0 and solver.gap > allowed:
                status = 1
        gap = solver.gap
        x, constant = self._outward(x)
        scale = self.units.objective
        return (
            x, constant, solver.objective * scale, gap * scale,
            status, solver.iterations, solver.passes,
        )  # fmt: skip

    def _outward(self, x: Array) -> tuple[Array, float]:
        """x and intercept in the user's units."""
        constant = 0.0
        if self.mean is not None:
            last = x[self.n] if len(x) > self.n else self.middle
            constant = float(last - x[: self.n] @ self.mean)
        return x[: self.n] * self.units.x, constant * self.units.b


@dataclass(frozen=True)
class _Units:
    """Powers of two by which data are divided, so that squares neither overflow nor vanish."""

    A: Array | float = 1.0
    """For each column, (n,)."""
    b: float = 1.0
    s: float = 1.0

    @property
    def trivial(self) -> bool:
        return isinstance(self.A, float) and self.A == self.b == self.s == 1.0

    @property
    def x(self) -> Any:
        return self.b / self.A

    @property
    def objective(self) -> float:
        return self.s * self.b * self.b

    @staticmethod
    def choose(A: Any, b: Array, s: Array, l1: Array, l2: Array, lower: Array, upper: Array, squares: bool) -> "_Units":
        """1 where all numbers are of moderate size, which is nearly always."""
        entries = A.data if scipy.sparse.issparse(A) else A
        largest = kernel.largest_magnitude(entries) if entries.size else 0.0
        bounds = [v[np.isfinite(v) & (v != 0)] for v in (lower, upper)]
        sizes = [np.abs(v[v != 0]) for v in (b, s, l1, l2, *bounds)]
        extremes = [f(v) for v in sizes if v.size for f in (np.min, np.max)]
        extremes = [e for e in extremes if e > 0] + ([largest] if largest > 0 else [])
        if all(MODERATE[0] <= e <= MODERATE[1] for e in extremes):
            return _Units()
        columns = abs(A).max(axis=0)
        columns = columns.toarray().ravel() if scipy.sparse.issparse(columns) else columns
        by_column = _power_of_two(np.asarray(columns, dtype=np.float64))
        if not squares:
            return _Units(by_column, 1.0, float(_power_of_two(s.max())))
        return _Units(by_column, float(_power_of_two(np.abs(b).max())), float(_power_of_two(s.max())))

    def scale_data(self, A: Any, b: Array, s: Array) -> tuple[Any, Array, Array]:
        if self.trivial:
            return A, b, s
        if scipy.sparse.issparse(A):
            A = (A @ scipy.sparse.diags_array(1.0 / self.A)).tocsc()
        else:
            A = np.asarray(A, dtype=np.float64) / self.A
        return A, b / self.b, s / self.s

    def scale_penalty(self, l1: Array, l2: Array, lower: Array, upper: Array) -> tuple[Array, ...]:
        if self.trivial:
            return l1, l2, lower, upper
        with np.errstate(over="ignore", under="ignore"):
            return (
                l1 / self.A / self.b / self.s, l2 / self.A / self.A / self.s,
                lower / self.b * self.A, upper / self.b * self.A,
            )  # fmt: skip


def _power_of_two(size: Any) -> Any:
    """The power of two next to a size; 1 for 0."""
    exponent = np.frexp(size)[1]
    return np.where(np.asarray(size) > 0, np.ldexp(1.0, exponent), 1.0)


def _strictly_feasible(A: Any, s: Array, problem: _Problem) -> tuple[Array, Array] | None:
    """A direction p with A^T (s p) < 0 on the columns that have a lower bound alone, if any has.

    The dual of non-negative least squares has no scaling that makes a point feasible; moving
    along p does. The sum of the columns, each of length 1, serves where their angles are acute.
    """
    one_sided = (problem.l1 == 0) & (problem.l2 == 0) & (problem.upper == np.inf)
    one_sided &= problem.lower > -np.inf
    if not one_sided.any():
        return None
    square = A.multiply(A).sum(axis=0) if scipy.sparse.issparse(A) else np.einsum("ij,ij->j", A, A)
    length = np.sqrt(np.asarray(square, dtype=np.float64).ravel())
    needed = one_sided & (length > 0)
    if not needed.any():
        return None
    weights = np.where(needed, 1.0 / np.where(length > 0, length, 1.0), 0.0)

    def slopes(combination: Array) -> tuple[Array, Array]:
        p = -np.asarray(A @ combination, dtype=np.float64)
        mean = problem.mean
        p = p if mean is None else p + mean @ combination
        weighted = s * p
        slope = np.asarray(weighted @ A, dtype=np.float64)
        return p, slope if mean is None else slope - mean * weighted.sum()

    def inside(p: Array, slope: Array) -> bool:
        size = np.linalg.norm(s * p)
        return bool((slope[needed] < -1e-12 * length[needed] * size).all())

    p, slope = slopes(weights)
    if not inside(p, slope) and problem.mean is None:
        p, slope = slopes(_nearest_to_zero(A, s, needed, weights))
    if not inside(p, slope):
        return None
    return np.ascontiguousarray(p), np.ascontiguousarray(np.where(needed, slope, -1e-300))


def _nearest_to_zero(A: Any, s: Array, needed: Any, weights: Array) -> Array:
    """Non-negative weights of columns whose sum is the point of their convex hull nearest to 0.

    That point has a positive product with every column, unless 0 is in the hull. Found as the
    non-negative least squares solution of [A; 1^T] x = [0; 1].
    """
    scaled = A[:, needed] * weights[needed] if not scipy.sparse.issparse(A) else None
    if scaled is None:
        scaled = (A.tocsc()[:, np.flatnonzero(needed)] @ scipy.sparse.diags_array(weights[needed]))
        scaled = scaled.toarray()
    stacked = np.vstack([np.sqrt(s)[:, None] * scaled, np.ones(scaled.shape[1])])
    target = np.append(np.zeros(len(s)), 1.0)
    zeros, free = np.zeros(stacked.shape[1]), np.full(stacked.shape[1], np.inf)
    penalty = kernel.Separable(zeros, zeros, zeros, free)
    loss = kernel.Squares(target, np.ones(len(target)))
    solver = kernel.Solver(kernel.Dense(np.asfortranarray(stacked)), loss, penalty)
    solver.solve(1e-10, 200, 0.5)
    combination, found = np.zeros(len(weights)), np.empty(stacked.shape[1])
    solver.solution(found)
    combination[needed] = found
    return combination * weights


def _layout(A: Any) -> Any:
    if scipy.sparse.issparse(A):
        A = A.tocsc()
        if not A.has_canonical_format:
            A = A.copy()
            A.sum_duplicates()
        return A
    A = np.asarray(A)
    if A.dtype not in (np.float32, np.float64):
        A = A.astype(np.float64)
    slices = A if A.ndim == 3 else A[None]
    good = slices[0].flags.c_contiguous or slices[0].flags.f_contiguous
    return A if good else np.ascontiguousarray(A)


def _data(A: Any, intercept: bool, mean: Array | None) -> Any:
    if scipy.sparse.issparse(A):
        values = np.ascontiguousarray(A.data, dtype=np.float64)
        rows, starts = A.indices.astype(np.int32, copy=False), A.indptr.astype(np.int32, copy=False)
        return kernel.Sparse(values, rows, starts, A.shape[0], intercept, mean)
    return kernel.Dense(A, intercept, mean)


def _width(glm: Glm) -> int:
    n: int = glm.A.shape[-1]
    return n


def _each(
    one: Callable[[int], list[tuple[Any, ...]]], batch: int, threads: int
) -> Iterator[list[tuple[Any, ...]]]:
    """`one` of every problem, by several threads where there are several problems."""
    workers = min(threads, batch, os.cpu_count() or 1)
    if workers <= 1:
        return map(one, range(batch))
    with ThreadPoolExecutor(workers) as pool:
        return iter(list(pool.map(one, range(batch))))


def _collect(glm: Glm, rows: list[tuple[Any, ...]]) -> Answer:
    x, constant, objective, gap, status, iterations, passes = zip(*rows, strict=True)
    return Answer(
        np.array(x, dtype=glm.A.dtype if glm.A.dtype == np.float32 else np.float64),
        np.array(constant), np.array(objective), np.array(gap),
        np.array(status, dtype=np.int8), np.array(iterations), np.array(passes),
    )  # fmt: skip
