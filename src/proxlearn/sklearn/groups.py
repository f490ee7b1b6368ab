"""Least squares with groups of columns: GroupLasso and SparseGroupLasso."""

from typing import Any

from proxlearn.sklearn.fitting import require_at_least, require_ratio, validated
from proxlearn.sklearn.group_penalty import group_penalty, group_weights, groups_of
from proxlearn.sklearn.regressor import LeastSquaresRegressor, times


class SparseGroupLasso(LeastSquaresRegressor):
    """Linear regression that leaves out whole groups of columns, and columns of the others.

    The coefficients w and the intercept c minimise::

        1/(2 sum_i s_i) sum_i s_i (y_i - x_i w - c)^2
            + alpha l1_ratio |w|_1 + alpha (1 - l1_ratio) sum_g weights_g |w_g|_2

    where s are the sample weights, all 1 by default, and w_g are the coefficients of group g. The
    answer is certified: the duality gap is at most `tol` times the objective, or a
    `ConvergenceWarning` says that it is not.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the penalty.
    groups : int, array (n,) or list of lists, optional
        The size of consecutive groups, a label for each column, or lists of columns. Every column
        is a group of its own by default.
    l1_ratio : float, default=0.5
        Share of the l1 norm in the penalty, from 0 to 1.
    weights : array (G,) or "sqrt", optional
        Weights of the groups, in the order of their labels: 1 by default, or the square roots of
        their sizes.
    fit_intercept : bool, default=True
        Whether c is fitted; it is 0 otherwise.
    max_iter : int, default=10000
        Largest number of working sets.
    tol : float, default=1e-6
        Largest duality gap, relative to the objective.
    warm_start : bool, default=False
        Whether `fit` starts from the coefficients of the last fit.

    Attributes
    ----------
    coef_ : array (n,) or (T, n)
        Coefficients, in the precision of X.
    intercept_ : float or array (T,)
        The constant c.
    dual_gap_ : float or array (T,)
        Upper bound on the distance of the objective to its minimum.
    n_iter_ : int or list of int
        Number of working sets.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array (n,)
        Their names, where all are strings.

    Examples
    --------
    >>> import numpy as np
    >>> from proxlearn.sklearn import SparseGroupLasso
    >>> X = np.eye(4)
    >>> model = SparseGroupLasso(alpha=0.05, groups=[0, 0, 1, 1], fit_intercept=False)
    >>> model.fit(X, [1.0, 0.1, 0.05, 0.05]).coef_.nonzero()[0].tolist()
    [0]
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        groups: Any = None,
        l1_ratio: float = 0.5,
        weights: Any = None,
        fit_intercept: bool = True,
        max_iter: int = 10_000,
        tol: float = 1e-6,
        warm_start: bool = False,
    ):
        self.alpha = alpha
        self.groups = groups
        self.l1_ratio = l1_ratio
        self.weights = weights
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the coefficients.

        Parameters
        ----------
        X : array or sparse matrix (m, n)
            float32 and float64 in C or Fortran order, and CSC matrices, are used in place.
        y : array (m,) or (m, T)
            One target, or several, each of which is fitted on its own.
        sample_weight : array (m,), optional
            Weights >= 0; only their ratios matter.

        Returns
        -------
        self
        """
        require_at_least(0, alpha=self.alpha)
        X, y = validated(self, X, y, y_numeric=True, multi_output=True)
        groups = groups_of(self.groups, X.shape[1])
        weights = group_weights(self.weights, groups)
        penalty = group_penalty(groups, weights, self._ratio())
        return self._fit(X, y, sample_weight, times(self.alpha, penalty))

    def _ratio(self) -> float:
        require_ratio(l1_ratio=self.l1_ratio)
        return float(self.l1_ratio)


class GroupLasso(SparseGroupLasso):
    """Linear regression that leaves out whole groups of columns.

    The coefficients w and the intercept c minimise::

        1/(2 sum_i s_i) sum_i s_i (y_i - x_i w - c)^2 + alpha sum_g weights_g |w_g|_2

    where s are the sample weights, all 1 by default, and w_g are the coefficients of group g. The
    answer is certified: the duality gap is at most `tol` times the objective, or a
    `ConvergenceWarning` says that it is not.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the penalty.
    groups : int, array (n,) or list of lists, optional
        The size of consecutive groups, a label for each column, or lists of columns. Every column
        is a group of its own by default.
    weights : array (G,) or "sqrt", optional
        Weights of the groups, in the order of their labels: 1 by default, or the square roots of
        their sizes.
    fit_intercept : bool, default=True
        Whether c is fitted; it is 0 otherwise.
    max_iter : int, default=10000
        Largest number of working sets.
    tol : float, default=1e-6
        Largest duality gap, relative to the objective.
    warm_start : bool, default=False
        Whether `fit` starts from the coefficients of the last fit.

    Attributes
    ----------
    coef_ : array (n,) or (T, n)
        Coefficients, in the precision of X.
    intercept_ : float or array (T,)
        The constant c.
    dual_gap_ : float or array (T,)
        Upper bound on the distance of the objective to its minimum.
    n_iter_ : int or list of int
        Number of working sets.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array (n,)
        Their names, where all are strings.

    Examples
    --------
    >>> import numpy as np
    >>> from proxlearn.sklearn import GroupLasso
    >>> model = GroupLasso(alpha=0.05, groups=[0, 0, 1, 1], fit_intercept=False)
    >>> model.fit(np.eye(4), [1.0, 0.1, 0.05, 0.05]).coef_.nonzero()[0].tolist()
    [0, 1]
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        groups: Any = None,
        weights: Any = None,
        fit_intercept: bool = True,
        max_iter: int = 10_000,
        tol: float = 1e-6,
        warm_start: bool = False,
    ):
        self.alpha = alpha
        self.groups = groups
        self.weights = weights
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start

    def _ratio(self) -> float:
        return 0.0
