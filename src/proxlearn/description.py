"""What a linear model with a separable penalty is made of: arrays and names, of no engine.

    minimise over x    loss(A x; b) + sum_j w_j (lam |x_j| + lam2/2 x_j^2)
    subject to         lower_j <= x_j <= upper_j

Problems of this form are solved by the compiled core. The same problem as objects of PyTorch, for
everything else, is made of this description when it is asked for.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from proxlearn.arrays import Matrix, to_numpy

if TYPE_CHECKING:
    from proxlearn.core.glm import Glm
    from proxlearn.penalties import Penalty
    from proxlearn.smooth import Smooth

MOST_ENTRIES = 2**31 - 1
"""Entries of a sparse matrix that the core can number."""


@dataclass(frozen=True)
class Separable:
    """The penalty and the bounds; arrays of NumPy or PyTorch, None for what is not there."""

    lam: Any = None
    """(B,)"""
    lam2: Any = None
    """(B,)"""
    weights: Any = None
    """(B, n) or (1, n); 0 leaves a coordinate unpenalised."""
    lower: Any = None
    """(B or 1, n or 1)"""
    upper: Any = None
    """(B or 1, n or 1)"""

    @property
    def batch(self) -> int:
        """Number of instances, 1 where all instances of a problem share the penalty."""
        parts = (self.lam, self.lam2, self.weights, self.lower, self.upper)
        return max([len(part) for part in parts if part is not None], default=1)

    def times(self, n: int, level: Any) -> Any:
        """w_j times a level (B,) or None, a number or (B or 1, n)."""
        if level is None:
            return 0.0
        if self.weights is None and len(level) == 1:
            return float(level[0])
        weights = np.ones((1, n)) if self.weights is None else _double(self.weights)
        return weights * _double(level)[:, None]

    def bounds(self, n: int) -> tuple[Any, Any]:
        """Lower and upper, each a number or (B or 1, n)."""
        low = -np.inf if self.lower is None else _double(self.lower) * np.ones(n)
        return low, np.inf if self.upper is None else _double(self.upper) * np.ones(n)


@dataclass(frozen=True)
class LinearModel:
    """A problem with a loss of A x and a separable penalty."""

    loss: str
    """squares, which is 1/2 ||A x - b||^2, or logistic, the mean over the rows."""
    A: Matrix
    b: Any
    """(B, m)"""
    penalty: Separable

    @property
    def batch(self) -> int:
        """Number of instances."""
        return max(self.A.batch, len(self.b), self.penalty.batch)

    @property
    def covered(self) -> bool:
        """True where the core can read A."""
        A = self.A.array
        return A is not None and (isinstance(A, np.ndarray) or A.nnz <= MOST_ENTRIES)

    def glm(self, lam: Any = None, lam2: Any = None) -> "Glm":
        """The problem for the core, with other levels (B,) of the penalty where they are given."""
        from proxlearn.core.glm import describe

        r, n = self.penalty, self.A.shape[1]
        lower, upper = r.bounds(n)
        return describe(
            self.A.array,
            _double(self.b),
            self.loss,
            l1=r.times(n, r.lam if lam is None else lam),
            l2=r.times(n, r.lam2 if lam2 is None else lam2),
            lower=lower,
            upper=upper,
            largest=self.A.largest,
        )

    def terms(self) -> "tuple[Smooth, Penalty]":
        """The same as objects of PyTorch: f and r."""
        from proxlearn.penalties import L1, ElasticNet, NonNegative
        from proxlearn.smooth import LeastSquares, Logistic
        from proxlearn.tensors import as_tensor

        r, A = self.penalty, self.A.operator
        f = {"squares": LeastSquares, "logistic": Logistic}[self.loss](A, as_tensor(self.b))
        if r.lam is None:
            return f, NonNegative()
        lam, weights = as_tensor(r.lam), None if r.weights is None else as_tensor(r.weights)
        if r.lam2 is None:
            return f, L1(lam, weights)
        return f, ElasticNet(lam, as_tensor(r.lam2), weights)


def _double(value: Any) -> npt.NDArray[np.float64]:
    """In float64, in C order."""
    return np.ascontiguousarray(to_numpy(value), dtype=np.float64)
