"""Least squares for several targets at once, with a penalty on the rows of the coefficients.

    minimise over W, c    1/2 sum_i s_i |y_i - x_i W - c|^2 + level sum_j |W_j| + l2/2 |W|^2

W (n, T) has a row for each column of X, which is 0 for all targets or for none. The core solves it
without weights, intercept and l2. Weights multiply the rows of X and Y by their square roots. For
an intercept dense columns are centred in a copy, and sparse matrices get a column of ones with
level 0. l2 becomes n rows of a diagonal matrix below X.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from proxlearn.core.describing import constant_columns
from proxlearn.core.glm import Answer, Glm, Limits, describe, path_glm, solve_glm
from proxlearn.core.penalty_kinds import Groups
from proxlearn.core.reduction import centred
from proxlearn.sklearn.fitting import Array


class Tasks:
    """The problems of X (m, n) and Y (m, T), for any weights of the penalty."""

    def __init__(self, X: Any, Y: Array, s: Array, fit_intercept: bool):
        self.X, self.Y, self.s, self.fit_intercept = X, Y.astype(np.float64), s, fit_intercept
        self.n, self.T = X.shape[1], Y.shape[1]
        used = s > 0
        root = np.sqrt(s[used])
        A, targets = X[used].astype(np.float64), self.Y[used]
        self.mean, self.middle = np.zeros(self.n), np.zeros(self.T)
        self.ones = fit_intercept and scipy.sparse.issparse(X)
        if fit_intercept:
            share = s[used] / s.sum()
            self.middle = share @ targets
            targets = centred(np.ascontiguousarray(targets.T), self.middle, share).T
            if not self.ones:
                self.mean = share @ A
                A = A - self.mean
                A[:, constant_columns(X, np.flatnonzero(used))] = 0.0
        if scipy.sparse.issparse(A):
            A = scipy.sparse.diags_array(root) @ A
            self.A = (scipy.sparse.hstack([A, root[:, None]]) if self.ones else A).tocsc()
        else:
            self.A = root[:, None] * A
        self.B = np.ascontiguousarray((root[:, None] * targets).T)
        self.groups = Groups(np.repeat(np.arange(self.A.shape[1]), self.T), self.T)
        self.stacked: tuple[Any, Array] | None = None

    def largest_level(self) -> float:
        """The smallest level for which W = 0 is optimal."""
        lengths = np.sqrt(np.square(self.B @ self.A).sum(axis=0))
        return float(np.max(lengths[: self.n], initial=0.0))

    def solve(
        self, level: float, l2: float, limits: Limits, start: Any = None, enough: float = 0.0
    ) -> Answer:
        """The answer with x (1, T n), target after target, from coefficients (T, n) or from 0.

        `enough` is the tolerance that has to be met, where that of `limits` is smaller.
        """
        answer = solve_glm(self._glm(level, l2), self._inward(start), limits)
        return self._outward(answer, level, l2, limits.tol, enough)

    def path(
        self, levels: Array, l2s: Array, limits: Limits, start: Any = None
    ) -> Iterator[Answer]:
        """Answers for falling levels, each from the last."""
        if not l2s.any():
            answers = path_glm(self._glm(1.0, 0.0), levels, self._inward(start), limits)
            for answer, level in zip(answers, levels, strict=True):
                yield self._outward(answer, float(level), 0.0, limits.tol)
            return
        for level, l2 in zip(levels, l2s, strict=True):
            answer = self.solve(float(level), float(l2), limits, start)
            start = answer.x.reshape(self.T, self.n)
            yield answer

    def _glm(self, level: float, l2: float) -> Glm:
        A, B = (self.A, self.B) if l2 == 0 else self._with_ridge(l2)
        levels = np.full(A.shape[1], level)
        levels[self.n :] = 0.0
        return describe(A, B.ravel(), "squares", level=levels, groups=self.groups)

    def _with_ridge(self, l2: float) -> tuple[Any, Array]:
        """A with rows of sqrt(l2) times the identity below it, and B with zeros for them."""
        m, width = self.A.shape
        if self.stacked is None:
            B = np.hstack([self.B, np.zeros((self.T, self.n))])
            if scipy.sparse.issparse(self.A):
                more = scipy.sparse.eye_array(self.n, width)
                A = scipy.sparse.vstack([self.A, more]).tocsc()
                A.sort_indices()
            else:
                A = np.zeros((m + self.n, width), order="F")
                A[:m] = self.A
            self.stacked = A, B
        A, B = self.stacked
        if scipy.sparse.issparse(A):
            A.data[A.indptr[1 : self.n + 1] - 1] = np.sqrt(l2)  # the last entry of each column
        else:
            j = np.arange(self.n)
            A[m + j, j] = np.sqrt(l2)
        return A, B

    def _inward(self, start: Any) -> Array | None:
        """x of the core, row by row of W, from coefficients (T, n)."""
        if start is None:
            return None
        W = np.asarray(start, dtype=np.float64).T
        return np.ascontiguousarray(
            np.vstack([W, -(self._means() @ W)[None]]) if self.ones else W
        ).ravel()

    def _means(self) -> Array:
        return np.asarray((self.s / self.s.sum()) @ self.X).ravel()

    def _outward(
        self, answer: Answer, level: float, l2: float, tol: float, enough: float = 0.0
    ) -> Answer:
        """Coefficients and constants of X itself, and the gap at them in the precision of X.

        Constants are left in float64 where a fit would not be solved with rounded ones.
        """
        W = answer.x.reshape(-1, self.T)
        constant = self.middle - self.mean @ W[: self.n]
        if self.ones:
            constant = constant + W[self.n]
        W = W[: self.n]
        x = np.ascontiguousarray(W.T.astype(self.X.dtype))
        gap, objective, status = answer.gap, answer.objective, answer.status
        if x.dtype == np.float32:
            bound, exact = answer.objective - answer.gap, constant
            for constant in (exact.astype(np.float32), exact):
                objective = self._objective(x, constant, level, l2)
                gap = np.maximum(objective - bound, 0.0)
                if gap <= max(tol, enough) * objective:
                    break
            status = np.where((status == 0) & (gap > tol * objective), 1, status).astype(np.int8)
        return replace(
            answer, x=x.reshape(1, -1), intercept=constant[None], objective=objective, gap=gap,
            status=status,
        )  # fmt: skip

    def _objective(self, x: Any, constant: Array, level: float, l2: float) -> Array:
        W = x.astype(np.float64).T
        left = self.Y - self.X @ W - constant
        lengths = np.sqrt(np.square(W).sum(axis=1))
        value = 0.5 * self.s @ np.square(left).sum(axis=1) + 0.5 * l2 * np.square(W).sum()
        return np.array([value + level * lengths.sum()])
