"""Many least squares problems that differ in b alone, by the active-set method of the core.

What a problem's answer is depends on that problem alone: neither on the number of threads nor on
the other problems, so that a batch may be cut into parts at will.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from proxlearn.core.penalty_kinds import SEPARABLE, Simplex
from proxlearn.core.reduction import centred, weighted_mean
from proxlearn.core.shared_matrix import Shared, compiled, is_covered, prepared
from proxlearn.core.simplex import CONSTRAINTS
from proxlearn.core.single import Glm, Limits, of_problem

Array = npt.NDArray[np.float64]

PIECE = 256
"""Problems that a thread takes at a time."""
DENSE = 1 / 16
"""Part of a sparse A that must not be 0 for its columns to be kept as dense ones."""


def active_sets_pay(glm: Glm, solves: int) -> bool:
    """True where the active-set method solves problems that share all but b.

    The Gram matrix of all columns costs about as much as n/8 products with A.
    """
    A, rows = glm.A, _constraints(glm)
    if not glm.kind.quadratic or rows is None:
        return False
    if scipy.sparse.issparse(A) and A.nnz < DENSE * A.shape[0] * A.shape[1]:
        return False
    return A.shape[1] < 8 * solves and is_covered(A, rows)


def _constraints(glm: Glm) -> tuple[Any, ...] | None:
    """l1, l2, lower and upper of all problems; None where the penalty is of another kind."""
    if isinstance(glm.penalty, Simplex):
        return CONSTRAINTS
    return tuple(of_problem(v, 0) for v in glm.numbers) if glm.penalty is SEPARABLE else None


def solve_by_active_sets(
    glm: Glm, limits: Limits, threads: int, each: Callable[..., Any], kept: dict[str, Any]
) -> tuple[Array, Array, Array]:
    """x (B, n), the intercepts (B,) and numbers (B, 5): objective, gap, status, rounds, passes.

    The status is -1 where the method could not prove an answer. `each` runs a function by several
    threads, `kept` holds what was computed from A alone.
    """
    began, B = time.perf_counter(), glm.batch
    weights = of_problem(glm.sample_weight, 0)
    s = (
        None
        if np.ndim(weights) == 0 and weights == 1.0
        else np.broadcast_to(weights, glm.b.shape[1])
    )
    b, middle, mean = glm.b, np.zeros(B), None
    if glm.intercept:
        share = np.full(b.shape[1], 1.0 / b.shape[1]) if s is None else s / s.sum()
        mean = weighted_mean(glm.A, share)
        middle = (b * share).sum(axis=1)  # each row by itself, whatever their number
        b = centred(b, middle, share)
    if s is not None:
        b = b * np.sqrt(s)
    shared: Shared | None = kept.get("shared")
    if shared is None:
        radius, slack = 0.0, False
        if isinstance(glm.penalty, Simplex):
            radius, slack = float(np.max(of_problem(glm.level, 0))), glm.penalty.slack
        rows = _constraints(glm)
        assert rows is not None
        shared = prepared(glm.A, s, rows, mean, limits.tol, radius, slack)
        kept["shared"] = shared
    b = np.broadcast_to(b, (B, b.shape[1]))
    x, numbers = np.empty((B, glm.A.shape[1])), np.zeros((B, 5))
    single = glm.A.dtype == np.float32
    pieces = [slice(i, i + PIECE) for i in range(0, B, PIECE)]
    if threads <= 1:
        pieces = [slice(0, B)]

    def some(i: int) -> None:
        left = limits.seconds - (time.perf_counter() - began)
        piece = pieces[i]
        solver = compiled(shared, limits.tol)
        solver.solve(b[piece], x[piece], numbers[piece], single, limits.max_iter, left)

    each(some, len(pieces), threads)
    constant = middle if mean is None else middle - (x * mean).sum(axis=1)
    return x, constant, numbers
