"""Problems with an l2 penalty alone and many columns.

No coefficient of such a problem is zero, so that a working set would hold all n columns and its
model n x n numbers. `solve` and `path` avoid that and leave all other problems to the core:

- Dense A with fewer rows than columns: A = R^T Q^T with orthonormal columns in Q (n, m), and the
  solution is x = Q v, where v solves the problem of the m x m matrix R^T with the same penalty.
- Otherwise L-BFGS, and the core where that ends without a certificate.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.optimize import minimize
from scipy.special import entr, expit

from proxlearn.core.glm import Answer, Glm, Limits, path_glm, solve_glm
from proxlearn.core.single import of_problem
from proxlearn.sklearn.fitting import Array
from proxlearn.solving.starts import automatic_start

MANY_COLUMNS = 1000
"""From this number of columns on the core is not asked first.

At 300 x 2000 and 1000 x 3000 it takes 0.65 and 4.8 s for l2 logistic regression (November 2026).
"""

MOST_STEPS = 300
"""Iterations of L-BFGS after which the core goes on, where its model is not too large for that."""

MOST_COLUMNS = 5000
"""Columns of the largest such model, of 0.2 GB."""

CURVATURE = {"squares": 1.0, "logistic": 0.25}
"""The largest second derivative of a loss."""


def solve(glm: Glm, x0: Any = None, limits: Limits | None = None, threads: int = 1) -> Answer:
    """Solve every problem of a `Glm`, as `solve_glm` does."""
    limits = Limits() if limits is None else limits
    if not _suits(glm):
        start = automatic_start(glm) if x0 is None else None
        return solve_glm(glm, x0, limits, threads, start=start)
    return _solve_all(glm, np.ones((1, glm.batch)), limits, x0)[0]


def path(glm: Glm, factors: Array, limits: Limits, threads: int = 1) -> list[Answer]:
    """Solve with l1 and l2 multiplied by each of `factors` (K,) or (K, B), as `path_glm` does."""
    if not _suits(glm):
        return list(path_glm(glm, factors, limits=limits, threads=threads))
    factors = np.broadcast_to(np.reshape(factors, (len(factors), -1)), (len(factors), glm.batch))
    return _solve_all(glm, factors, limits)


def _solve_all(glm: Glm, factors: Array, limits: Limits, x0: Any = None) -> list[Answer]:
    """Answers for the factors (K, B), each problem from its last solution."""
    glm, reduced = glm.in_rows(), None
    if not scipy.sparse.issparse(glm.A) and glm.A.shape[0] < glm.A.shape[1]:
        Q, R = scipy.linalg.qr(glm.A.T.astype(np.float64, copy=False), mode="economic")
        m = glm.A.shape[0]
        reduced = replace(
            glm, A=np.ascontiguousarray(R.T), l1=np.zeros((1, m)), l2=glm.l2[:, :m],
            lower=glm.lower[:, :m], upper=glm.upper[:, :m],
        )  # fmt: skip
    by_problem = []
    for i in range(glm.batch):
        problem, rows = _Problem(glm, i), []
        start = None if x0 is None else np.atleast_2d(x0)[i if len(np.atleast_2d(x0)) > 1 else 0]
        for factor in factors[:, i]:
            if reduced is None:
                rows.append(problem.solve(limits, start, factor))
                start = rows[-1][0]
            else:
                v = solve_glm(problem.alone(reduced, factor), limits=limits)
                x, l2 = Q @ v.x[0], factor * problem.l2
                rows.append(problem.certified(x, float(v.intercept[0]), l2, limits, v.iterations))
        by_problem.append(rows)
    return [_collect([rows[k] for rows in by_problem]) for k in range(len(factors))]


def _suits(glm: Glm) -> bool:
    glm = glm.in_rows()
    if glm.A.shape[-1] < MANY_COLUMNS or glm.l1.any() or not glm.l2.flat[0] > 0:
        return False
    if (glm.l2 != glm.l2[:, :1]).any():
        return False
    return bool((glm.lower == -np.inf).all() and (glm.upper == np.inf).all())


class _Problem:
    """Loss and l2 penalty in coefficients v = p x, where p^2 bounds the diagonal of the Hessian.

    The columns are centred where there is an intercept, and the constant of the centred columns
    is the last coefficient.
    """

    def __init__(self, glm: Glm, i: int):
        self.glm, self.squares = glm, glm.loss == "squares"
        self.A = glm.A.astype(np.float64, copy=False)
        self.b, self.s, self.l2 = (of_problem(v, i) for v in (glm.b, glm.sample_weight, glm.l2))
        self.n = self.A.shape[1]
        total, curvature = self.s.sum(), CURVATURE[glm.loss]
        square = self.A.multiply(self.A) if scipy.sparse.issparse(self.A) else np.square(self.A)
        spread = np.asarray(self.s @ square).ravel()
        self.mean = np.zeros(self.n)
        if glm.intercept:
            self.mean = np.asarray(self.s @ self.A).ravel() / total
            spread = np.maximum(spread - total * self.mean**2, 0.0)
        self.curvatures = np.append(curvature * spread, curvature * total)[: self.n + glm.intercept]

    def alone(self, glm: Glm, factor: float) -> Glm:
        """This problem of a `Glm` of several, with its penalty multiplied by a factor."""
        b, s = self.b[None], self.s[None]
        return replace(glm, b=b, sample_weight=s, l2=factor * self.l2[None, : glm.A.shape[1]])

    def solve(self, limits: Limits, start: Array | None, factor: float = 1.0) -> tuple[Any, ...]:
        """x, intercept, objective, gap, status and iterations for l2 multiplied by a factor."""
        l2 = np.append(factor * self.l2, 0.0)[: len(self.curvatures)]
        p = np.sqrt(self.curvatures + l2)
        v, count = np.zeros(len(p)), 0
        if start is not None:
            v[: self.n] = start * p[: self.n]
        small = self.n <= MOST_COLUMNS
        for precision in (0.01 * limits.tol, 0.0):
            most = min(limits.max_iter, MOST_STEPS) if small else limits.max_iter
            options = {"maxiter": max(most - count, 1), "maxfun": 10**9, "maxcor": 20}
            found = minimize(
                self._value_and_slope, v, (l2, p), jac=True, method="L-BFGS-B",
                options={**options, "ftol": precision, "gtol": 0.0},
            )  # fmt: skip
            v, count = found.x, count + int(found.nit)
            x, constant = v[: self.n] / p[: self.n], 0.0
            if self.glm.intercept:
                constant = float(v[self.n] / p[self.n] - self.mean @ x)
            row = self.certified(x, constant, l2[: self.n], limits, count)
            if row[4] == 0:
                return row
        if not small or count >= limits.max_iter:
            return row
        answer = solve_glm(self.alone(self.glm, factor), row[0], limits)
        count += int(answer.iterations[0])
        fields = (answer.x, answer.intercept, answer.objective, answer.gap, answer.status)
        return (*(field[0] for field in fields), count)

    def _predictions(self, x: Array) -> Array:
        z: Array = self.A @ x[: self.n]
        return z + (x[self.n] - self.mean @ x[: self.n]) if self.glm.intercept else z

    def _value_and_slope(self, v: Array, l2: Array, p: Array) -> tuple[float, Array]:
        x = v / p
        z = self._predictions(x)
        value, u = self._loss(z)
        return value + 0.5 * float(l2 @ x**2), (l2 * x - self._correlations(u)) / p

    def _loss(self, z: Array) -> tuple[float, Array]:
        """The loss, and minus its derivative with respect to z."""
        if self.squares:
            left = self.b - z
            return 0.5 * float(self.s @ left**2), self.s * left
        margin = self.b * z
        return float(self.s @ np.logaddexp(0.0, -margin)), self.s * self.b * expit(-margin)

    def _correlations(self, u: Array) -> Array:
        total = u.sum()
        c = np.asarray(u @ self.A).ravel() - total * self.mean
        return np.append(c, total) if self.glm.intercept else c

    def certified(
        self, x: Array, constant: float, l2: Array, limits: Limits, count: Any
    ) -> tuple[Any, ...]:
        """x in the precision of A, and objective, gap and status at it."""
        kept = x.astype(self.glm.A.dtype)
        z = self.A @ kept.astype(np.float64) + constant
        value, u = self._loss(z)
        objective = value + 0.5 * float(l2 @ np.square(kept, dtype=np.float64))
        if self.squares:
            if self.glm.intercept:
                u = u - self.s * (u.sum() / self.s.sum())
            used = self.s > 0
            bound = float(u @ self.b - 0.5 * np.square(u[used]) @ (1.0 / self.s[used]))
        else:
            t = expit(-self.b * z)
            if self.glm.intercept:
                t = self._balanced(t)
            u = self.s * self.b * t
            bound = float(self.s @ (entr(t) + entr(1.0 - t)))
        c = self._correlations(u)[: self.n]
        gap = max(objective - bound + 0.5 * float(c**2 @ (1.0 / l2)), 0.0)
        level = np.finfo(float).eps * self._loss(np.zeros(len(z)))[0]
        solved = limits.tol > 0 and gap <= max(limits.tol * objective, level)
        return kept, constant, objective, gap, 0 if solved else 1, int(np.max(count))

    def _balanced(self, t: Array) -> Array:
        """Shrink the dual point of one class until both have the same sum, as an intercept asks."""
        first = self.b > 0
        sums = float(self.s[first] @ t[first]), float(self.s[~first] @ t[~first])
        least = min(sums)
        shares = np.where(first, least / max(sums[0], 1e-300), least / max(sums[1], 1e-300))
        return t * np.minimum(shares, 1.0)


def _collect(rows: Sequence[tuple[Any, ...]]) -> Answer:
    x, constant, objective, gap, status, iterations = zip(*rows, strict=True)
    return Answer(
        np.array(x), np.array(constant), np.array(objective), np.array(gap),
        np.array(status, dtype=np.int8), np.array(iterations), 2.0 * np.array(iterations),
    )  # fmt: skip
