"""X as the operator of a problem: weighted rows, centred and scaled columns, an intercept.

All of it is undone in the coefficients, exactly: an unpenalised intercept absorbs what was
subtracted from a column, and the weight of a coordinate in the penalty what it was divided by.
Certificates are those of the original problem.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
import torch
from torch import Tensor

from proxlearn.problems.arrays import to_operator
from proxlearn.problems.operators import Dense, Operator, Sparse

Array = npt.NDArray[np.float64]


class SparsePlusOuter(Operator):
    """S + left right^T with a sparse S: a sparse matrix whose columns are centred."""

    def __init__(self, S: Sparse, left: Tensor, right: Tensor):
        self.S, self.left, self.right = S, left, right
        self.shape, self.dtype, self.device = S.shape, S.dtype, S.device

    def forward(self, x: Tensor) -> Tensor:
        return self.S.forward(x) + (x @ self.right)[..., None] * self.left

    def adjoint(self, r: Tensor) -> Tensor:
        return self.S.adjoint(r) + (r @ self.left)[..., None] * self.right

    @property
    def entries(self) -> int:
        return self.S.entries + sum(self.shape)

    def gather(self, index: Tensor) -> Tensor:
        return self.S.gather(index) + self.right[index][..., None] * self.left

    def columns(self, index: Tensor) -> "SparsePlusOuter":
        return SparsePlusOuter(self.S.columns(index), self.left, self.right[index])

    def column_norms(self) -> Tensor:
        cross = 2 * self.right * self.S.adjoint(self.left[None])[0]
        squares = self.S.column_norms()[0] ** 2 + cross + self.right**2 * self.left.square().sum()
        return squares.clamp(min=0).sqrt()[None]

    def select(self, index: Tensor) -> "SparsePlusOuter":
        return self

    def convert(
        self, dtype: torch.dtype, device: torch.device | str | None = None
    ) -> "SparsePlusOuter":
        left, right = (t.to(dtype=dtype, device=device) for t in (self.left, self.right))
        moved = SparsePlusOuter(self.S.convert(dtype, device), left, right)
        if "_norm" in self.__dict__:
            moved._remember(self._norm.to(dtype=dtype, device=device))
        return moved


@dataclass(frozen=True)
class Design:
    """An operator, and the way back from its solution to coefficients of X."""

    A: Operator
    """root_i (X_ij - offset_j) / scale_j; where there is an intercept a last column of root_i."""
    offset: Array
    """(n,)"""
    scale: Array
    """(n,)"""
    intercept: bool
    """Whether A has a last column for an intercept."""

    def coefficients(self, x: Array) -> tuple[Array, Array]:
        """coef (..., n) and intercept (...) of a solution x (..., n) or (..., n + 1)."""
        coef = (x[..., :-1] if self.intercept else x) / self.scale
        last = x[..., -1] if self.intercept else 0.0
        return coef, last - coef @ self.offset

    def solution(self, coef: Array, intercept: Array) -> Array:
        """The x (..., n) or (..., n + 1) of given coefficients."""
        x = coef * self.scale
        if not self.intercept:
            return x
        return np.concatenate([x, (intercept + coef @ self.offset)[..., None]], -1)

    def penalty_weights(self, power: int) -> Array:
        """Weights of sum_j |x_j|^power that make it that of the coefficients; 0: intercept."""
        weights = self.scale**-power
        return np.append(weights, 0.0) if self.intercept else weights


def prepare(
    X: Any, root: Array, *, centre: bool, standardise: bool, intercept: bool = False
) -> Design:
    """A design of X (m, n), dense or sparse; root^2 (m,) are weights of the samples, of sum 1.

    Columns are centred, then divided by their root mean square.
    """
    make = _sparse if scipy.sparse.issparse(X) else _dense
    return make(X, root, centre, standardise, intercept)


def _dense(X: Array, root: Array, centre: bool, standardise: bool, intercept: bool) -> Design:
    mean = np.square(root) @ X
    offset = mean if centre else np.zeros_like(mean)
    A = (X - offset) * root[:, None]
    spread = np.sqrt(np.square(A).sum(0))
    # A constant column is rounding once it is centred: nothing to blow up.
    real = (spread > 1e-14 * np.abs(mean)) & standardise
    scale = np.where(real, spread, 1.0)
    A = A / scale
    A = np.column_stack([A, root]) if intercept else A
    return Design(Dense(torch.from_numpy(A)), offset, scale, intercept)


def _sparse(X: Any, root: Array, centre: bool, standardise: bool, intercept: bool) -> Design:
    m, n = X.shape
    offset = np.square(root) @ X if centre else np.zeros(n)
    squares = np.square(root) @ X.multiply(X).tocsr()
    spread = np.sqrt(np.clip(squares - offset**2, 0, None))
    real = (spread > 1e-7 * np.sqrt(squares)) & standardise  # the squares have cancelled
    scale = np.where(real, spread, 1.0)
    S = scipy.sparse.diags_array(root) @ X.tocsr() @ scipy.sparse.diags_array(1 / scale)
    right = -offset / scale
    if intercept:
        S = scipy.sparse.hstack([S, scipy.sparse.csr_array((m, 1))])
        right = np.append(right, 1.0)
    operator = to_operator("X", S.tocsr())
    if centre or intercept:
        assert isinstance(operator, Sparse)
        operator = SparsePlusOuter(operator, torch.from_numpy(root), torch.from_numpy(right))
    return Design(operator, offset, scale, intercept)
