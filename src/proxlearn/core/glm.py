"""Generalised linear models with separable and group penalties, solved by the compiled core.

    minimise over x    sum_i s_i phi(a_i^T x + c; b_i) + sum_j l1_j |x_j| + l2_j/2 x_j^2
    subject to         lower_j <= x_j <= upper_j,        c = 0 unless there is an intercept

or with groups of coordinates and the penalty sum_j l1_j |x_j| + sum_g level_g |x_g|, for one
right-hand side b or many, NumPy arrays in and out. `solve_glm` solves, `path_glm` follows
falling multiples of the penalty. Arguments are taken as they are: whoever calls has validated them.
"""

import math
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from proxlearn.core import kernel
from proxlearn.core.batches import active_sets_pay, solve_by_active_sets
from proxlearn.core.losses import LOSSES
from proxlearn.core.penalties import SEPARABLE, Groups, PenaltyKind, Simplex
from proxlearn.core.reduction import weighted_gram
from proxlearn.core.scaling import is_moderate, moderate_rows
from proxlearn.core.simplex import OnSimplex
from proxlearn.core.single import (
    Glm,
    Limits,
    Part,
    Reductions,
    Single,
    of_problem,
    reductions_that_pay,
)
from proxlearn.core.starts import Start

Array = npt.NDArray[np.float64]

__all__ = [
    "STATUSES", "Answer", "Glm", "Limits", "Part", "describe", "path_glm", "solve_glm", "solve_one",
]  # fmt: skip

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

    def __getitem__(self, k: int) -> "Answer":
        """The answers for the k-th value of a path."""
        return Answer(
            self.x[k], self.intercept[k], self.objective[k], self.gap[k],
            self.status[k], self.iterations[k], self.passes[k],
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.objective)

    def __iter__(self) -> "Iterator[Answer]":
        return (self[k] for k in range(len(self)))


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
    options: dict[str, Any] | None = None,
    level: Any = 0.0,
    groups: Any = None,
    simplex: Simplex | None = None,
) -> Glm:
    """Bring arrays to the shapes and layouts that the core reads; A is copied only if it must be.

    Parameters
    ----------
    A : array (m, n) or (B, m, n), or scipy sparse matrix (m, n)
        Dense arrays of float32 and float64 in C or Fortran order are used in place.
    b : array (m,) or (B, m)
        Targets; labels 0 and 1 of "logistic", 0 to C-1 of "softmax"; counts >= 0 of "poisson".
    loss : {"squares", "huber", "logistic", "poisson", "softmax"}
        A name of `proxlearn.core.losses.LOSSES`.
    l1, l2, lower, upper : numbers, (n,), or (B, n)
    sample_weight : array (m,) or (B, m), optional
        1 by default for "squares" and "huber", and 1/m for the others.
    intercept : bool
        Whether an unpenalised constant is added to the predictions.
    largest : float, optional
        The largest magnitude of A's entries, where it is known already.
    options : dict of numbers or arrays (B,), optional
        What else the loss takes.
    level : number, (G,), or (B, G)
        Multiplies the lengths of the groups, where there are some.
    groups : Groups, or array (n,) of whole numbers, optional
        The group of each coordinate, from 0 to G-1: the penalty is then
        ``sum_j l1_j |x_j| + sum_g level_g |x_g|``, without l2 and bounds.
    simplex : Simplex, optional
        Says that x >= 0 and that the sum of x is `level`, or at most that.

    Returns
    -------
    Glm
        The problems, for `solve_glm` and `path_glm`.
    """
    A = A if kernel.is_matrix(A) else _layout(A)
    kind = LOSSES[loss]
    weights = _number_or_rows(sample_weight)
    if weights is None:
        weights = 1.0 / A.shape[-2] if kind.mean else 1.0
    penalty: PenaltyKind = simplex or SEPARABLE
    if groups is not None:
        penalty = groups if isinstance(groups, Groups) else Groups(np.asarray(groups, np.intp))
    return Glm(
        A, kind.prepare(_rows(b)), loss, weights,
        _number_or_rows(l1), _number_or_rows(l2),
        _number_or_rows(lower), _number_or_rows(upper), intercept, largest,
        {name: np.atleast_1d(options[name]) for name in options} if options else {},
        penalty, _number_or_rows(level), getattr(penalty, "tasks", 1),
    )  # fmt: skip


def _rows(value: Any) -> Array:
    """Vectors of float64 as rows, in C order."""
    rows = np.ascontiguousarray(value, dtype=np.float64)
    return rows[None] if rows.ndim == 1 else rows


def _number_or_rows(value: Any) -> Any:
    """A number as a float; vectors as rows."""
    if value is None or type(value) is float:
        return value
    return float(value) if np.ndim(value) == 0 else _rows(value)


def solve_glm(
    glm: Glm,
    x0: Any = None,
    limits: Limits | None = None,
    threads: int = 1,
    part: Part | None = None,
    start: Start | None = None,
) -> Answer:
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
    part : Part, optional
        Says that these problems are a part of more. What is computed once for all is then chosen
        for the number of all, and no product with A takes several problems at once, so that the
        answers have the same bits however the problems are divided into parts of at least two.
    start : Start, optional
        A first-order method that improves x0 first. One that is used for some problems only is
        left out where the problems differ in b alone, which the core solves together.

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

    solves = glm.batch if part is None else part.total
    reductions = reductions_that_pay(glm, solves) if solves > 1 else None
    if part is not None and reductions is not None:
        reductions = part.kept.setdefault("reductions", reductions)
    together = start is None or start.part > 0
    if together and x0 is None and glm.batch > 1 and _differ_in_b(glm):
        moderate = moderate_rows(glm.b)
        tame = glm if moderate.all() else replace(glm, b=np.where(moderate[:, None], glm.b, 0.0))
        if active_sets_pay(glm, solves):
            kept = {} if part is None else part.kept
            answer = _answer(glm, *solve_by_active_sets(tame, limits, threads, _each, kept))
            _again(glm, answer, np.flatnonzero((answer.status < 0) | ~moderate), limits, until)
            return answer
        if not isinstance(glm.penalty, Simplex):
            answer = _solve_shared(tame, limits, threads, reductions, part)
            _again(glm, answer, np.flatnonzero(~moderate), limits)
            return answer
    if part is not None and glm.A.ndim == 3:
        glm = replace(glm, largest=None)  # that of a part, which is not that of each problem

    steps: dict[bool, float] | None = {} if _share_step(glm) else None

    def one(i: int) -> tuple[Any, ...]:
        if isinstance(glm.penalty, Simplex):
            return OnSimplex(glm, i, _row(x0, i)).solve(limits, until)
        single = Single(glm, i, _row(x0, i), 1.0, reductions)
        if start is not None:
            single.lead(start, limits, until, steps)
        return single.solve(limits, until)

    return _collect(glm, _each(one, glm.batch, threads))


def _share_step(glm: Glm) -> bool:
    """True where the problems share A and the weights of the samples, and so 1/L."""
    s = glm.sample_weight
    return glm.A.ndim == 2 and (isinstance(s, float) or len(s) == 1)


def solve_one(
    glm: Glm, x0: Array | None, limits: Limits, start: Start | None = None
) -> tuple[Any, ...]:
    """Solve the only problem of a `Glm`, from x0 (n,) or from 0.

    Returns x, intercept, objective, gap, status, iterations and passes, as numbers where `Answer`
    has arrays.
    """
    forever = limits.seconds == math.inf
    until = math.inf if forever else time.perf_counter() + limits.seconds
    if isinstance(glm.penalty, Simplex):
        return OnSimplex(glm, 0, x0).solve(limits, until)
    single = Single(glm, 0, x0)
    if start is not None:
        single.lead(start, limits, until)
    return single.solve(limits, until)


def _differ_in_b(glm: Glm) -> bool:
    """True where the problems share all but b, and what they share is of moderate size."""
    rows = glm.sample_weight, *glm.numbers
    shared = (
        glm.A.ndim == 2
        and glm.kind.copies is None
        and glm.tasks == 1
        and all(isinstance(v, float) or len(v) == 1 for v in (*rows, *glm.options.values()))
    )
    return bool(shared and is_moderate(glm.A, *rows, largest=glm.largest))


def _solve_shared(
    glm: Glm, limits: Limits, threads: int, reductions: Reductions | None, part: Part | None
) -> Answer:
    """Solve problems that differ in b alone: the Gram matrix and all A^T b are computed at once.

    Where the problems are a part of more, A^T b is computed for each by itself: the sums of a
    matrix product end in other bits for another number of rows.
    """
    s, B = np.broadcast_to(of_problem(glm.sample_weight, 0), glm.b.shape[1]), glm.batch
    solves = B if part is None else part.total
    b, middle = glm.b, np.zeros(B)
    first = Single(glm, 0, None, 1.0, reductions)
    if first.mean is not None and first.quadratic:
        middle = _products(b, s / s.sum(), part)
        b = b - middle[:, None]
    offsets = sizes = correlations = gram = None
    if first.reduced is not None and part is not None:
        b, offsets, sizes = first.reduced.targets_one_by_one(b)
    elif first.reduced is not None:
        b, offsets, sizes = first.reduced.targets(b)
    elif first.quadratic and glm.A.dtype == np.float64:
        if part is None:
            weighted = s * b
            correlations = np.ascontiguousarray(weighted @ glm.A)
            if first.mean is not None:
                correlations -= np.outer(weighted.sum(1), first.mean)
        if not scipy.sparse.issparse(glm.A) and glm.A.shape[1] < 8 * solves:
            gram = None if part is None else part.kept.get("gram")
            if gram is None:
                gram = weighted_gram(glm.A, s, first.mean)
            if part is not None:
                part.kept["gram"] = gram
    x, numbers = np.empty((B, first.width)), np.empty((B, 5))
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
        last = middle if first.quadratic else x[:, first.n]
        x = x[:, : first.n]
        constant = last - _products(x, first.mean, part)
    answer = _answer(glm, x, constant, numbers)
    if first.reduced is not None:
        _again(glm, answer, np.flatnonzero(answer.status == 1), limits)
    return answer


def _products(rows: Array, vector: Array, part: Part | None) -> Array:
    """The product of every row with a vector, (B,); one by one where the rows are a part."""
    products: Array = rows @ vector if part is None else np.array([row @ vector for row in rows])
    return products


def _again(glm: Glm, answer: Answer, those: Any, limits: Limits, until: float = math.inf) -> None:
    """Solve some problems directly, from what the answer has for them."""
    for i in those:
        start = answer.x[i].astype(np.float64)
        simplex = isinstance(glm.penalty, Simplex)
        problem = OnSimplex(glm, int(i), start) if simplex else Single(glm, int(i), start)
        row = problem.solve(limits, until)
        arrays: list[npt.NDArray[Any]] = [getattr(answer, field.name) for field in fields(answer)]
        for array, value in zip(arrays, row, strict=True):
            array[i] = value


def path_glm(
    glm: Glm, factors: Any, x0: Any = None, limits: Limits | None = None, threads: int = 1
) -> Answer:
    """Solve with l1 and l2 multiplied by each of `factors` (K,) or (K, B), which fall.

    Working set, Gram matrix and solution are kept from one factor to the next. The arrays of the
    answer are (K, B, ...).
    """
    limits = Limits() if limits is None else limits
    forever = limits.seconds == math.inf
    until = math.inf if forever else time.perf_counter() + limits.seconds
    factors = np.asarray(factors, dtype=np.float64).reshape(len(factors), -1)
    reductions = reductions_that_pay(glm, len(factors))

    def one(i: int) -> tuple[Array, Array, Array]:
        column = np.ascontiguousarray(factors[:, i if factors.shape[1] > 1 else 0])
        return Single(glm, i, _row(x0, i), float(column[0]), reductions).path(limits, until, column)

    by_problem = _each(one, glm.batch, threads)
    alone = len(by_problem) == 1
    x, constant, numbers = (
        parts[0][:, None] if alone else np.stack(parts, axis=1)
        for parts in zip(*by_problem, strict=True)
    )
    return _answer(glm, x, constant, numbers)


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


def _answer(glm: Glm, x: Array, constant: Array, numbers: Array) -> Answer:
    """Of arrays whose last axis in `numbers` is objective, gap, status, iterations and passes."""
    objective, gap, status, iterations, passes = (numbers[..., i] for i in range(5))
    precision = np.float32 if glm.A.dtype == np.float32 else np.float64
    return Answer(
        x.astype(precision, copy=False), constant, objective, gap,
        status.astype(np.int8), iterations.astype(np.int64), passes,
    )  # fmt: skip


def _collect(glm: Glm, rows: list[tuple[Any, ...]]) -> Answer:
    x, constant, objective, gap, status, iterations, passes = zip(*rows, strict=True)
    precision = np.float32 if glm.A.dtype == np.float32 else np.float64
    points = x[0][None] if len(x) == 1 else np.array(x)
    return Answer(
        points.astype(precision, copy=False),
        np.array(constant), np.array(objective), np.array(gap),
        np.array(status, dtype=np.int8), np.array(iterations), np.array(passes),
    )  # fmt: skip
