"""Generalised linear models with separable penalties, solved by the compiled core.

    minimise over x    sum_i s_i phi(a_i^T x + c; b_i) + sum_j l1_j |x_j| + l2_j/2 x_j^2
    subject to         lower_j <= x_j <= upper_j,        c = 0 unless there is an intercept

for one right-hand side b or many, NumPy arrays in and out. `solve_glm` solves, `path_glm` follows
falling multiples of l1 and l2. Arguments are taken as they are: whoever calls has validated them.
"""

import math
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from proxlearn.core import kernel
from proxlearn.core.reduction import Reduction, reduction, weighted_gram

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
        own = len(self.A) if self.A.ndim == 3 else 1
        rows = self.b, self.sample_weight, self.l1, self.l2, self.lower, self.upper
        return max(own, *map(len, rows))


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

    Parameters
    ----------
    glm : Glm
        What `describe` returned.
    x0 : array (n,) or (B, n), optional
        Where to start; with an intercept its value may follow as entry n.
    limits : Limits, optional
        Tolerance, number of working sets, seconds.
    threads : int
        How many problems are solved at the same time.

    Returns
    -------
    Answer

    Examples
    --------
    >>> import numpy as np
    >>> from proxlearn.core.glm import describe, solve_glm
    >>> answer = solve_glm(describe(np.eye(2), [3.0, 0.5], "squares", l1=1.0))
    >>> answer.x[0].tolist(), answer.status.tolist()
    ([2.0, 0.0], [0])
    """
    limits = Limits() if limits is None else limits
    until = time.perf_counter() + limits.seconds

    reductions = _reductions(glm, glm.batch) if glm.batch > 1 else None
    if x0 is None and glm.batch > 1 and _differ_in_b(glm):
        return _solve_shared(glm, limits, threads, reductions)

    def one(i: int) -> tuple[Any, ...]:
        return _Problem(glm, i, _row(x0, i), 1.0, reductions).solve(limits, until)

    return _collect(glm, _each(one, glm.batch, threads))


def _differ_in_b(glm: Glm) -> bool:
    """True where the problems share all but b, and their numbers are of moderate size."""
    rows = glm.sample_weight, glm.l1, glm.l2, glm.lower, glm.upper
    shared = glm.A.ndim == 2 and all(len(v) == 1 for v in rows)
    return bool(shared and _moderate(glm.A, glm.b, *rows))


def _solve_shared(
    glm: Glm, limits: Limits, threads: int, reductions: "_Reductions | None"
) -> Answer:
    """Solve problems that differ in b alone: the Gram matrix and all A^T b are computed at once."""
    s, B = glm.sample_weight[0], glm.batch
    b, middle = glm.b, np.zeros(B)
    first = _Problem(glm, 0, None, 1.0, reductions)
    if first.mean is not None and first.squares:
        middle = b @ (s / s.sum())
        b = b - middle[:, None]
    offsets = sizes = correlations = gram = None
    if first.reduced is not None:
        b, offsets, sizes = first.reduced.targets(b)
    elif first.squares and glm.A.dtype == np.float64:
        weighted = s * b
        correlations = np.ascontiguousarray(weighted @ glm.A)
        if first.mean is not None:
            correlations -= np.outer(weighted.sum(1), first.mean)
        if not scipy.sparse.issparse(glm.A) and 8 * B > glm.A.shape[1]:
            gram = weighted_gram(glm.A, s, first.mean)
    x, numbers = np.empty((B, len(first.rows[0]))), np.empty((B, 5))
    parts = np.array_split(np.arange(B), min(max(threads, 1), B))

    def some(part: int) -> None:
        rows = slice(parts[part][0], parts[part][-1] + 1)
        solver = (first if part == 0 else _Problem(glm, 0, None, 1.0, reductions)).solver
        if gram is not None:
            solver.take_gram(gram)
        pick = [None if v is None else v[rows] for v in (correlations, offsets, sizes)]
        solver.solve_many(
            b[rows], *pick, x[rows], numbers[rows],
            first.single, limits.tol, limits.max_iter, limits.seconds,
        )  # fmt: skip

    _each(some, len(parts), threads)
    constant = np.zeros(B)
    if first.mean is not None:
        last = middle if first.squares else x[:, first.n]
        x = x[:, : first.n]
        constant = last - x @ first.mean
    status = numbers[:, 2].astype(np.int8)
    precision = np.float32 if glm.A.dtype == np.float32 else np.float64
    answer = Answer(
        x.astype(precision, copy=False), constant, numbers[:, 0], numbers[:, 1],
        status, numbers[:, 3].astype(np.int64), numbers[:, 4],
    )  # fmt: skip
    if first.reduced is not None:
        _again(glm, answer, np.flatnonzero((status == 1) & (numbers[:, 3] < limits.max_iter)), limits)
    return answer


def _again(glm: Glm, answer: Answer, those: Any, limits: Limits) -> None:
    """Solve some problems directly, from the answers that rounding did not let certify."""
    for i in those:
        row = _Problem(glm, int(i), answer.x[i].astype(np.float64)).solve(limits, math.inf)
        fields = answer.x, answer.intercept, answer.objective, answer.gap, answer.status
        for field, value in zip((*fields, answer.iterations, answer.passes), row, strict=True):
            field[i] = value


def path_glm(
    glm: Glm, factors: Any, x0: Any = None, limits: Limits | None = None, threads: int = 1
) -> list[Answer]:
    """Solve with l1 and l2 multiplied by each of `factors` (K,) or (K, B), which fall.

    Working set, Gram matrix and solution are kept from one factor to the next.
    """
    limits = Limits() if limits is None else limits
    until = time.perf_counter() + limits.seconds
    factors = np.asarray(factors, dtype=np.float64).reshape(len(factors), -1)
    reductions = _reductions(glm, len(factors))

    def one(i: int) -> list[tuple[Any, ...]]:
        column = factors[:, i if factors.shape[1] > 1 else 0].tolist()
        problem = _Problem(glm, i, _row(x0, i), column[0], reductions)
        before = [column[0], *column[:-1]]
        return [
            problem.solve(limits, until, factor, last / factor)
            for factor, last in zip(column, before, strict=True)
        ]

    by_problem = _each(one, glm.batch, threads)
    return [_collect(glm, [rows[k] for rows in by_problem]) for k in range(len(factors))]


def _row(x0: Any, i: int) -> Array | None:
    """The start of problem i."""
    if x0 is None:
        return None
    rows = np.atleast_2d(np.asarray(x0, dtype=np.float64))
    row: Array = rows[i if len(rows) > 1 else 0]
    return row


class _Problem:
    """One problem in the units in which the core solves it."""

    def __init__(
        self,
        glm: Glm,
        i: int,
        start: Array | None,
        factor: float = 1.0,
        reductions: "_Reductions | None" = None,
    ):
        A = glm.A
        if A.ndim == 3:
            A = A[i if len(A) > 1 else 0]
        b, s = glm.b[i if len(glm.b) > 1 else 0], glm.sample_weight
        s = s[i if len(s) > 1 else 0]
        rows = glm.l1, glm.l2, glm.lower, glm.upper
        rows = tuple([v[i if len(v) > 1 else 0] for v in rows])
        self.glm, self.place, self.n = glm, i, A.shape[1]
        self.squares = glm.loss == "squares"
        self.single, self.units = A.dtype == np.float32, UNITS
        if not _moderate(A, b, s, *rows):
            self.units, self.single = _Units.choose(A, b, s, self.squares), False
            A, b, s = self.units.scale_data(A, b, s)
            rows = self.units.scale_penalty(*rows)
        self.mean, self.middle, self.reduced = None, 0.0, None
        ones = False
        if glm.intercept:
            share = s / s.sum()
            self.mean = np.ascontiguousarray(share @ A, dtype=np.float64)
            if self.squares:
                self.middle = float(share @ b)
                b = b - self.middle
            else:
                ones = True
                last = (0.0, 0.0, -np.inf, np.inf)
                rows = tuple(np.append(row, end) for row, end in zip(rows, last, strict=True))
        self.rows = rows
        if reductions is not None and self.units is UNITS:
            reduced = reductions.of(A, s, self.mean)
            if reduced is not None:
                self._reduce(reduced, b, start, factor)
                return
        loss = kernel.Squares(b, s) if self.squares else kernel.Logistic(b, s)
        penalty = kernel.Separable(*self._penalty(factor))
        first = None if start is None else self._inward(start)
        self.solver = kernel.Solver(_data(A, ones, self.mean), loss, penalty, first)
        if self.squares and penalty.has_one_sided():
            inward = _strictly_feasible(A, s, rows, self.mean)
            if inward is not None:
                self.solver.point_inside(*inward)

    def _directly(self, limits: Limits, until: float, factor: float) -> tuple[Any, ...]:
        """Solve the problem itself where rounding hides the gap of the reduced one."""
        x = np.empty(self.n)
        self.solver.solution(x)
        return _Problem(self.glm, self.place, x, factor).solve(limits, until, factor)

    def _reduce(
        self, reduced: Reduction, b: Array, start: Array | None, factor: float
    ) -> None:
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
        solver = self.solver
        if fell != 1.0:
            solver.penalise(*self._penalty(factor))
        left = math.inf if until == math.inf else max(until - time.perf_counter(), 0.0)
        status = solver.solve(limits.tol, limits.max_iter, left, fell)
        if status == 1 and solver.is_reduced() and solver.iterations < limits.max_iter:
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
        if self.units is not UNITS:
            x = x * self.units.x
        return (
            x, constant, solver.objective * scale, solver.gap * scale,
            status, solver.iterations, solver.passes,
        )  # fmt: skip


class _Reductions:
    """The reductions of the matrices of a `Glm`, each made once."""

    def __init__(self) -> None:
        self.made: dict[tuple[int, int], tuple[Any, Any, Reduction | None]] = {}

    def of(self, A: Any, s: Array, mean: Array | None) -> Reduction | None:
        """That of A with weights s; problems of a batch share both as the same arrays."""
        key = A.ctypes.data, s.ctypes.data
        if key not in self.made:
            self.made[key] = A, s, reduction(A, s, mean)
        return self.made[key][2]


def _reductions(glm: Glm, solves: int) -> _Reductions | None:
    """Reductions where they pay: least squares with more rows than columns, solved many times.

    The factor costs about as much as n/8 passes over A (a matrix product is that much faster
    than a pass), and every pass then costs n/m of what it did.
    """
    A = glm.A
    if glm.loss != "squares" or scipy.sparse.issparse(A) or A.ndim != 2:
        return None
    m, n = A.shape
    penalised = (glm.l1 > 0).all() or (glm.l2 > 0).all()
    return _Reductions() if penalised and m >= n and 8 * solves > n else None


def _moderate(A: Any, b: Array, s: Array, *rows: Array) -> bool:
    """True where no square of a number overflows or vanishes, which is nearly always so."""
    entries = A.data if scipy.sparse.issparse(A) else A
    largest = kernel.largest_magnitude(entries) if entries.size else 0.0
    sizes = largest == 0.0 or MODERATE[0] <= largest <= MODERATE[1]
    return bool(sizes and kernel.are_moderate(*MODERATE, b, s, *rows))


@dataclass(frozen=True)
class _Units:
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
    def choose(A: Any, b: Array, s: Array, squares: bool) -> "_Units":
        """Units in which the largest entry of each column, of b and of s is about 1."""
        columns = abs(A).max(axis=0)
        columns = columns.toarray().ravel() if scipy.sparse.issparse(columns) else columns
        by_column = _power_of_two(np.asarray(columns, dtype=np.float64))
        size = float(_power_of_two(np.abs(b).max())) if squares else 1.0
        return _Units(by_column, size, float(_power_of_two(s.max())))

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


UNITS = _Units()
"""Nothing is rescaled."""

def _power_of_two(size: Any) -> Any:
    """The power of two next to a size; 1 for 0."""
    exponent = np.frexp(size)[1]
    return np.where(np.asarray(size) > 0, np.ldexp(1.0, exponent), 1.0)


def _strictly_feasible(
    A: Any, s: Array, rows: tuple[Array, ...], mean: Array | None
) -> tuple[Array, Array] | None:
    """A direction p with A^T (s p) < 0 on the columns that have a lower bound alone, if any has.

    The dual of non-negative least squares has no scaling that makes a point feasible; moving
    along p does. The sum of the columns, each of length 1, serves where their angles are acute.
    """
    l1, l2, lower, upper = rows
    one_sided = (l1 == 0) & (l2 == 0) & (upper == np.inf) & (lower > -np.inf)
    square = A.multiply(A).sum(axis=0) if scipy.sparse.issparse(A) else np.einsum("ij,ij->j", A, A)
    length = np.sqrt(np.asarray(square, dtype=np.float64).ravel())
    needed = one_sided & (length > 0)
    if not needed.any():
        return None
    weights = np.where(needed, 1.0 / np.where(length > 0, length, 1.0), 0.0)

    def slopes(combination: Array) -> tuple[Array, Array]:
        p = -np.asarray(A @ combination, dtype=np.float64)
        p = p if mean is None else p + mean @ combination
        weighted = s * p
        slope = np.asarray(weighted @ A, dtype=np.float64)
        return p, slope if mean is None else slope - mean * weighted.sum()

    def inside(p: Array, slope: Array) -> bool:
        size = np.linalg.norm(s * p)
        return bool((slope[needed] < -1e-12 * length[needed] * size).all())

    p, slope = slopes(weights)
    if not inside(p, slope) and mean is None:
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
    solver.solve(1e-10, 200)
    combination, found = np.zeros(len(weights)), np.empty(stacked.shape[1])
    solver.solution(found)
    combination[needed] = found
    return combination * weights


def _layout(A: Any) -> Any:
    if isinstance(A, np.ndarray):
        if A.dtype not in (np.float32, np.float64):
            A = A.astype(np.float64)
        first = A if A.ndim == 2 else A[0]
        good = first.flags.c_contiguous or first.flags.f_contiguous
        return A if good else np.ascontiguousarray(A)
    if not scipy.sparse.issparse(A):
        return _layout(np.asarray(A))
    A = A.tocsc()
    if not A.has_canonical_format:
        A = A.copy()
        A.sum_duplicates()
    return A


def _data(A: Any, intercept: bool, mean: Array | None) -> Any:
    if scipy.sparse.issparse(A):
        values = np.ascontiguousarray(A.data, dtype=np.float64)
        rows, starts = A.indices.astype(np.int32, copy=False), A.indptr.astype(np.int32, copy=False)
        return kernel.Sparse(values, rows, starts, A.shape[0], intercept, mean)
    return kernel.Dense(A, intercept, mean)


def _each(one: Callable[[int], Any], batch: int, threads: int) -> list[Any]:
    """`one` of every problem, by several threads where there are several problems."""
    workers = min(threads, batch, os.cpu_count() or 1)
    if workers <= 1:
        return [one(i) for i in range(batch)]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(one, range(batch)))


def _collect(glm: Glm, rows: list[tuple[Any, ...]]) -> Answer:
    x, constant, objective, gap, status, iterations, passes = zip(*rows, strict=True)
    precision = np.float32 if glm.A.dtype == np.float32 else np.float64
    points = x[0][None] if len(x) == 1 else np.array(x)
    return Answer(
        points.astype(precision, copy=False),
        np.array(constant), np.array(objective), np.array(gap),
        np.array(status, dtype=np.int8), np.array(iterations), np.array(passes),
    )  # fmt: skip
