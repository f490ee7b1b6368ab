"""The problems of a contest as a user holds them, and what is true of them."""

from dataclasses import dataclass, replace

import numpy as np
import torch

import proxlearn as pl

BLOCK = 2**30
"""Bytes of A that are prepared and solved at a time, the same for every solver."""


@dataclass(frozen=True)
class Task:
    """B problems in NumPy arrays of float64 in C order; everyone pays for what it converts.

    ``1/2 ||A x - b||^2 + lam ||x||_1`` for "lasso", mean logistic loss for "logistic", labels 0
    and 1. A (m, n) is shared, A (B, m, n) gives each its own; b (B, m), lam (B,). A path has one
    b (1, m) and its values of lam, largest first.
    """

    loss: str
    A: np.ndarray
    b: np.ndarray
    lam: np.ndarray
    path: bool = False

    @property
    def count(self) -> int:
        return len(self.lam)

    @property
    def m(self) -> int:
        return self.A.shape[-2]

    @property
    def n(self) -> int:
        return self.A.shape[-1]

    @property
    def shared(self) -> bool:
        return self.A.ndim == 2

    def part(self, first: int, last: int) -> "Task":
        """The problems first, ..., last - 1."""
        some = slice(first, last)
        return replace(
            self,
            A=self.A if self.shared else self.A[some],
            b=self.b if self.path else self.b[some],
            lam=self.lam[some],
        )

    def blocks(self) -> list["Task"]:
        if self.shared:
            return [self]
        size = max(1, BLOCK // (8 * self.m * self.n))
        return [self.part(i, i + size) for i in range(0, self.count, size)]

    def columns(self, dtype: type = np.float64) -> list[np.ndarray]:
        """A for each problem in Fortran order, as coordinate descent wants it."""
        if self.shared:
            return [np.asfortranarray(self.A, dtype=dtype)] * self.count
        return [np.asfortranarray(A, dtype=dtype) for A in self.A]

    def targets(self, dtype: type = np.float64) -> np.ndarray:
        """b (B, m)."""
        return np.broadcast_to(self.b, (self.count, self.m)).astype(dtype)

    def problem(self, dtype: type) -> pl.Problem:
        """The same as proxlearn's problem; a path's as one for its first lam."""
        make = pl.lasso if self.loss == "lasso" else pl.logistic
        A, b, lam = (part.astype(dtype, copy=False) for part in (self.A, self.b, self.lam))
        return make(A, b, float(lam[0]) if self.path else lam)

    def objective(self, X: np.ndarray) -> np.ndarray:
        """F of the rows of X (B, n), (B,): plain NumPy in float64, for every solver alike."""
        X = np.asarray(X, dtype=np.float64)
        Z = X @ self.A.T if self.shared else np.matmul(self.A, X[:, :, None])[:, :, 0]
        if self.loss == "lasso":
            f = 0.5 * np.square(Z - self.b).sum(1)
        else:
            f = np.logaddexp(0, (1 - 2 * self.b) * Z).mean(1)
        return f + self.lam * np.abs(X).sum(1)

    def optimum(self, tol: float) -> np.ndarray:
        """F*, (B,), certified to be at most ``tol * F*`` too large."""
        whole = replace(self, b=self.targets(), path=False)
        values = [pl.optimum(part.problem(np.float64), tol) for part in whole.blocks()]
        return torch.cat(values).numpy()


def relative_gap(F: np.ndarray, optimum: np.ndarray) -> np.ndarray:
    """(F - F*) / F*, (B,); a point that is not finite has an infinite one."""
    gap = (F - optimum) / np.maximum(np.abs(optimum), np.finfo(float).tiny)
    return np.where(np.isfinite(gap), gap, np.inf)
