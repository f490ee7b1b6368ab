"""Least squares with a penalty: Lasso, ElasticNet, NonNegativeLeastSquares."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.metadata_routing import UNUSED

from proxlearn.core.glm import Answer, Glm, describe, path_glm
from proxlearn.sklearn.fitting import (
    Array,
    limits_of,
    linear_prediction,
    require_at_least,
    require_ratio,
    sample_weights,
    validated,
    warn_unless_solved,
    writable,
)
from proxlearn.sklearn.regression_path import enet_path, largest_push, lasso_path
from proxlearn.sklearn.ridge import solve

VANISHING = 0.01 ** np.arange(1, 8)
"""Weights of an l1 penalty that falls to 1e-14 times the smallest one whose solution is 0."""


class LeastSquaresRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Fit and predict; a subclass says with which penalty. Several targets are one batch."""

    coef_: Any
    intercept_: Any
    dual_gap_: Any
    n_iter_: Any
    fit_intercept: bool

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

    def _fit(self, X: Any, y: Any, sample_weight: Any, l1: float, l2: float, lower: float) -> Any:
        """Fit validated X and y with penalties of the mean loss, and set the attributes."""
        limits, m = limits_of(self), X.shape[0]
        if scipy.sparse.issparse(y):
            raise TypeError("y is a sparse matrix; expected a dense array")
        w = sample_weights(sample_weight, m)
        glm = describe(
            X, writable(y).T, "squares", l1=m * l1, l2=m * l2, lower=lower,
            sample_weight=None if w is None else w * (m / w.sum()),
            intercept=bool(self.fit_intercept),
        )  # fmt: skip
        answer = solve(glm, self._start(X, y, glm), limits)
        warn_unless_solved(answer, limits.tol, stacklevel=4)
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
            self.n_iter_ = max(1, int(answer.iterations[0]))
        else:
            self.coef_ = answer.x
            self.dual_gap_ = gap
            self.n_iter_ = [max(1, int(count)) for count in answer.iterations]
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


class ElasticNet(LeastSquaresRegressor):
    """Linear regression with an l1 and an l2 penalty.

    The coefficients w and the intercept c minimise::

        1/(2 sum_i s_i) sum_i s_i (y_i - x_i w - c)^2
            + alpha l1_ratio |w|_1 + alpha (1 - l1_ratio)/2 |w|^2

    where s are the sample weights, all 1 by default. The answer is certified: the duality gap is
    at most `tol` times the objective, or a `ConvergenceWarning` says that it is not.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the penalty.
    l1_ratio : float, default=0.5
        Share of the l1 norm in the penalty, from 0 to 1.
    fit_intercept : bool, default=True
        Whether c is fitted; it is 0 otherwise.
    precompute : bool or array, default=False
        Without effect: the solver decides which products it keeps.
    max_iter : int, default=10000
        Largest number of working sets.
    copy_X : bool, default=True
        Without effect: X is never changed.
    tol : float, default=1e-6
        Largest duality gap, relative to the objective.
    warm_start : bool, default=False
        Whether `fit` starts from the coefficients of the last fit.
    positive : bool, default=False
        Whether the coefficients are constrained to be >= 0.
    random_state : object, default=None
        Without effect: the solver draws no random numbers.
    selection : {"cyclic", "random"}, default="cyclic"
        Without effect, as for `random_state`.

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
        Number of working sets, at least 1.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array (n,)
        Their names, where all are strings.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from proxlearn.sklearn import ElasticNet
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ElasticNet(alpha=0.01, l1_ratio=0.9).fit(X, y)
    >>> round(model.score(X, y), 3)
    0.491
    """

    __metadata_request__fit: ClassVar[dict[str, str]] = {"check_input": UNUSED}

    path = staticmethod(enet_path)

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        precompute: Any = False,
        max_iter: int = 10_000,
        copy_X: bool = True,
        tol: float = 1e-6,
        warm_start: bool = False,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
    ):
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.max_iter = max_iter
        self.copy_X = copy_X
        self.tol = tol
        self.warm_start = warm_start
        self.positive = positive
        self.random_state = random_state
        self.selection = selection

    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> Any:
        """Fit the coefficients.

        Parameters
        ----------
        X : array or sparse matrix (m, n)
            float32 and float64 in C or Fortran order, and CSC matrices, are used in place.
        y : array (m,) or (m, T)
            One target, or several, each of which is fitted on its own.
        sample_weight : array (m,), optional
            Weights >= 0; only their ratios matter.
        check_input : bool, default=True
            Whether X and y are validated.

        Returns
        -------
        self
        """
        require_at_least(0, alpha=self.alpha)
        ratio = self._ratio()
        if check_input:
            X, y = validated(self, X, y, y_numeric=True, multi_output=True)
        first, second = self.alpha * ratio, self.alpha * (1.0 - ratio)
        return self._fit(X, y, sample_weight, first, second, 0.0 if self.positive else -np.inf)

    def _ratio(self) -> float:
        require_ratio(l1_ratio=self.l1_ratio)
        return float(self.l1_ratio)


class Lasso(ElasticNet):
    """Linear regression with an l1 penalty.

    The coefficients w and the intercept c minimise::

        1/(2 sum_i s_i) sum_i s_i (y_i - x_i w - c)^2 + alpha |w|_1

    where s are the sample weights, all 1 by default. The answer is certified: the duality gap is
    at most `tol` times the objective, or a `ConvergenceWarning` says that it is not.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the penalty.
    fit_intercept : bool, default=True
        Whether c is fitted; it is 0 otherwise.
    precompute : bool or array, default=False
        Without effect: the solver decides which products it keeps.
    copy_X : bool, default=True
        Without effect: X is never changed.
    max_iter : int, default=10000
        Largest number of working sets.
    tol : float, default=1e-6
        Largest duality gap, relative to the objective.
    warm_start : bool, default=False
        Whether `fit` starts from the coefficients of the last fit.
    positive : bool, default=False
        Whether the coefficients are constrained to be >= 0.
    random_state : object, default=None
        Without effect: the solver draws no random numbers.
    selection : {"cyclic", "random"}, default="cyclic"
        Without effect, as for `random_state`.

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
        Number of working sets, at least 1.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array (n,)
        Their names, where all are strings.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from proxlearn.sklearn import Lasso
    >>> model = Lasso(alpha=1.0).fit(*load_diabetes(return_X_y=True))
    >>> model.coef_.nonzero()[0].tolist()
    [2, 3, 8]
    """

    path = staticmethod(lasso_path)

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        precompute: Any = False,
        copy_X: bool = True,
        max_iter: int = 10_000,
        tol: float = 1e-6,
        warm_start: bool = False,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
    ):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.positive = positive
        self.random_state = random_state
        self.selection = selection

    def _ratio(self) -> float:
        return 1.0


class NonNegativeLeastSquares(LeastSquaresRegressor):
    """Linear regression with coefficients that are not negative.

    The coefficients w and the intercept c minimise::

        1/(2 sum_i s_i) sum_i s_i (y_i - x_i w - c)^2    subject to w >= 0

    where s are the sample weights, all 1 by default. Where the columns of X have acute angles with
    some direction the duality gap is at most `tol` times the objective. Elsewhere no gap is known:
    `dual_gap_` is infinite, and `tol` bounds the violation of the optimality conditions relative
    to the gradient at 0.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether c is fitted; it is 0 otherwise.
    max_iter : int, default=10000
        Largest number of working sets.
    tol : float, default=1e-8
        Largest duality gap, relative to the objective.

    Attributes
    ----------
    coef_ : array (n,) or (T, n)
        Coefficients, in float64.
    sparse_coef_ : sparse matrix (1, n) or (T, n)
        The same.
    intercept_ : float or array (T,)
        The constant c.
    dual_gap_ : float or array (T,)
        Upper bound on the distance of the objective to its minimum; may be infinite.
    n_iter_ : int or list of int
        Number of working sets, at least 1.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array (n,)
        Their names, where all are strings.

    Examples
    --------
    >>> from proxlearn.sklearn import NonNegativeLeastSquares
    >>> model = NonNegativeLeastSquares(fit_intercept=False)
    >>> model.fit([[1, 0], [0, 1], [0, 0]], [2, -1, 0]).coef_.tolist()
    [2.0, 0.0]
    """

    def __init__(self, *, fit_intercept: bool = True, max_iter: int = 10_000, tol: float = 1e-8):
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the coefficients.

        Parameters
        ----------
        X : array or sparse matrix (m, n)
            float64 in C or Fortran order, and CSC matrices of it, are used in place.
        y : array (m,) or (m, T)
            One target, or several, each of which is fitted on its own.
        sample_weight : array (m,), optional
            Weights >= 0; only their ratios matter.

        Returns
        -------
        self
        """
        X, y = validated(self, X, y, y_numeric=True, multi_output=True)
        # Where no gap is known the optimality conditions are the certificate, and coefficients
        # that are rounded to float32 do not meet them.
        X = X.astype(np.float64, copy=False)
        return self._fit(X, y, sample_weight, 0.0, 0.0, 0.0)

    def _start(self, X: Any, y: Any, glm: Glm) -> Array | None:
        """For wide data, the end of a path over an l1 penalty that all but vanishes.

        Wide data have many solutions, and which of them the solver finds from 0 depends on
        rounding. The path leads to the solution with the smallest sum of coefficients.
        """
        m, n = X.shape
        if m >= n:
            return None
        pushes = [largest_push(X, b, glm.sample_weight[0], self.fit_intercept, True) for b in glm.b]
        penalised = replace(glm, l1=np.full((1, n), max(m * max(pushes), np.finfo(float).tiny)))
        return path_glm(penalised, VANISHING, limits=limits_of(self))[-1].x
