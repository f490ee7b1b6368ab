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
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from proxlearn.core.answers import STATUSES, Answer, answer_of, collected
from proxlearn.core.batches import active_sets_pay, solve_by_active_sets
from proxlearn.core.describing import describe
from proxlearn.core.penalty_kinds import Simplex
from proxlearn.core.reduction import Reductions, centred, reductions_that_pay, weighted_gram
from proxlearn.core.scaling import is_moderate, moderate_rows
from proxlearn.core.simplex import OnSimplex
from proxlearn.core.single import Glm, Limits, Part, Single, of_problem
from proxlearn.core.starts import Start

Array = npt.NDArray[np.float64]

__all__ = [
    "STATUSES", "Answer", "Glm", "Limits", "Part", "describe", "path_glm", "solve_glm", "solve_one",
]  # fmt: skip


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
    if part is None:  # a part of more problems must not depend on which ones are in it
        glm = glm.condensed()

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
            answer = answer_of(glm, *solve_by_active_sets(tame, limits, threads, _each, kept))
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

    return collected(glm, _each(one, glm.batch, threads))


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
        b = centred(b, middle, s)
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
    answer = answer_of(glm, x, constant, numbers)
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
    return answer_of(glm, x, constant, numbers)


def _row(x0: Any, i: int) -> Array | None:
    """The start of problem i."""
    if x0 is None:
        return None
    rows = np.atleast_2d(np.asarray(x0, dtype=np.float64))
    row: Array = rows[i if len(rows) > 1 else 0]
    return row


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
