"""What the regressors share: the fit, its attributes, predictions."""

from abc import abstractmethod
from dataclasses import field
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import MultiOutputMixin, RegressorMixin

from proxlearn.core.glm import Answer, Glm, describe
from proxlearn.core.one_fit import fit_at_once
from proxlearn.errors import InputError
from proxlearn.sklearn.declaration import estimator
from proxlearn.sklearn.fitting import (
    Array,
    Estimator,
    are_numbers,
    limits_of,
    linear_prediction,
    require_at_least,
    sample_weights,
    validated,
    warn_unless_solved,
    writable,
)
from proxlearn.sklearn.ridge import solve

Penalty = dict[str, Any]
"""A penalty as the arguments of `describe`: l1, l2 and bounds, or l1, level and groups."""


class LinearRegressor(MultiOutputMixin, RegressorMixin, Estimator):  # type: ignore[misc]
    """Predictions from coefficients.

    Attributes
    ----------
    coef_ : array (n,) or (T, n)
        Coefficients, in the precision of X.
    sparse_coef_ : sparse matrix (1, n) or (T, n)
        The same.
    intercept_ : float or array (T,)
        The constant c.
    dual_gap_ : float or array (T,)
        Upper bound on the distance of the objective to its minimum.
    n_iter_ : int or list of int
        Number of working sets.
    """

    coef_: Any
    intercept_: Any
    dual_gap_: Any
    n_iter_: Any
    fit_intercept: Any

    takes_several_targets = True

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

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The coefficient of determination R^2 of the predictions.

        Parameters
        ----------
        X : array or sparse matrix (m, n)
        y : array (m,) or (m, T)
        sample_weight : array (m,), optional

        Returns
        -------
        float
            1 - sum (y - predictions)^2 / sum (y - mean)^2.
        """
        if sample_weight is None and are_numbers(y):
            made = self.predict(X)
            total = float(np.square(y - y.mean()).sum())
            if made.shape == y.shape and total > 0:
                return 1.0 - float(np.square(y - made).sum()) / total
        # Everything else has scikit-learn's checks: half the time of a search on small data.
        return float(super().score(X, y, sample_weight))

    @property
    def sparse_coef_(self) -> Any:
        """`coef_` as a sparse matrix, (1, n) or (T, n)."""
        return scipy.sparse.csr_matrix(np.atleast_2d(self.coef_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self.takes_several_targets
        return tags


@estimator
class Regressor(LinearRegressor):
    """The fit of a linear model; a subclass says what it minimises.

    Parameters
    ----------
    max_iter : int
        Largest number of working sets.
    tol : float
        Largest duality gap, relative to the objective.
    """

    max_iter: int = 10_000
    tol: float = 1e-6

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the coefficients.

        Parameters
        ----------
        X : array or sparse matrix (m, n)
            float32 and float64 in C or Fortran order, and CSC matrices, are used in place; dense
            float64 of at most 1 MiB may be copied.
        y : array (m,) or (m, T)
            One target, or several where the estimator takes them: multi-task estimators fit them
            together, the others each on its own.
        sample_weight : array (m,)
            Weights >= 0; only their ratios matter.

        Returns
        -------
        self
        """
        self._check_parameters()
        X, y = self._validated(X, y)
        self._minimise(X, y, sample_weights(sample_weight, X.shape[0]))
        return self

    def _check_parameters(self) -> None:
        """Raise an error for values that are not allowed."""

    def _validated(self, X: Any, y: Any) -> tuple[Any, Any]:
        several = self.takes_several_targets
        X, y = validated(self, X, y, y_numeric=True, multi_output=several)
        if scipy.sparse.issparse(y):
            raise TypeError("y is a sparse matrix; expected a dense array")
        return X, y

    @abstractmethod
    def _minimise(self, X: Any, y: Any, w: Array | None) -> None:
        """Set the attributes from validated X, y and weights of the samples."""


class LeastSquaresRegressor(Regressor):
    """Least squares; several targets are one batch."""

    def _solve(self, X: Any, y: Any, w: Array | None, penalty: Penalty) -> None:
        """Minimise the mean loss with a penalty, and set the attributes."""
        m, y = X.shape[0], writable(y)
        weights = None if w is None else w * (m / w.sum())
        limits = limits_of(self, penalises_all(penalty))
        penalty, intercept = times(m, penalty), bool(self.fit_intercept)
        answer = None
        if not self._starts_from_last_fit():
            answer = fit_at_once(X, y, weights, penalty, intercept, limits)
        if answer is None:
            glm = describe(X, y.T, "squares", **penalty, sample_weight=weights, intercept=intercept)
            answer = solve(glm, self._start(X, glm), limits)
        warn_unless_solved(answer, self.tol)
        self._assign(answer, X.dtype.type, m, y.ndim)

    def _assign(self, answer: Answer, precision: Any, m: float, axes: int) -> None:
        """Set the attributes; `coef_` of a single target, y (m,) or (m, 1), has no axis for it."""
        intercept = answer.intercept.astype(precision)
        # F grows by half the square of the intercept's rounding, since the residuals have mean 0.
        lost = 0.5 * np.square(intercept - answer.intercept)
        if np.any(answer.gap / m + lost > self.tol * np.abs(answer.objective) / m):
            # In float64 the intercept is exact, so that a solved fit stays solved.
            intercept, lost = answer.intercept, np.zeros_like(lost)
        gap = answer.gap / m + lost
        if len(answer.x) == 1:
            self.coef_ = answer.x[0]
            self.dual_gap_ = float(gap[0])
            self.n_iter_ = int(answer.iterations[0])
        else:
            self.coef_ = answer.x
            self.dual_gap_ = gap
            self.n_iter_ = answer.iterations.tolist()
        self.intercept_ = (intercept if axes > 1 else intercept[0]) if self.fit_intercept else 0.0

    def _starts_from_last_fit(self) -> bool:
        """Whether the coefficients of the last fit, if there was one, are the start of the next."""
        return False

    def _start(self, X: Any, glm: Glm) -> Array | None:
        """Where the solver starts, if not at 0."""
        return None


@estimator
class PenalisedRegressor(LeastSquaresRegressor):
    """Least squares with a penalty of a given weight, which may start from the last fit.

    Parameters
    ----------
    alpha : float
        Weight of the penalty.
    fit_intercept : bool
        Whether the constant c is fitted; it is 0 otherwise.
    warm_start : bool
        Whether `fit` starts from the coefficients of the last fit.
    """

    alpha: float = field(default=1.0, kw_only=False)
    fit_intercept: bool = True
    warm_start: bool = False

    def _check_parameters(self) -> None:
        require_at_least(0, alpha=self.alpha)
        self._ratio()

    def _minimise(self, X: Any, y: Any, w: Array | None) -> None:
        penalty = self._penalty(X.shape[1], self._ratio())
        self._solve(X, y, w, times(self.alpha, penalty))

    @abstractmethod
    def _penalty(self, features: int, ratio: float) -> Penalty:
        """The penalty for alpha = 1 and this share of the l1 norm."""

    def _ratio(self) -> float:
        """The share of the l1 norm."""
        return 1.0

    def _starts_from_last_fit(self) -> bool:
        return self.warm_start

    def _start(self, X: Any, glm: Glm) -> Array | None:
        return np.atleast_2d(self.coef_) if self.warm_start and hasattr(self, "coef_") else None


def times(factor: Any, penalty: Penalty) -> Penalty:
    """A multiple of a penalty, or a row for each of several factors (T, 1); bounds stay."""
    return {
        name: factor * value if name in ("l1", "l2", "level") else value
        for name, value in penalty.items()
    }


def penalises_all(penalty: Penalty) -> bool:
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
