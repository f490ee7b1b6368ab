"""What the regressors with a least squares loss share: the fit, its attributes, predictions."""

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import MultiOutputMixin, RegressorMixin

from proxlearn.core.glm import Answer, Glm, describe
from proxlearn.errors import InputError
from proxlearn.sklearn.fitting import (
    Array,
    Estimator,
    limits_of,
    linear_prediction,
    sample_weights,
    warn_unless_solved,
    writable,
)
from proxlearn.sklearn.ridge import solve

Penalty = dict[str, Any]
"""A penalty as the arguments of `describe`: l1, l2 and bounds, or l1, level and groups."""


class LeastSquaresRegressor(MultiOutputMixin, RegressorMixin, Estimator):  # type: ignore[misc]
    """Fit and predict; a subclass says with which penalty. Several targets are one batch."""

    coef_: Any
    intercept_: Any
    dual_gap_: Any
    n_iter_: Any
    fit_intercept: bool
    tol: float

    def predict(self, X: Any) -> Any:
        """Predict targets.

        Parameters
        ----------
        X : array or sparse matrix (m, n)

        Returns
        -------
        array (m,) or (m, T)
            X coef_ + intercept_.
        """
        return linear_prediction(self, X)

    @property
    def sparse_coef_(self) -> Any:
        """`coef_` as a sparse matrix, (1, n) or (T, n)."""
        return scipy.sparse.csr_matrix(np.atleast_2d(self.coef_))

    def _fit(self, X: Any, y: Any, sample_weight: Any, penalty: Penalty) -> Any:
        """Fit validated X and y with a penalty of the mean loss, and set the attributes."""
        m = X.shape[0]
        if scipy.sparse.issparse(y):
            raise TypeError("y is a sparse matrix; expected a dense array")
        w = sample_weights(sample_weight, m)
        glm = describe(
            X, writable(y).T, "squares", **times(m, penalty),
            sample_weight=None if w is None else w * (m / w.sum()),
            intercept=bool(self.fit_intercept),
        )  # fmt: skip
        limits = limits_of(self, is_full(penalty))
        answer = solve(glm, self._start(X, y, glm), limits)
        warn_unless_solved(answer, self.tol, stacklevel=4)
        self._assign(answer, X.dtype.type, m, y.ndim)
        return self

    def _assign(self, answer: Answer, precision: Any, m: int, axes: int) -> None:
        """Set the attributes; a single target, also in a column y (m, 1), has no axis."""
        intercept = answer.intercept.astype(precision)
        # F grows by half the square of the intercept's rounding, since the residuals have mean 0.
        gap = answer.gap / m + 0.5 * np.square(intercept - answer.intercept)
        if len(answer.x) == 1:
            self.coef_ = answer.x[0]
            self.dual_gap_ = float(gap[0])
            self.n_iter_ = int(answer.iterations[0])
        else:
            self.coef_ = answer.x
            self.dual_gap_ = gap
            self.n_iter_ = answer.iterations.tolist()
        self.intercept_ = (intercept if axes > 1 else intercept[0]) if self.fit_intercept else 0.0

    def _start(self, X: Any, y: Any, glm: Glm) -> Array | None:
        """Where the solver starts, if not at 0."""
        if not getattr(self, "warm_start", False) or not hasattr(self, "coef_"):
            return None
        return np.atleast_2d(self.coef_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def times(factor: Any, penalty: Penalty) -> Penalty:
    """A multiple of a penalty, or a row for each of several factors (T, 1); bounds stay."""
    return {
        name: factor * value if name in ("l1", "l2", "level") else value
        for name, value in penalty.items()
    }


def is_full(penalty: Penalty) -> bool:
    """Whether every coordinate is penalised, so that there is a duality gap."""
    separable = penalty.get("l1", 0.0) + penalty.get("l2", 0.0)
    return bool(np.all(separable) or np.all(penalty.get("level", 0.0)))


def feature_weights(penalty_weights: Any, features: int) -> Array | float:
    """Validated weights of the columns in the penalty, (n,), or 1 where all are equal."""
    if penalty_weights is None:
        return 1.0
    weights = np.asarray(penalty_weights, dtype=np.float64)
    if weights.shape != (features,):
        raise InputError(
            f"penalty_weights has shape {weights.shape}; expected ({features},), one for each "
            "column of X"
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise InputError("penalty_weights holds negative or infinite values; expected values >= 0")
    return weights
