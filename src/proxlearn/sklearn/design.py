"""The matrix of a problem with an l2 penalty alone: products with centred columns."""

from typing import Any

import numpy as np
import scipy.sparse

from proxlearn.core import kernel
from proxlearn.sklearn.fitting import Array


class Design:
    """A (m, n) with centred columns and, for an intercept, a last column of ones.

    Columns are centred on the fly; A is not copied.
    """

    def __init__(self, A: Any, s: Array, intercept: bool):
        self.n = A.shape[1]
        self.A, self.s, self.intercept = A, s, intercept
        self.sparse, self.width = scipy.sparse.issparse(A), self.n + intercept
        self.AT = self.A.T  # kept, since a sparse matrix makes a new object each time
        self.squared: Any = None
        self.kept: dict[str, Array] = {}
        self.passes = 0

    @property
    def mean(self) -> Array:
        """The means of the columns, (n,); 0 without an intercept."""
        if "mean" not in self.kept:
            mean = (self.s / self.s.sum()) @ self.A if self.intercept else np.zeros(self.n)
            self.kept["mean"] = np.asarray(mean).ravel()
        return self.kept["mean"]

    def predict(self, P: Array) -> Array:
        """Z (R, m) of points (R, width)."""
        self.passes += 1
        W = P[:, : self.n]
        Z: Array = np.ascontiguousarray((self.A @ W.T).T) if self.sparse else W @ self.AT
        if self.intercept:
            Z += (P[:, self.n] - W @ self.mean)[:, None]
        return Z

    def correlate(self, U: Array) -> Array:
        """Products of U (R, m) with all columns, (R, width)."""
        self.passes += 1
        found = np.empty((len(U), self.width))
        inner = found[:, : self.n]
        inner[:] = self._products(U)
        if self.intercept:
            sums = U.sum(1)
            inner -= sums[:, None] * self.mean
            found[:, self.n] = sums
        return found

    def _products(self, U: Array) -> Any:
        """U A; the first product with tall columns finds their means and squares on its way."""
        if self.sparse:
            return (self.AT @ U.T).T
        if "mean" in self.kept or len(U) > 1 or not self.A.flags.f_contiguous:
            return U @ self.A
        sums, self.kept["sums of squares"], products = kernel.moments(self.A, self.s, U[0])
        self.kept["mean"] = sums / self.s.sum() if self.intercept else np.zeros(self.n)
        return products

    def diagonal(self, D: Array) -> Array:
        """Sums of D_ri a_ij^2, (R, width)."""
        if self.squared is None:
            dense = not self.sparse
            self.squared = (
                np.square(self.A - self.mean) if dense else self.A.multiply(self.A).tocsc()
            )
        found = np.asarray((self.squared.T @ D.T).T)
        if not self.intercept:
            return found
        sums = D.sum(1)[:, None]
        if self.sparse:
            linear = np.asarray((self.AT @ D.T).T)
            found = np.maximum(found - 2.0 * self.mean * linear + sums * self.mean**2, 0.0)
        return np.column_stack([found, sums])

    def squares(self) -> Array:
        """Sums of s_i a_ij^2 with centred columns, (width,)."""
        total = float(self.s.sum())
        if "sums of squares" in self.kept:
            inner = self.kept["sums of squares"]
        elif self.sparse:
            A = self.A
            inner = self.s @ type(A)((np.square(A.data), A.indices, A.indptr), A.shape)
        elif self.s.min() == self.s.max() and self.A.flags.f_contiguous:
            # This takes a fifth of the time of the general sum below.
            inner = self.s[0] * np.matmul(self.AT[:, None, :], self.AT[:, :, None]).ravel()
        else:
            inner = np.einsum("ij,ij,i->j", self.A, self.A, self.s)
        inner = np.maximum(inner - self.mean**2 * total, 1e-8 * inner)  # rounding may make it <= 0
        return np.append(inner, total) if self.intercept else inner

    def gram(self, rows: Any, d: Array) -> Array:
        """A^T diag(d) A of these rows of a dense A."""
        root = np.sqrt(d)[:, None]
        scaled = np.empty((len(d), self.width))
        np.subtract(self.A[rows], self.mean, out=scaled[:, : self.n])
        scaled[:, self.n :] = 1.0
        scaled *= root
        found: Array = scaled.T @ scaled
        return found
