"""LassoCV and ElasticNetCV: the weight of the penalty chosen on held-out folds."""

from typing import Any

import numpy as np

from proxlearn.sklearn.fitting import Array, require_ratio
from proxlearn.sklearn.regression_path import alpha_grid, enet_path, lasso_path
from proxlearn.sklearn.regressor import Penalty, feature_weights
from proxlearn.sklearn.regressor_cv import RegressorCV


class SeparableCV(RegressorCV):
    """What LassoCV and ElasticNetCV have in common: penalties and grids."""

    def _penalty(self, features: int, ratio: float) -> Penalty:
        weights = feature_weights(self.penalty_weights, features)
        lower = 0.0 if self.positive else -np.inf
        return {"l1": ratio * weights, "l2": (1.0 - ratio) * weights, "lower": lower}

    def _grid(self, X: Any, y: Array, w: Array | None, ratio: float) -> Array:
        weights = feature_weights(self.penalty_weights, X.shape[1])
        return alpha_grid(
            X, y, w, ratio, self.fit_intercept, self.eps, self.alphas, self.positive, weights
        )


class LassoCV(SeparableCV):
    """`Lasso` with the alpha whose squared error on held-out folds is smallest.

    The path over alpha of each fold keeps the working set and its Gram matrix from one alpha to
    the next, and every problem of it is certified.

    Parameters
    ----------
    eps : float, default=1e-3
        The smallest alpha of an automatic grid, relative to the largest.
    alphas : int or array, default=100
        Number of values from the smallest alpha whose coefficients are all 0 down to `eps` times
        that, or the values.
    fit_intercept : bool, default=True
        Whether a constant is fitted.
    precompute : str, bool or array, default="auto"
        Without effect: the solver decides which products it keeps.
    max_iter : int, default=10000
        Largest number of working sets of each fit.
    tol : float, default=1e-6
        Largest duality gap of each fit, relative to its objective.
    copy_X : bool, default=True
        Without effect: X is never changed.
    cv : int, splitter or iterable, optional
        Folds, as in scikit-learn; 5 by default.
    verbose : bool or int, default=False
        Without effect.
    n_jobs : int, optional
        Number of threads that share the folds; 1 by default, -1 for all processors.
    positive : bool, default=False
        Whether the coefficients are constrained to be >= 0.
    random_state : object, default=None
        Without effect: the solver draws no random numbers.
    selection : {"cyclic", "random"}, default="cyclic"
        Without effect, as for `random_state`.
    penalty_weights : array (n,), optional
        Weights >= 0 of the columns in the penalty, 1 by default; a column of weight 0 is not
        penalised.

    Attributes
    ----------
    alpha_ : float or array (T,)
        The chosen alpha, one for each target. The other attributes of the cross-validation have a
        first axis of T targets, too, where there are several.
    alphas_ : array (K,)
        The values of alpha, largest first.
    mse_path_ : array (K, folds)
        Mean squared errors on the held-out samples.
    gap_path_ : array (K,) or (l1_ratios, K)
        Largest relative duality gap over the folds, for each alpha.
    coef_ : array (n,) or (T, n)
        Coefficients of the fit to all samples, in the precision of X.
    intercept_ : float or array (T,)
        Its constant.
    dual_gap_ : float or array (T,)
        Upper bound on the distance of its objective to the minimum.
    n_iter_ : int or list of int
        Its number of working sets.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array (n,)
        Their names, where all are strings.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from proxlearn.sklearn import LassoCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LassoCV(cv=5).fit(X, y)
    >>> round(model.alpha_, 4), model.mse_path_.shape
    (0.0038, (100, 5))
    """

    path = staticmethod(lasso_path)

    def __init__(
        self,
        *,
        eps: float = 1e-3,
        alphas: Any = 100,
        fit_intercept: bool = True,
        precompute: Any = "auto",
        max_iter: int = 10_000,
        tol: float = 1e-6,
        copy_X: bool = True,
        cv: Any = None,
        verbose: Any = False,
        n_jobs: int | None = None,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        penalty_weights: Any = None,
    ):
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.max_iter = max_iter
        self.tol = tol
        self.copy_X = copy_X
        self.cv = cv
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.penalty_weights = penalty_weights


class ElasticNetCV(SeparableCV):
    """`ElasticNet` with the alpha and l1_ratio whose squared error on held-out folds is smallest.

    The path over alpha of each fold keeps the working set and its Gram matrix from one alpha to
    the next, and every problem of it is certified.

    Parameters
    ----------
    l1_ratio : float or array, default=0.5
        Shares of the l1 norm in the penalty, from 0 to 1, among which one is chosen.
    eps : float, default=1e-3
        The smallest alpha of an automatic grid, relative to the largest.
    alphas : int or array, default=100
        Number of values from the smallest alpha whose coefficients are all 0 down to `eps` times
        that, or the values.
    fit_intercept : bool, default=True
        Whether a constant is fitted.
    precompute : str, bool or array, default="auto"
        Without effect: the solver decides which products it keeps.
    max_iter : int, default=10000
        Largest number of working sets of each fit.
    tol : float, default=1e-6
        Largest duality gap of each fit, relative to its objective.
    cv : int, splitter or iterable, optional
        Folds, as in scikit-learn; 5 by default.
    copy_X : bool, default=True
        Without effect: X is never changed.
    verbose : bool or int, default=0
        Without effect.
    n_jobs : int, optional
        Number of threads that share the folds; 1 by default, -1 for all processors.
    positive : bool, default=False
        Whether the coefficients are constrained to be >= 0.
    random_state : object, default=None
        Without effect: the solver draws no random numbers.
    selection : {"cyclic", "random"}, default="cyclic"
        Without effect, as for `random_state`.
    penalty_weights : array (n,), optional
        Weights >= 0 of the columns in the penalty, 1 by default; a column of weight 0 is not
        penalised.

    Attributes
    ----------
    alpha_ : float or array (T,)
        The chosen alpha, one for each target. The other attributes of the cross-validation have a
        first axis of T targets, too, where there are several.
    l1_ratio_ : float
        The chosen share of l1.
    alphas_ : array (K,) or (l1_ratios, K)
        The values of alpha, largest first, for each share of l1.
    mse_path_ : array (K, folds) or (l1_ratios, K, folds)
        Mean squared errors on the held-out samples.
    gap_path_ : array (K,) or (l1_ratios, K)
        Largest relative duality gap over the folds, for each alpha.
    coef_ : array (n,) or (T, n)
        Coefficients of the fit to all samples, in the precision of X.
    intercept_ : float or array (T,)
        Its constant.
    dual_gap_ : float or array (T,)
        Upper bound on the distance of its objective to the minimum.
    n_iter_ : int or list of int
        Its number of working sets.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array (n,)
        Their names, where all are strings.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from proxlearn.sklearn import ElasticNetCV
    >>> model = ElasticNetCV(l1_ratio=[0.5, 1.0], cv=5).fit(*load_diabetes(return_X_y=True))
    >>> model.l1_ratio_, model.mse_path_.shape
    (1.0, (2, 100, 5))
    """

    path = staticmethod(enet_path)

    def __init__(
        self,
        *,
        l1_ratio: Any = 0.5,
        eps: float = 1e-3,
        alphas: Any = 100,
        fit_intercept: bool = True,
        precompute: Any = "auto",
        max_iter: int = 10_000,
        tol: float = 1e-6,
        cv: Any = None,
        copy_X: bool = True,
        verbose: Any = 0,
        n_jobs: int | None = None,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        penalty_weights: Any = None,
    ):
        self.l1_ratio = l1_ratio
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.max_iter = max_iter
        self.tol = tol
        self.cv = cv
        self.copy_X = copy_X
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.penalty_weights = penalty_weights

    def _ratios(self) -> Array:
        ratios = np.atleast_1d(np.asarray(self.l1_ratio, dtype=np.float64))
        for ratio in ratios:
            require_ratio(l1_ratio=ratio)
        return ratios
