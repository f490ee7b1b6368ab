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
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from proxlearn.core.reduction import weighted_gram
from proxlearn.core.scaling import is_moderate
from proxlearn.core.single import Glm, Limits, Reductions, Single, reductions_that_pay

Array = npt.NDArray[np.float64]

__all__ = ["STATUSES", "Answer", "Glm", "Limits", "describe", "path_glm", "solve_glm"]

STATUSES = ("SOLVED", "MAX_ITER", "TIME_LIMIT", "NUMERICAL_ERROR")
"""What the numbers in `Answer.status` stand for."""


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
    largest: float | None = None,
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
    largest : float, optional
        The largest magnitude of A's entries, where it is known already.

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
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    return Glm(
        A, np.ascontiguousarray(targets), loss, weights,
        _by_coordinate(l1, n), _by_coordinate(l2, n),
        _by_coordinate(lower, n), _by_coordinate(upper, n), intercept, largest,
    )  # fmt: skip


def _by_coordinate(value: Any, n: int) -> Array:
    """Numbers of a penalty as (1, n) or (B, n)."""
    if isinstance(value, float | int):
        return np.full((1, n), float(value))
    numbers = np.asarray(value, dtype=np.float64)
    return (
        np.full((1, n), numbers)
        if numbers.ndim == 0
        else np.atleast_2d(np.ascontiguousarray(numbers))
    )


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

    reductions = reductions_that_pay(glm, glm.batch) if glm.batch > 1 else None
    if x0 is None and glm.batch > 1 and _differ_in_b(glm):
        return _solve_shared(glm, limits, threads, reductions)

    def one(i: int) -> tuple[Any, ...]:
        return Single(glm, i, _row(x0, i), 1.0, reductions).solve(limits, until)

    return _collect(glm, _each(one, glm.batch, threads))


def _differ_in_b(glm: Glm) -> bool:
    """True where the problems share all but b, and their numbers are of moderate size."""
    rows = glm.sample_weight, glm.l1, glm.l2, glm.lower, glm.upper
    shared = glm.A.ndim == 2 and all(len(v) == 1 for v in rows)
    return bool(shared and is_moderate(glm.A, glm.b, *rows, largest=glm.largest))


def _solve_shared(glm: Glm, limits: Limits, threads: int, reductions: Reductions | None) -> Answer:
    """Solve problems that differ in b alone: the Gram matrix and all A^T b are computed at once."""
    s, B = glm.sample_weight[0], glm.batch
    b, middle = glm.b, np.zeros(B)
    first = Single(glm, 0, None, 1.0, reductions)
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
        if not scipy.sparse.issparse(glm.A) and glm.A.shape[1] < 8 * B:
            gram = weighted_gram(glm.A, s, first.mean)
    x, numbers = np.empty((B, len(first.rows[0]))), np.empty((B, 5))
    pieces = 1 if threads <= 1 else min(B, 8 * threads)
    parts = np.array_split(np.arange(B), pieces)

    def some(part: int) -> None:
        rows = slice(parts[part][0], parts[part][-1] + 1)
        solver = (first if part == 0 else Single(glm, 0, None, 1.0, reductions)).solver
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
        _again(glm, answer, np.flatnonzero(status == 1), limits)
    return answer


def _again(glm: Glm, answer: Answer, those: Any, limits: Limits) -> None:
    """Solve some problems directly, from the answers that rounding did not let certify."""
    for i in those:
        row = Single(glm, int(i), answer.x[i].astype(np.float64)).solve(limits, math.inf)
        arrays: list[npt.NDArray[Any]] = [getattr(answer, field.name) for field in fields(answer)]
        for array, value in zip(arrays, row, strict=True):
            array[i] = value


def path_glm(
    glm: Glm, factors: Any, x0: Any = None, limits: Limits | None = None, threads: int = 1
) -> list[Answer]:
    """Solve with l1 and l2 multiplied by each of `factors` (K,) or (K, B), which fall.

    Working set, Gram matrix and solution are kept from one factor to the next.
    """
    limits = Limits() if limits is None else limits
    until = time.perf_counter() + limits.seconds
    factors = np.asarray(factors, dtype=np.float64).reshape(len(factors), -1)
    reductions = reductions_that_pay(glm, len(factors))

    def one(i: int) -> list[tuple[Any, ...]]:
        column = factors[:, i if factors.shape[1] > 1 else 0].tolist()
        problem = Single(glm, i, _row(x0, i), column[0], reductions)
        before = [column[0], *column[:-1]]
        return [
            problem.solve(limits, until, factor, last / factor if factor > 0 else math.inf)
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


def _each(one: Callable[[int], Any], batch: int, threads: int) -> list[Any]:
    """`one` of every problem, by several threads where there are several problems."""
    workers = 1 if min(threads, batch) == 1 else min(threads, batch, os.cpu_count() or 1)
    if workers <= 1:
        return [one(i) for i in range(batch)]
    pool = ThreadPoolExecutor(workers)
    try:
        return list(pool.map(one, range(batch)))
    finally:
        pool.shutdown(cancel_futures=True)  # after Ctrl-C nothing new is begun


def _collect(glm: Glm, rows: list[tuple[Any, ...]]) -> Answer:
    x, constant, objective, gap, status, iterations, passes = zip(*rows, strict=True)
    precision = np.float32 if glm.A.dtype == np.float32 else np.float64
    points = x[0][None] if len(x) == 1 else np.array(x)
    return Answer(
        points.astype(precision, copy=False),
        np.array(constant), np.array(objective), np.array(gap),
        np.array(status, dtype=np.int8), np.array(iterations), np.array(passes),
    )  # fmt: skip
