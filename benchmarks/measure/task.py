"""What a row asks of a solver, and the gap of an answer."""

import zlib
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from measure import gaps


class Answer(NamedTuple):
    """Coefficients (K, n) and intercepts (K,) for K values of lam."""

    coefs: np.ndarray
    intercepts: np.ndarray

    @classmethod
    def one(cls, coef: Any, intercept: Any = 0.0) -> "Answer":
        """The answer for a single lam."""
        coef = np.asarray(coef, dtype=np.float64).reshape(1, -1)
        return cls(coef, np.asarray(intercept, dtype=np.float64).reshape(-1)[:1])

    @classmethod
    def path(cls, coefs: Any) -> "Answer":
        """The answer for K values of lam without intercept; coefs (K, n)."""
        coefs = np.asarray(coefs, dtype=np.float64)
        return cls(coefs, np.zeros(len(coefs)))


@dataclass(frozen=True, eq=False)
class Task:
    """Minimise a loss plus `lam |w|_1 + l2_ratio lam / 2 |w|^2` for each lam, largest first.

    X is (m, n) in Fortran order, or CSC; y (m,) holds the target, or labels -1 and 1. `folds` are
    the pairs (train, test) of a cross-validation, which solves the path on each training part.
    """

    name: str
    kind: str
    X: Any
    y: np.ndarray
    lams: np.ndarray
    loss: str = "squares"
    l2_ratio: float = 0.0
    positive: bool = False
    intercept: bool = False
    folds: tuple[tuple[np.ndarray, np.ndarray], ...] = field(default=())

    @property
    def m(self) -> int:
        return self.X.shape[0]

    @property
    def n(self) -> int:
        return self.X.shape[1]

    @property
    def sparse(self) -> bool:
        return sp.issparse(self.X)

    @property
    def lam(self) -> float:
        """The smallest lam, the only one unless this is a path."""
        return float(self.lams[-1])

    @property
    def l1_ratio(self) -> float:
        """The share of the l1 part as scikit-learn defines it."""
        return 1 / (1 + self.l2_ratio)

    @property
    def alphas(self) -> np.ndarray:
        """The lams in the units of scikit-learn's least squares: mean loss, both parts at once."""
        return self.lams / (self.m * self.l1_ratio)

    def gap(self, answer: Answer) -> float:
        """The largest relative duality gap over the values of lam."""
        return max(
            self._gap(w, c, lam)
            for w, c, lam in zip(answer.coefs, answer.intercepts, self.lams, strict=True)
        )

    def _gap(self, w: np.ndarray, c: float, lam: float) -> float:
        if self.loss == "logistic":
            return gaps.logistic(self.X, self.y, w, c, lam, self.intercept)
        l2 = self.l2_ratio * lam
        return gaps.squares(self.X, self.y, w, c, lam, l2, self.positive, self.intercept)

    def parts(self) -> list["Task"]:
        """The path on each training part of a cross-validation, at the same alphas."""
        return [
            replace(
                self,
                X=_rows(self.X, train),
                y=self.y[train],
                lams=self.lams * (len(train) / self.m),
                folds=(),
            )
            for train, _ in self.folds
        ]

    def fingerprint(self) -> str:
        """A short code that changes with the numbers of the task."""
        values = self.X.data if self.sparse else np.ascontiguousarray(self.X[:50])
        parts = (np.ascontiguousarray(values), self.y, self.lams, np.array(self.X.shape))
        code = 0
        for part in parts:
            code = zlib.crc32(part.tobytes(), code)
        return f"{code:08x}"


def _rows(X: Any, rows: np.ndarray) -> Any:
    return X.tocsr()[rows].tocsc() if sp.issparse(X) else np.asfortranarray(X[rows])
