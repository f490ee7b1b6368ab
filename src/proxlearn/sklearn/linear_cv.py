"""LassoCV and ElasticNetCV: the weight of the penalty chosen on held-out folds."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from proxlearn.core.glm import describe
from proxlearn.sklearn.fitting import (
    Array,
    limits_of,
    linear_prediction,
    require_ratio,
    sample_weights,
    thread_count,
    validated,
    warn_unless_solved,
    writable,
)
from proxlearn.sklearn.folds import Fold, path_predictions, split, training_weights
from proxlearn.sklearn.linear import ElasticNet
from proxlearn.sklearn.regression_path import alpha_grid, enet_path, lasso_path
from proxlearn.sklearn.ridge import path


class RegressorCV(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """The fit that LassoCV and ElasticNetCV share; `_ratios` says which shares of l1 are tried."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Choose alpha on held-out folds, then fit all samples.

        Parameters
        ----------
        X : array or sparse matrix (m, n)
            float32 and float64 in C or Fortran order, and CSC matrices, are used in place.
        y : array (m,)
        sample_weight : array (m,), optional
            Weights >= 0, in the fits and in the errors on held-out samples.

        Returns
        -------
        self
        """
        limits, ratios = limits_of(self), self._ratios()
        X, y = validated(self, X, y, y_numeric=True)
        y = writable(np.asarray(y, dtype=np.float64))
        w = sample_weights(sample_weight, X.shape[0])
        grids = np.stack([self._grid(X, y, w, ratio) for ratio in ratios])
        folds = split(self.cv, X, y)
        errors = np.stack(
            [
                self._errors(X, y, w, folds, ratio, grid)
                for ratio, grid in zip(ratios, grids, strict=True)
            ]
        )
        best = np.unravel_index(errors.mean(2).argmin(), grids.shape)
        self.mse_path_ = np.squeeze(errors)
        self.alphas_ = grids[0] if len(ratios) == 1 or np.ndim(self.alphas) else grids
        self.alpha_, chosen_ratio = float(grids[best]), float(ratios[best[0]])
        if hasattr(self, "l1_ratio"):
            self.l1_ratio_ = chosen_ratio
        chosen = ElasticNet(
            self.alpha_, l1_ratio=chosen_ratio, fit_intercept=self.fit_intercept,
            max_iter=limits.max_iter, tol=limits.tol, positive=self.positive,
        ).fit(X, y, w, check_input=False)  # fmt: skip
        self.coef_, self.intercept_ = chosen.coef_, chosen.intercept_
        self.dual_gap_, self.n_iter_ = chosen.dual_gap_, chosen.n_iter_
        return self

    def predict(self, X: Any) -> Any:
        """Predict targets.

        Parameters
        ----------
        X : array or sparse matrix (m, n)

        Returns
        -------
        array (m,)
            X coef_ + intercept_.
        """
        return linear_prediction(self, X)

    def _ratios(self) -> Array:
        return np.ones(1)

    def _grid(self, X: Any, y: Array, w: Array | None, ratio: float) -> Array:
        return alpha_grid(X, y, w, ratio, self.fit_intercept, self.eps, self.alphas, self.positive)

    def _errors(
        self, X: Any, y: Array, w: Array | None, folds: list[Fold], ratio: float, grid: Array
    ) -> Array:
        """Mean squared errors on held-out samples, (alphas, folds)."""
        weights = training_weights(folds, w, X.shape[0])
        glm = describe(
            X, y, "squares", l1=ratio, l2=1.0 - ratio, lower=0.0 if self.positive else -np.inf,
            sample_weight=weights, intercept=bool(self.fit_intercept),
        )  # fmt: skip
        # The loss is a sum and not a mean, so that each fold has its own multiple of alpha.
        factors = grid[:, None] * weights.sum(axis=1)
        limits = limits_of(self)
        answers = path(glm, factors, limits, thread_count(self.n_jobs))
        warn_unless_solved(answers, limits.tol, stacklevel=4)
        errors = np.empty((len(grid), len(folds)))
        for k, (_, test) in enumerate(folds):
            missed = y[test, None] - path_predictions(X, answers, k, test)
            errors[:, k] = np.average(missed**2, axis=0, weights=None if w is None else w[test])
        return errors

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class LassoCV(RegressorCV):
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

    Attributes
    ----------
    alpha_ : float
        The chosen alpha.
    alphas_ : array (K,)
        The values of alpha, largest first.
    mse_path_ : array (K, folds)
        Mean squared errors on the held-out samples.
    coef_ : array (n,)
        Coefficients of the fit to all samples, in the precision of X.
    intercept_ : float
        Its constant.
    dual_gap_ : float
        Upper bound on the distance of its objective to the minimum.
    n_iter_ : int
        Its number of working sets, at least 1.
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


class ElasticNetCV(RegressorCV):
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

    Attributes
    ----------
    alpha_ : float
        The chosen alpha.
    l1_ratio_ : float
        The chosen share of l1.
    alphas_ : array (K,) or (l1_ratios, K)
        The values of alpha, largest first, for each share of l1.
    mse_path_ : array (K, folds) or (l1_ratios, K, folds)
        Mean squared errors on the held-out samples.
    coef_ : array (n,)
        Coefficients of the fit to all samples, in the precision of X.
    intercept_ : float
        Its constant.
    dual_gap_ : float
        Upper bound on the distance of its objective to the minimum.
    n_iter_ : int
        Its number of working sets, at least 1.
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

    def _ratios(self) -> Array:
        ratios = np.atleast_1d(np.asarray(self.l1_ratio, dtype=np.float64))
        for ratio in ratios:
            require_ratio(l1_ratio=ratio)
        return ratios
