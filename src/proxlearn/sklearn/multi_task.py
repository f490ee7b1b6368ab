"""Several targets that share their columns: MultiTaskLasso and MultiTaskElasticNet."""

from typing import Any

import numpy as np

from proxlearn.errors import InputError
from proxlearn.sklearn.fitting import (
    limits_of,
    require_at_least,
    require_ratio,
    sample_weights,
    validated,
    warn_unless_solved,
)
from proxlearn.sklearn.regression_path import enet_path, lasso_path
from proxlearn.sklearn.regressor import LeastSquaresRegressor, Penalty, is_full
from proxlearn.sklearn.tasks import Tasks


class MultiTaskRegressor(LeastSquaresRegressor):
    """The fit of several targets at once."""

    def _fit(self, X: Any, y: Any, sample_weight: Any, penalty: Penalty) -> Any:
        """Fit validated X and y with a penalty {level, l2} of the mean loss."""
        w = sample_weights(sample_weight, X.shape[0])
        s = np.ones(X.shape[0]) if w is None else w
        total = float(s.sum())
        tasks = Tasks(X, y, s, bool(self.fit_intercept))
        limits = limits_of(self, is_full(penalty))
        start = self._warm_coefficients((y.shape[1], X.shape[1]))
        answer = tasks.solve(total * penalty["level"], total * penalty["l2"], limits, start)
        warn_unless_solved(answer, self.tol, stacklevel=4)
        self.coef_ = answer.x.reshape(y.shape[1], X.shape[1])
        self.intercept_ = answer.intercept[0].astype(X.dtype) if self.fit_intercept else 0.0
        self.dual_gap_, self.n_iter_ = float(answer.gap[0]) / total, int(answer.iterations[0])
        return self

    def _warm_coefficients(self, shape: tuple[int, int]) -> Any:
        if not getattr(self, "warm_start", False) or np.shape(getattr(self, "coef_", 0)) != shape:
            return None
        return self.coef_

    def _require_tasks(self, y: Any) -> None:
        """An error where y has no axis of targets."""
        if y.ndim == 1:
            single = type(self).__name__.removeprefix("MultiTask")
            raise InputError(f"For mono-task outputs, use {single}: y has shape {y.shape}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        return tags


class MultiTaskElasticNet(MultiTaskRegressor):
    """Linear regression of several targets with an l2/l1 and an l2 penalty.

    The coefficients W (T, n) and the intercepts c (T,) minimise::

        1/(2 sum_i s_i) sum_i s_i |y_i - W x_i - c|^2
            + alpha l1_ratio sum_j |W_:j|_2 + alpha (1 - l1_ratio)/2 |W|^2

    where s are the sample weights, all 1 by default, and W_:j are the coefficients of column j of
    X, which are 0 for all targets or for none. The answer is certified: the duality gap is at most
    `tol` times the objective, or a `ConvergenceWarning` says that it is not.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the penalty.
    l1_ratio : float, default=0.5
        Share of the l2/l1 norm in the penalty, from 0 to 1.
    fit_intercept : bool, default=True
        Whether c is fitted; it is 0 otherwise.
    copy_X : bool, default=True
        Without effect: X is never changed.
    max_iter : int, default=10000
        Largest number of working sets.
    tol : float, default=1e-6
        Largest duality gap, relative to the objective.
    warm_start : bool, default=False
        Whether `fit` starts from the coefficients of the last fit.
    random_state : object, default=None
        Without effect: the solver draws no random numbers.
    selection : {"cyclic", "random"}, default="cyclic"
        Without effect, as for `random_state`.

    Attributes
    ----------
    coef_ : array (T, n)
        Coefficients, in the precision of X.
    sparse_coef_ : sparse matrix (T, n)
        The same.
    intercept_ : array (T,)
        The constants c.
    dual_gap_ : float
        Upper bound on the distance of the objective to its minimum.
    n_iter_ : int
        Number of working sets.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array (n,)
        Their names, where all are strings.

    Examples
    --------
    >>> from proxlearn.sklearn import MultiTaskElasticNet
    >>> model = MultiTaskElasticNet(alpha=0.1)
    >>> model.fit([[0, 0], [1, 1], [2, 2]], [[0, 0], [1, 1], [2, 2]]).coef_.round(3).tolist()
    [[0.456, 0.456], [0.456, 0.456]]
    """

    path = staticmethod(enet_path)

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int = 10_000,
        tol: float = 1e-6,
        warm_start: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
    ):
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.selection = selection

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the coefficients.

        Parameters
        ----------
        X : array or sparse matrix (m, n)
        y : array (m, T)
            The targets.
        sample_weight : array (m,), optional
            Weights >= 0; only their ratios matter.

        Returns
        -------
        self
        """
        require_at_least(0, alpha=self.alpha)
        ratio = self._ratio()
        X, y = validated(self, X, y, y_numeric=True, multi_output=True)
        self._require_tasks(y)
        penalty = {"level": self.alpha * ratio, "l2": self.alpha * (1.0 - ratio)}
        return self._fit(X, y, sample_weight, penalty)

    def _ratio(self) -> float:
        require_ratio(l1_ratio=self.l1_ratio)
        return float(self.l1_ratio)


class MultiTaskLasso(MultiTaskElasticNet):
    """Linear regression of several targets with an l2/l1 penalty.

    The coefficients W (T, n) and the intercepts c (T,) minimise::

        1/(2 sum_i s_i) sum_i s_i |y_i - W x_i - c|^2 + alpha sum_j |W_:j|_2

    where s are the sample weights, all 1 by default, and W_:j are the coefficients of column j of
    X, which are 0 for all targets or for none. The answer is certified: the duality gap is at most
    `tol` times the objective, or a `ConvergenceWarning` says that it is not.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the penalty.
    fit_intercept : bool, default=True
        Whether c is fitted; it is 0 otherwise.
    copy_X : bool, default=True
        Without effect: X is never changed.
    max_iter : int, default=10000
        Largest number of working sets.
    tol : float, default=1e-6
        Largest duality gap, relative to the objective.
    warm_start : bool, default=False
        Whether `fit` starts from the coefficients of the last fit.
    random_state : object, default=None
        Without effect: the solver draws no random numbers.
    selection : {"cyclic", "random"}, default="cyclic"
        Without effect, as for `random_state`.

    Attributes
    ----------
    coef_ : array (T, n)
        Coefficients, in the precision of X.
    sparse_coef_ : sparse matrix (T, n)
        The same.
    intercept_ : array (T,)
        The constants c.
    dual_gap_ : float
        Upper bound on the distance of the objective to its minimum.
    n_iter_ : int
        Number of working sets.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array (n,)
        Their names, where all are strings.

    Examples
    --------
    >>> from proxlearn.sklearn import MultiTaskLasso
    >>> model = MultiTaskLasso(alpha=0.1)
    >>> model.fit([[0, 1], [1, 2], [2, 4]], [[0, 0], [1, 1], [2, 3]]).coef_.round(3).tolist()
    [[0.0, 0.608], [0.0, 0.946]]
    """

    path = staticmethod(lasso_path)

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int = 10_000,
        tol: float = 1e-6,
        warm_start: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
    ):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.selection = selection

    def _ratio(self) -> float:
        return 1.0
