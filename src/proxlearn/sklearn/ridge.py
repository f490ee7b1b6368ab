"""Problems with an l2 penalty alone and many coefficients.

No coefficient of such a problem is zero, so that a working set would hold all columns. `solve` and
`path` solve them by L-BFGS (`quasi_newton`) and Newton's method with conjugate gradients
(`newton_cg`), and leave all other problems to the core. Dense A with fewer rows than columns is
reduced first: A = L Q^T with orthonormal columns in Q (n, m), and the solution is x = Q v, where v
solves the problem of the m x m matrix L with the same penalty.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from proxlearn.core.glm import Answer, Glm, Limits, path_glm, solve_glm
from proxlearn.core.scaling import is_moderate
from proxlearn.core.single import of_problem
from proxlearn.sklearn.design import Design
from proxlearn.sklearn.fitting import Array
from proxlearn.sklearn.newton_cg import Found, Ridge, certified
from proxlearn.sklearn.smooth_losses import Logistic, Loss, Poisson, Softmax, Squares
from proxlearn.solving.named_starts import automatic_start

LOSSES: dict[str, Any] = {
    "squares": Squares,
    "logistic": Logistic,
    "poisson": Poisson,
    "softmax": Softmax,
}

SMALL = 250_000
"""Entries of a wide A up to which L-BFGS is tried on A itself, where one problem is to be solved.

At 200 x 1000 the reduction takes as long as 16 iterations, which are enough for a gap of 1e-6.
"""

MANY = {"squares": 1000, "logistic": 100, "poisson": 100, "softmax": 100}
"""Numbers of coefficients from which on the core is not used, for each loss."""

LARGE = {"poisson": 100_000}
"""Entries of A from which on L-BFGS is tried before the core, where coefficients are fewer.

At 500 x 60 the core takes 0.6 ms and L-BFGS 1.0, at 10000 x 20 they take 4.3 and 1.9 (alpha 0.01).
"""

TRIAL = 20
"""Iterations of that trial: about as long as the core takes for 10000 x 20 and for 4601 x 57."""


def solve(
    glm: Glm, x0: Any, limits: Limits, enough: float | None = None, threads: int = 1
) -> Answer:
    """Solve every problem of a `Glm`, as `solve_glm` does.

    `enough` is the tolerance that has to be met. That of `limits` may be smaller, which costs the
    core little.
    """
    if not _suits(glm):
        start = automatic_start(glm) if x0 is None and glm.loss != "softmax" else None
        return solve_glm(glm, x0, limits, threads, start=start)
    once, loose = np.ones((1, glm.batch)), _loosened(limits, enough)
    if not _has_few(glm):
        return _solve_all(glm, once, loose, x0, threads)[0]
    short = replace(loose, max_iter=min(TRIAL, loose.max_iter))
    tried = _solve_all(glm, once, short, x0, threads, only_easy=True)[0]
    if not tried.status.any() or loose.max_iter <= TRIAL:
        return tried
    reached = np.column_stack([tried.x, tried.intercept]) if glm.intercept else tried.x
    return solve_glm(glm, reached.astype(np.float64), limits, threads)


def path(
    glm: Glm, factors: Array, limits: Limits, enough: float | None = None, threads: int = 1
) -> list[Answer]:
    """Solve with l1 and l2 multiplied by each of `factors` (K,) or (K, B), as `path_glm` does."""
    if not _suits(glm):
        return list(path_glm(glm, factors, limits=limits, threads=threads))
    factors = np.broadcast_to(np.reshape(factors, (len(factors), -1)), (len(factors), glm.batch))
    return _solve_all(glm, factors, _loosened(limits, enough), None, threads)


def _loosened(limits: Limits, enough: float | None) -> Limits:
    """The limits with the tolerance that is enough."""
    return limits if enough is None else replace(limits, tol=enough)


def _suits(glm: Glm) -> bool:
    """True for one l2 penalty of all columns, without bounds, and many coefficients.

    Numbers of extreme size are left to the core, which scales them.
    """
    entries = glm.A.shape[-2] * glm.A.shape[-1]
    if _has_few(glm) and entries < LARGE.get(glm.loss, np.inf):
        return False
    if np.any(glm.l1) or not np.all(np.ravel(glm.l2)[:1] > 0):
        return False
    rows = np.atleast_2d(glm.l2)
    if (rows != rows[:, :1]).any() or not is_moderate(
        glm.A, glm.b, glm.sample_weight, glm.l2, largest=glm.largest
    ):
        return False
    return bool(np.all(glm.lower == -np.inf) and np.all(glm.upper == np.inf))


def _has_few(glm: Glm) -> bool:
    """True where the core takes less time, since the coefficients are few."""
    return bool(glm.coordinates < MANY.get(glm.loss, np.inf))


def _solve_all(
    glm: Glm, factors: Array, limits: Limits, x0: Any = None, threads: int = 1,
    only_easy: bool = False,
) -> list[Answer]:  # fmt: skip
    """Answers for the factors (K, B), each problem from its last solution."""
    A = glm.A.astype(np.float64, copy=False)
    wide = not scipy.sparse.issparse(A) and A.shape[0] < A.shape[1]
    reduced = _Reduced(A) if wide else None
    at_once = factors.size > 1 or A.size > SMALL or 8 * A.shape[0] < A.shape[1]
    starts = None if x0 is None else np.atleast_2d(x0)

    def one(i: int) -> list[Found]:
        start = None if starts is None else starts[i if len(starts) > 1 else 0]
        if reduced is not None and not at_once:
            easy = _one(glm, A, None, i, factors[:, i], limits, start, only_easy=True)
            if easy[0].status == 0:
                return easy
        return _one(glm, A, reduced, i, factors[:, i], limits, start, only_easy)

    if min(threads, glm.batch) > 1:
        with ThreadPoolExecutor(min(threads, glm.batch)) as pool:
            by_problem = list(pool.map(one, range(glm.batch)))
    else:
        by_problem = [one(i) for i in range(glm.batch)]
    return [_collect(glm, [rows[k] for rows in by_problem]) for k in range(len(factors))]


def _one(
    glm: Glm, A: Any, reduced: "_Reduced | None", i: int, factors: Array, limits: Limits,
    start: Array | None, only_easy: bool = False,
) -> list[Found]:  # fmt: skip
    """The solutions of problem i for the factors."""
    weights, l2 = of_problem(glm.sample_weight, i), float(np.ravel(of_problem(glm.l2, i))[0])
    s = np.broadcast_to(weights, A.shape[0]).astype(np.float64)
    loss = _loss(glm, of_problem(glm.b, i), s)
    used = s > 0
    rows: Any = slice(None) if used.all() else used
    trimmed = loss if used.all() else _loss(glm, of_problem(glm.b, i)[used], s[used])
    matrix = A if reduced is None else reduced.get().L
    matrix = matrix if used.all() else matrix[used]
    design = Design(matrix, s[rows], glm.intercept)
    problem = Ridge(design, trimmed, glm.copies)
    point = None if start is None else problem.inward(start, A.shape[1], reduced)
    solved, coefs, constants = [], [], []
    for factor in factors:
        solved.append(problem.solve(factor * l2, point, limits, only_easy))
        point = solved[-1].point
        W, constant = problem.outward(point)
        coefs.append(W)
        constants.append(constant)
    W = np.stack(coefs)
    if reduced is not None:
        W = reduced.coefficients(W.reshape(-1, W.shape[2])).reshape(*W.shape[:2], -1)
    kept = W.astype(glm.A.dtype, copy=False)
    return certified(
        A, loss, kept, np.stack(constants), factors * l2, glm.intercept, solved, reduced is None,
        limits.tol,
    )  # fmt: skip


def _loss(glm: Glm, b: Array, s: Array) -> Loss:
    made: Loss = LOSSES[glm.loss](b, s, glm.copies)
    return made


class _Reduced:
    """A = L Q^T for a wide A (m, n) of rank r: L (m, r), and how x = Q v follows from v.

    L is the Cholesky factor of A A^T with pivoting, and Q = A_p^T L_p^-T with the rows p that are
    pivots. Rounding in A A^T does not matter, since answers are certified for A itself.
    """

    def __init__(self, A: Array):
        self.A = A
        self.made = False
        self.lock = Lock()

    def get(self) -> "_Reduced":
        """The reduction, which is computed when it is asked for the first time."""
        with self.lock:
            if not self.made:
                self._make(self.A)
                self.made = True
        return self

    def _make(self, A: Array) -> None:
        K = A @ A.T
        drop = 1e-13 * float(np.diag(K).max())
        C, pivots, rank, _ = scipy.linalg.lapack.dpstrf(K, tol=drop, lower=1, overwrite_a=1)
        rank = max(int(rank), 1)
        order = pivots - 1
        self.L = np.empty((len(A), rank), order="F")
        self.L[order] = np.tril(C)[:, :rank]
        self.corner, self.rows = self.L[order[:rank]], A[order[:rank]]

    def coefficients(self, V: Array) -> Array:
        """x (R, n) of v (R, r): Q v."""
        half = scipy.linalg.solve_triangular(self.corner, V.T, lower=True, trans="T")
        found: Array = half.T @ self.rows
        return found

    def reduce(self, W: Array) -> Array:
        """v (R, r) of x (R, n): Q^T x."""
        solved = scipy.linalg.solve_triangular(self.corner, self.rows @ W.T, lower=True)
        return np.ascontiguousarray(solved.T)


def _collect(glm: Glm, rows: Sequence[Found]) -> Answer:
    """The answer of the solutions of all problems."""
    constants = np.array([row.constants for row in rows])
    numbers = [(row.objective, row.gap, row.status, row.iterations, row.passes) for row in rows]
    objective, gap, status, iterations, passes = (np.array(v) for v in zip(*numbers, strict=True))
    return Answer(
        np.array([row.W.ravel() for row in rows]),
        constants if glm.loss == "softmax" else constants[:, 0],
        objective, gap, status.astype(np.int8), iterations, passes.astype(np.float64),
    )  # fmt: skip
