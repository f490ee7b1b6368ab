"""Solves by the compiled core: problems in, solutions out, in the problem's own library."""

import os
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from proxlearn.arrays import to_numpy, to_start
from proxlearn.core.glm import STATUSES, Answer, Limits, describe, path_glm, solve_glm
from proxlearn.description import LinearModel
from proxlearn.problem import Problem
from proxlearn.solution import Solution, SolutionPath, Status

Array = npt.NDArray[np.float64]

BY_NUMBER = tuple(Status(name) for name in STATUSES)

BLOCK = 2**20
"""Entries of A that are converted to float64 at a time, 8 MiB."""


def solve_exactly(
    problem: Problem,
    x0: Any,
    tol: float,
    max_iter: int,
    time_limit: float | None = None,
    threads: int | None = None,
) -> Solution:
    """Solve every instance of a problem whose model the core covers."""
    began = time.perf_counter()
    model = problem.model
    assert model is not None
    answer = solve_glm(
        model.glm(), start(problem, x0), limits(tol, max_iter, time_limit), workers(threads)
    )
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
    r = model.penalty
    ratio = None if r.lam2 is None else to_numpy(r.lam2) / to_numpy(r.lam)
    answers = path_glm(
        model.glm(lam=np.ones(1), lam2=ratio),
        lams,
        start(problem, x0),
        limits(tol, max_iter),
        workers(threads),
    )
    parts = ("x", "intercept", "objective", "gap", "status", "iterations", "passes")
    whole = Answer(*(np.stack([getattr(a, part) for a in answers]) for part in parts))
    arrays, chain = in_library(problem, whole), lams
    if not problem.numpy:
        from proxlearn.tensors import as_tensor

        chain = as_tensor(lams)  # type: ignore[assignment]
    return SolutionPath(
        lams=chain[:, 0] if problem.single else chain,
        x=arrays.x[:, 0] if problem.single else arrays.x,
        objective=arrays.objective,
        gap=arrays.gap,
        status=tuple(statuses(a) for a in answers),
        iterations=arrays.iterations,
        grad_evals=arrays.passes,
        seconds=time.perf_counter() - began,
        engine="core",
    )


def largest_lam(model: LinearModel) -> Array:
    """The smallest lam for which every penalised coordinate of the solution is zero, (B,).

    It is the largest |a_j^T u| / w_j, with u the gradient of the loss at the minimiser over the
    unpenalised coordinates.
    """
    n, b = model.A.shape[1], np.asarray(to_numpy(model.b), dtype=np.float64)
    weights = np.broadcast_to(model.penalty.times(n, np.ones(1)), (model.penalty.batch, n))
    found = np.empty(model.batch)
    for i in range(model.batch):
        A, w = _own(model.A.array, i), weights[i if len(weights) > 1 else 0]
        target = b[i if len(b) > 1 else 0]
        z = _null_prediction(model.loss, A, target, w == 0)
        u = z - target if model.loss == "squares" else (_sigmoid(z) - target) / len(target)
        g = _correlations(A, u)
        found[i] = np.max(np.abs(g[w > 0]) / w[w > 0], initial=0.0)
    return found


def _own(A: Any, i: int) -> Any:
    """A of instance i."""
    return A[i if len(A) > 1 else 0] if isinstance(A, np.ndarray) and A.ndim == 3 else A


def _null_prediction(loss: str, A: Any, b: Array, free: npt.NDArray[np.bool_]) -> Array:
    """A x at the minimiser x of the loss over the unpenalised coordinates, the others at 0."""
    if not free.any():
        return np.zeros(len(b))
    columns = A[:, np.flatnonzero(free)]
    dense = np.asarray(columns if isinstance(columns, np.ndarray) else columns.toarray(), float)
    if loss == "squares":
        x = np.linalg.lstsq(dense, b, rcond=None)[0]
    else:
        x = solve_glm(describe(dense, b, loss), limits=Limits(tol=1e-14, max_iter=100)).x[0]
    prediction: Array = dense @ x
    return prediction


def _sigmoid(z: Array) -> Array:
    return 0.5 * (1 + np.tanh(0.5 * z))


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


def start(problem: Problem, x0: Any) -> Any:
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
        return max(1, int(threads))
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    available = getattr(os, "sched_getaffinity", None)
    return len(available(0)) if available is not None else os.cpu_count() or 1


def statuses(answer: Answer) -> tuple[Status, ...]:
    """The statuses of the instances; numbers that float64 cannot hold solve nothing."""
    finite = np.isfinite(answer.objective) & np.isfinite(answer.x).all(-1)
    found = zip(answer.status.tolist(), finite.tolist(), strict=True)
    return tuple(BY_NUMBER[s] if f else Status.NUMERICAL_ERROR for s, f in found)


def in_library(problem: Problem, answer: Answer) -> Answer:
    """The answer as NumPy arrays or tensors, with whole numbers of passes."""
    passes = np.ceil(answer.passes).astype(np.int64)
    parts: tuple[Any, ...] = (
        answer.x, answer.intercept, answer.objective, answer.gap,
        answer.status, answer.iterations, passes,
    )  # fmt: skip
    if problem.numpy:
        return Answer(*parts)
    from proxlearn.tensors import as_tensor

    tensors: tuple[Any, ...] = tuple(as_tensor(part) for part in parts)
    return Answer(*tensors)
