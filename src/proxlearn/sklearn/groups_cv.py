"""GroupLassoCV and SparseGroupLassoCV: the weight of the penalty chosen on held-out folds."""

from typing import Any

import numpy as np

from proxlearn.sklearn.fitting import Array, require_ratio
from proxlearn.sklearn.group_penalty import group_grid, group_penalty, group_weights, groups_of
from proxlearn.sklearn.regressor import Penalty
from proxlearn.sklearn.regressor_cv import RegressorCV


class SparseGroupLassoCV(RegressorCV):
    """`SparseGroupLasso` with the alpha and l1_ratio whose error on held-out folds is smallest.

    Parameters
    ----------
    groups : int, array (n,) or list of lists, optional
        The size of consecutive groups, a label for each column, or lists of columns. Every column
        is a group of its own by default.
    l1_ratio : float or array, default=0.5
        Shares of the l1 norm in the penalty, from 0 to 1, among which one is chosen.
    weights : array (G,) or "sqrt", optional
        Weights of the groups, in the order of their labels: 1 by default, or the square roots of
        their sizes.
    eps : float, default=1e-3
        The smallest alpha of an automatic grid, relative to the largest.
    alphas : int or array, default=100
        Number of values from the smallest alpha whose coefficients are all 0 down to `eps` times
        that, or the values.
    fit_intercept : bool, default=True
        Whether c is fitted; it is 0 otherwise.
    max_iter : int, default=10000
        Largest number of working sets of each fit.
    tol : float, default=1e-6
        Largest duality gap, relative to the objective.
    cv : int, splitter or iterable, optional
        Folds, as in scikit-learn; 5 by default.
    n_jobs : int, optional
        Number of threads that share the folds; 1 by default, -1 for all processors.

    Attributes
    ----------
    alpha_ : float or array (T,)
        The chosen alpha, one for each target. The other attributes of the cross-validation have a
        first axis of T targets, too, where there are several.
    l1_ratio_ : float or array (T,)
        The chosen share of l1.
    alphas_ : array (K,) or (l1_ratios, K)
        The values of alpha, largest first.
    mse_path_ : array (K, folds) or (l1_ratios, K, folds)
        Mean squared errors on the held-out samples.
    gap_path_ : array (K,) or (l1_ratios, K)
        Largest relative duality gap over the folds, for each alpha.
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
    >>> from sklearn.datasets import load_diabetes
    >>> from proxlearn.sklearn import SparseGroupLassoCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SparseGroupLassoCV(groups=2, l1_ratio=[0.1, 0.9], alphas=20).fit(X, y)
    >>> model.mse_path_.shape
    (2, 20, 5)
    """

    def __init__(
        self,
        *,
        groups: Any = None,
        l1_ratio: Any = 0.5,
        weights: Any = None,
        eps: float = 1e-3,
        alphas: Any = 100,
        fit_intercept: bool = True,
        max_iter: int = 10_000,
        tol: float = 1e-6,
        cv: Any = None,
        n_jobs: int | None = None,
    ):
        self.groups = groups
        self.l1_ratio = l1_ratio
        self.weights = weights
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.cv = cv
        self.n_jobs = n_jobs

    def _ratios(self) -> Array:
        ratios = np.atleast_1d(np.asarray(self.l1_ratio, dtype=np.float64))
        for ratio in ratios:
            require_ratio(l1_ratio=ratio)
        return ratios

    def _penalty(self, features: int, ratio: float) -> Penalty:
        groups = groups_of(self.groups, features)
        return group_penalty(groups, group_weights(self.weights, groups), ratio)

    def _grid(self, X: Any, y: Array, w: Array | None, ratio: float) -> Array:
        groups = groups_of(self.groups, X.shape[1])
        weights = group_weights(self.weights, groups)
        return group_grid(
            X, y, w, self.fit_intercept, self.eps, self.alphas, groups, weights, ratio
        )


class GroupLassoCV(SparseGroupLassoCV):
    """`GroupLasso` with the alpha whose squared error on held-out folds is smallest.

    Parameters
    ----------
    groups : int, array (n,) or list of lists, optional
        The size of consecutive groups, a label for each column, or lists of columns. Every column
        is a group of its own by default.
    weights : array (G,) or "sqrt", optional
        Weights of the groups, in the order of their labels: 1 by default, or the square roots of
        their sizes.
    eps : float, default=1e-3
        The smallest alpha of an automatic grid, relative to the largest.
    alphas : int or array, default=100
        Number of values from the smallest alpha whose coefficients are all 0 down to `eps` times
        that, or the values.
    fit_intercept : bool, default=True
        Whether c is fitted; it is 0 otherwise.
    max_iter : int, default=10000
        Largest number of working sets of each fit.
    tol : float, default=1e-6
        Largest duality gap, relative to the objective.
    cv : int, splitter or iterable, optional
        Folds, as in scikit-learn; 5 by default.
    n_jobs : int, optional
        Number of threads that share the folds; 1 by default, -1 for all processors.

    Attributes
    ----------
    alpha_ : float or array (T,)
        The chosen alpha, one for each target. The other attributes of the cross-validation have a
        first axis of T targets, too, where there are several.
    alphas_ : array (K,)
        The values of alpha, largest first.
    mse_path_ : array (K, folds)
        Mean squared errors on the held-out samples.
    gap_path_ : array (K,)
        Largest relative duality gap over the folds, for each alpha.
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
    >>> from sklearn.datasets import load_diabetes
    >>> from proxlearn.sklearn import GroupLassoCV
    >>> model = GroupLassoCV(groups=2, alphas=20).fit(*load_diabetes(return_X_y=True))
    >>> model.mse_path_.shape
    (20, 5)
    """

    def __init__(
        self,
        *,
        groups: Any = None,
        weights: Any = None,
        eps: float = 1e-3,
        alphas: Any = 100,
        fit_intercept: bool = True,
        max_iter: int = 10_000,
        tol: float = 1e-6,
        cv: Any = None,
        n_jobs: int | None = None,
    ):
        self.groups = groups
        self.weights = weights
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.cv = cv
        self.n_jobs = n_jobs

    def _ratios(self) -> Array:
        return np.zeros(1)
