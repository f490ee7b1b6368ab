"""Tall least squares as a square problem, for many right-hand sides or penalties.

With the Cholesky factor R of A^T S A = R^T R (S the weights of the samples) and R^T d = A^T S b,

    1/2 sum_i s_i (a_i^T x - b_i)^2  =  1/2 |R x - d|^2 + offset

so that a pass costs n^2 multiplications in place of m n. The two sides differ by the rounding of
A^T S A, which is at most `rounding` times the square of sum_j |x_j| |a_j| + |b|; the core adds that
to the gap.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.linalg.blas import dtrsv

if TYPE_CHECKING:
    from proxlearn.core.single import Glm

Array = npt.NDArray[np.float64]

ROWS = 4096
"""Rows of a block that is centred and weighted at a time."""


@dataclass(frozen=True)
class Reduction:
    """The factor R and its Gram matrix, and how much rounding may change the objective."""

    A: Any
    weights: Array
    mean: Array | None
    gram: Array
    """(n, n)"""
    R: Array
    """(n, n), in Fortran order."""
    norms: Array
    """|a_j| in the metric S, (n,)."""
    rounding: float

    def targets(self, b: Array) -> tuple[Array, Array, Array]:
        """d (B, n), the offsets (B,) and |b| in the metric S (B,), for targets b (B, m)."""
        weighted = self.weights * b
        q = np.asarray(weighted @ self.A, dtype=np.float64)
        if self.mean is not None:
            q = q - np.outer(weighted.sum(1), self.mean)
        d: Array = solve_triangular(self.R, q.T, trans="T", check_finite=False).T
        squares = np.einsum("ij,ij->i", weighted, b)
        # Not clipped at 0: the square of d is in the loss again, with the same rounding.
        offsets = 0.5 * (squares - np.einsum("ij,ij->i", d, d))
        return np.ascontiguousarray(d), offsets, np.sqrt(squares)

    def targets_one_by_one(self, b: Array) -> tuple[Array, Array, Array]:
        """The same, with bits that do not depend on how many targets there are."""
        A = np.asarray(self.A, dtype=np.float64)
        d, offsets, sizes = np.empty((len(b), len(self.R))), np.empty(len(b)), np.empty(len(b))
        for i, row in enumerate(b):
            weighted = self.weights * row
            q = weighted @ A
            if self.mean is not None:
                q -= weighted.sum() * self.mean
            d[i] = dtrsv(self.R, q, trans=1)
            square = weighted @ row
            offsets[i], sizes[i] = 0.5 * (square - d[i] @ d[i]), np.sqrt(square)
        return d, offsets, sizes


def reduction(A: Any, weights: Array, mean: Array | None) -> Reduction | None:
    """The reduction of a dense A (m, n); None where its columns are nearly dependent."""
    m, n = A.shape
    gram = weighted_gram(A, weights, mean)
    norms = np.sqrt(gram.diagonal())
    try:
        R = np.asfortranarray(cholesky(gram, check_finite=False))
    except LinAlgError:
        return None
    if not (R.diagonal() > 1e-7 * norms).all():
        return None
    return Reduction(A, weights, mean, gram, R, norms, (m + 4 * n) * float(np.finfo(float).eps))


def weighted_gram(A: Any, weights: Array, mean: Array | None) -> Array:
    """A^T S A of a dense A (m, n) whose columns are centred, (n, n)."""
    m, n = A.shape
    even = bool((weights == weights[0]).all())
    if even and mean is None and A.dtype == np.float64:
        gram: Array = A.T @ A
        gram *= weights[0]
        return gram
    gram = np.zeros((n, n))
    root = np.sqrt(weights)[:, None]
    for first in range(0, m, ROWS):
        rows = np.asarray(A[first : first + ROWS], dtype=np.float64)
        rows = root[first : first + ROWS] * (rows if mean is None else rows - mean)
        gram += rows.T @ rows
    return gram


def weighted_mean(A: Any, share: Array) -> Array:
    """sum_i share_i a_i of a dense or sparse A (m, n), in float64 and without a copy of A."""
    if A.dtype == np.float64 or not isinstance(A, np.ndarray):
        return np.ascontiguousarray(share @ A, dtype=np.float64)
    total = np.zeros(A.shape[1])
    for first in range(0, len(share), ROWS):
        total += share[first : first + ROWS] @ A[first : first + ROWS].astype(np.float64)
    return total


def centred(b: Array, middle: Array, s: Array) -> Array:
    """Targets b (B, m) less their weighted means (B,); 0 where a target is constant.

    Rounding would be left of a constant target, and no tolerance relative to it could be met.
    """
    left: Array = b - middle[:, None]
    rounding = 8.0 * float(np.finfo(float).eps) * np.abs(middle)
    for i in np.flatnonzero(np.abs(left[:, int(s.argmax())]) <= rounding):
        if (np.abs(left[i][s > 0]) <= rounding[i]).all():
            left[i] = 0.0
    return left


class Reductions:
    """The reductions of the matrices of a `Glm`, each made once."""

    def __init__(self) -> None:
        self.made: dict[tuple[int, bytes], tuple[Any, Reduction | None]] = {}

    def of(self, A: Any, s: Array, mean: Array | None) -> Reduction | None:
        """That of A with weights s; problems of a batch share A as the same array."""
        key = A.ctypes.data, s.tobytes()
        if key not in self.made:
            self.made[key] = A, reduction(A, s, mean)
        return self.made[key][1]


def reductions_that_pay(glm: "Glm", solves: int) -> Reductions | None:
    """Reductions where they pay: least squares with m >= 2 n, solved many times.

    Only problems in which every coordinate is penalised use them. The factor costs about as much as
    n/8 passes over A (a matrix product is that much faster than a pass), and every pass then costs
    n/m of what it did.
    """
    A = glm.A
    if not glm.kind.quadratic or scipy.sparse.issparse(A) or A.ndim != 2 or glm.tasks > 1:
        return None
    m, n = A.shape
    return Reductions() if m >= 2 * n and 8 * solves > n else None
