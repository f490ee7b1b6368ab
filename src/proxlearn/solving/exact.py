"""Solves by the compiled core: problems in, solutions out, in the problem's own library."""

import math
import os
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from proxlearn.checks import check_whole
from proxlearn.core import kernel, simplex
from proxlearn.core.glm import (
    STATUSES,
    Answer,
    Limits,
    Part,
    describe,
    path_glm,
    solve_glm,
    solve_one,
)
from proxlearn.core.losses import LOSSES
from proxlearn.core.single import of_problem
from proxlearn.core.starts import Start
from proxlearn.problems.arrays import to_numpy
from proxlearn.problems.description import LinearModel
from proxlearn.problems.problem import Problem
from proxlearn.problems.vectors import to_start
from proxlearn.solving.named_starts import automatic_start, is_started
from proxlearn.solving.solution import Solution, SolutionPath, Status

Array = npt.NDArray[np.float64]

BY_NUMBER = tuple(Status(name) for name in STATUSES)
ONE_STATUS = tuple((status,) for status in BY_NUMBER)
NUMERICAL_ERROR = STATUSES.index("NUMERICAL_ERROR")

BLOCK = 2**20
"""Entries of A that are converted to float64 at a time, 8 MiB."""


def solve_exactly(
    problem: Problem,
    x0: Any,
    tol: float,
    max_iter: int,
    time_limit: float | None = None,
    threads: int | None = None,
    part: Part | None = None,
    start: Start | None = None,
) -> Solution:
    """Solve every instance of a problem whose model the core covers.

    `part` says which part of a larger batch these problems are; see `solve_glm`. Without a `start`
    one is chosen where it was measured to be faster and x0 is not given.
    """
    began = time.perf_counter()
    model = problem.model
    assert model is not None
    if problem.batch == 1 and problem.numpy and part is None:
        return _solve_one(problem, model, x0, limits(tol, max_iter, time_limit), began, start)
    stop = limits(tol, max_iter, time_limit)
    glm, first = model.glm(), first_point(problem, x0)
    start = automatic_start(glm) if start is None and x0 is None else start
    answer = solve_glm(glm, first, stop, workers(threads), part, start)
    arrays = in_library(problem, answer)
    return Solution(
        x=arrays.x[0] if problem.single else arrays.x,
        objective=arrays.objective,
        gap=arrays.gap,
        status=statuses(answer),
        iterations=arrays.iterations,
        grad_evals=arrays.passes,
        seconds=time.perf_counter() - began,
        engine="core",
    )


def solve_plainly(plain: Any, tol: float, max_iter: int) -> Solution | None:
    """Solve what `Problem.plain` holds in one call of the core; None where it needs preparation.

    The function makes few calls on purpose: beside other work the code of Python is not in the
    processor's caches, so that each call is slow.
    """
    found = kernel.solve_plain(plain, tol, max_iter)
    if found is None:
        return None
    x, objective, gap, status, iterations, passes, seconds = found
    return Solution.of(x, objective, gap, ONE_STATUS[status], iterations, passes, seconds)


def _solve_one(
    problem: Problem,
    model: LinearModel,
    x0: Any,
    limits: Limits,
    began: float,
    start: Start | None,
) -> Solution:
    """The same for one instance, without the arrays of a batch."""
    found = _solve_as_given(model, limits) if x0 is None and start is None else None
    if found is None:
        glm, first = model.glm(), None if x0 is None else first_point(problem, x0).reshape(-1)
        start = automatic_start(glm) if start is None and x0 is None else start
        found = solve_one(glm, first, limits, start)
    x, _, objective, gap, status, iterations, passes = found
    if not (math.isfinite(objective) and math.isfinite(kernel.largest_magnitude(x))):
        status = NUMERICAL_ERROR
    x = x if model.A.dtype.itemsize == 8 else x.astype(np.float32)
    F, gap, count, gradients = kernel.arrays_of(objective, gap, iterations, math.ceil(passes))
    x, seconds = x if problem.single else x[None], time.perf_counter() - began
    return Solution.of(x, F, gap, ONE_STATUS[status], count, gradients, seconds)


def _solve_as_given(model: LinearModel, limits: Limits) -> Any:
    """Solve one problem without a `Glm`, if there is nothing to prepare; None where there is."""
    A, r = model.A, model.penalty
    if A.largest is None:
        return None
    if r.radius is not None:
        radius, b = float(r.radius[0]), model.b[0]
        return simplex.solve_as_given(A.values, A.largest, b, radius, r.at_most, limits)
    kind, numbers, (m, n) = LOSSES[model.loss], r.uniform, A.shape
    if numbers is None or model.options or is_started(model.loss, m, n):
        return None
    s, b = 1.0 / m if kind.mean else 1.0, kind.prepare(model.b[0])
    return kernel.solve_as_given(
        A.values, A.largest, b, kind.compiled, s, numbers, A.products,
        limits.tol, limits.max_iter, limits.seconds,
    )  # fmt: skip


def path_exactly(
    problem: Problem,
    lams: npt.NDArray[Any],
    x0: Any,
    tol: float,
    max_iter: int,
    threads: int | None = None,
) -> SolutionPath:
    """Solve for each of lams (K, B), which fall, by the core; lam2 keeps its ratio to lam."""
    began = time.perf_counter()
    model = problem.model
    assert model is not None
    whole = path_glm(
        model.glm(model.penalty.at_one()),
        lams,
        first_point(problem, x0),
        limits(tol, max_iter),
        workers(threads),
    )
    arrays, chain = in_library(problem, whole), lams
    if not problem.numpy:
        from proxlearn.problems.tensors import as_tensor

        chain = as_tensor(lams)  # type: ignore[assignment]
    return SolutionPath(
        lams=chain[:, 0] if problem.single else chain,
        x=arrays.x[:, 0] if problem.single else arrays.x,
        objective=arrays.objective,
        gap=arrays.gap,
        status=tuple(
            tuple([BY_NUMBER[number] for number in row]) for row in _status_numbers(whole).tolist()
        ),
        iterations=arrays.iterations,
        grad_evals=arrays.passes,
        seconds=time.perf_counter() - began,
        engine="core",
    )


def largest_lam(model: LinearModel) -> Array:
    """The smallest lam for which every penalised coordinate of the solution is zero, (B,).

    From A^T u, with u the gradient of the loss at the minimiser over the unpenalised coordinates.
    """
    m, b = model.A.shape[0], np.ascontiguousarray(to_numpy(model.b), dtype=np.float64)
    kind, T = LOSSES[model.loss], model.tasks
    share = np.full(m * T, 1.0 / m if kind.mean else 1.0)
    found = np.empty(model.batch)
    for i in range(model.batch):
        A = _own(model.A.array, i)
        target = b[i if len(b) > 1 else 0]
        free = model.penalty.free(model.n, i)[::T]  # all tasks of a column are unpenalised, or none
        parts = [_null_prediction(model, i, part, free) for part in target.reshape(T, m)]
        loss = kind.compiled(kind.prepare(target), share, **model.options_of(i))
        u = loss.dual_point(np.concatenate(parts).ravel()).reshape(-1, m)
        c = np.stack([_correlations(A, part) for part in u], axis=1 if T > 1 else 0)
        found[i] = model.penalty.lam_max(c.ravel(), i)
    return found


def _own(A: Any, i: int) -> Any:
    """A of instance i."""
    return of_problem(A, i) if isinstance(A, np.ndarray) and A.ndim == 3 else A


def _null_prediction(model: LinearModel, i: int, b: Array, free: npt.NDArray[np.bool_]) -> Array:
    """A x at the minimiser x of instance i over the unpenalised coordinates, the others at 0.

    (classes, m); there is one class but for softmax.
    """
    A = _own(model.A.array, i)
    free = free.reshape(-1, A.shape[1])
    if not free.any():
        return np.zeros((len(free), len(b)))
    chosen = free.any(0)
    columns = A[:, np.flatnonzero(chosen)]
    dense = np.asarray(columns if isinstance(columns, np.ndarray) else columns.toarray(), float)
    x = minimiser_over(dense, b, model.loss, free[:, chosen], model.options_of(i))
    prediction: Array = x @ dense.T
    return prediction


def minimiser_over(
    columns: Array, b: Array, loss: str, free: npt.NDArray[np.bool_], options: dict[str, Any]
) -> Array:
    """The minimiser of a loss over some columns (m, k), (classes, k), 0 where `free` is not set."""
    if LOSSES[loss].quadratic:
        exact: Array = np.asarray(np.linalg.lstsq(columns, b, rcond=None)[0], float)[None]
        return exact
    reach = np.where(free, np.inf, 0.0).ravel()
    glm = describe(columns, b, loss, lower=-reach, upper=reach, options=options)
    found: Array = solve_glm(glm, limits=Limits(tol=1e-14, max_iter=100)).x[0]
    return found.reshape(free.shape)


def _correlations(A: Any, u: Array) -> Array:
    """A^T u in float64, in blocks of rows where A is in single precision."""
    if not isinstance(A, np.ndarray) or A.dtype == np.float64:
        return np.asarray(A.T @ u)
    rows = max(1, BLOCK // A.shape[1])
    parts = range(0, len(A), rows)
    total: Array = sum(A[i : i + rows].astype(float).T @ u[i : i + rows] for i in parts)
    return total


def limits(tol: float, max_iter: int, seconds: float | None = None) -> Limits:
    """The core's limits."""
    return Limits(float(tol), max_iter, np.inf if seconds is None else float(seconds))


def first_point(problem: Problem, x0: Any) -> Any:
    """x0 for the core, validated; rounded to the problem's precision as the answer is."""
    if x0 is None:
        return None
    model = problem.model
    assert model is not None
    given = to_start(x0, problem.batch, problem.n, model.A.precision)
    return given.astype(np.float64, copy=False)


def workers(threads: int | None) -> int:
    """Number of threads for a batch: OMP_NUM_THREADS, which other libraries read too, or all."""
    if threads is not None:
        check_whole(threads=threads)
        return int(threads)
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    available = getattr(os, "sched_getaffinity", None)
    return len(available(0)) if available is not None else os.cpu_count() or 1


def statuses(answer: Answer) -> tuple[Status, ...]:
    """The statuses of the instances."""
    return tuple([BY_NUMBER[number] for number in _status_numbers(answer).tolist()])


def _status_numbers(answer: Answer) -> npt.NDArray[np.int8]:
    """The statuses of the answer; NUMERICAL_ERROR where a number is not finite in float64."""
    finite = np.isfinite(answer.objective) & np.isfinite(answer.x).all(-1)
    return np.where(finite, answer.status, NUMERICAL_ERROR)


def in_library(problem: Problem, answer: Answer) -> Answer:
    """The answer as NumPy arrays or tensors, with whole numbers of passes."""
    passes = np.ceil(answer.passes).astype(np.int64)
    parts: tuple[Any, ...] = (
        answer.x, answer.intercept, answer.objective, answer.gap,
        answer.status, answer.iterations, passes,
    )  # fmt: skip
    if problem.numpy:
        return Answer(*parts)
    from proxlearn.problems.tensors import as_tensor

    tensors: tuple[Any, ...] = tuple(as_tensor(part) for part in parts)
    return Answer(*tensors)
