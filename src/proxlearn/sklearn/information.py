"""LassoIC: the weight of the penalty chosen by an information criterion."""

from typing import Any

import numpy as np
import scipy.sparse
from scipy.special import gammaln

from proxlearn.core.glm import describe
from proxlearn.errors import InputError, unknown
from proxlearn.sklearn.fitting import (
    Array,
    limits_of,
    require_at_least,
    sample_weights,
    validated,
    warn_unless_solved,
    writable,
)
from proxlearn.sklearn.folds import of_fold
from proxlearn.sklearn.regression_path import alpha_grid
from proxlearn.sklearn.regressor import LeastSquaresRegressor, Penalty, feature_weights, is_full
from proxlearn.sklearn.ridge import path

CRITERIA = ("aic", "bic", "ebic")


class LassoIC(LeastSquaresRegressor):
    """`Lasso` with the alpha that an information criterion prefers.

    The criterion of coefficients w with df non-zeros is, as in scikit-learn's `LassoLarsIC`::

        m log(2 pi sigma^2) + |y - X w - c|^2 / sigma^2 + factor df

    where `factor` is 2 for "aic" and log(m) for "bic". "ebic" adds ``2 gamma log(n choose df)`` to
    "bic", which suits data with many columns. Every problem of the path is certified.

    Parameters
    ----------
    criterion : {"aic", "bic", "ebic"}, default="aic"
    gamma : float, default=1.0
        Weight of the number of models of one size, for "ebic".
    noise_variance : float, optional
        sigma^2. By default that of the residuals of ordinary least squares, which needs more
        samples than columns.
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
        Largest duality gap of each fit, relative to its objective.
    positive : bool, default=False
        Whether the coefficients are constrained to be >= 0.
    penalty_weights : array (n,), optional
        Weights >= 0 of the columns in the penalty, 1 by default.

    Attributes
    ----------
    alpha_ : float
        The chosen alpha.
    alphas_ : array (K,)
        The values of alpha, largest first.
    criterion_ : array (K,)
        The criterion for each alpha.
    coefs_path_ : array (n, K)
        The coefficients for each alpha.
    gap_path_ : array (K,)
        The relative duality gap for each alpha.
    noise_variance_ : float
        sigma^2.
    coef_ : array (n,)
        Coefficients, in the precision of X.
    intercept_ : float
        The constant c.
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
    >>> from sklearn.datasets import load_diabetes
    >>> from proxlearn.sklearn import LassoIC
    >>> model = LassoIC(criterion="bic").fit(*load_diabetes(return_X_y=True))
    >>> model.coef_.nonzero()[0].tolist()
    [1, 2, 3, 4, 6, 8, 9]
    """

    def __init__(
        self,
        criterion: str = "aic",
        *,
        gamma: float = 1.0,
        noise_variance: float | None = None,
        eps: float = 1e-3,
        alphas: Any = 100,
        fit_intercept: bool = True,
        max_iter: int = 10_000,
        tol: float = 1e-6,
        positive: bool = False,
        penalty_weights: Any = None,
    ):
        self.criterion = criterion
        self.gamma = gamma
        self.noise_variance = noise_variance
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.positive = positive
        self.penalty_weights = penalty_weights

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the path over alpha, and choose one of its models.

        Parameters
        ----------
        X : array or sparse matrix (m, n)
            float32 and float64 in C or Fortran order, and CSC matrices, are used in place.
        y : array (m,)
        sample_weight : array (m,), optional
            Weights >= 0; only their ratios matter.

        Returns
        -------
        self
        """
        if self.criterion not in CRITERIA:
            raise unknown("criterion", self.criterion, CRITERIA)
        require_at_least(0, gamma=self.gamma)
        X, y = validated(self, X, y, y_numeric=True)
        m, y = X.shape[0], writable(np.asarray(y, dtype=np.float64))
        w = sample_weights(sample_weight, m)
        s = np.ones(m) if w is None else w * (m / w.sum())
        weights = feature_weights(self.penalty_weights, X.shape[1])
        self.alphas_ = alpha_grid(
            X, y, w, 1.0, self.fit_intercept, self.eps, self.alphas, self.positive, weights
        )
        penalty: Penalty = {"l1": weights, "lower": 0.0 if self.positive else -np.inf}
        intercept = bool(self.fit_intercept)
        glm = describe(X, y, "squares", **penalty, sample_weight=s, intercept=intercept)
        limits = limits_of(self, is_full(penalty) and bool(self.alphas_.all()))
        answers = path(glm, m * self.alphas_, limits)
        warn_unless_solved(answers, self.tol)
        coefs, constants = of_fold(answers, 0)
        left = y - np.asarray((X @ coefs.T).T) - constants[:, None]
        self._judge(X, y, s, np.square(left) @ s, np.count_nonzero(coefs, axis=1))
        self.coefs_path_ = coefs.T
        with np.errstate(divide="ignore", invalid="ignore"):
            self.gap_path_ = np.array([float(a.gap[0] / abs(a.objective[0])) for a in answers])
        best = int(self.criterion_.argmin())
        self.alpha_ = float(self.alphas_[best])
        self._assign(answers[best], X.dtype.type, m, 1)
        return self

    def _judge(self, X: Any, y: Array, s: Array, squares: Array, sizes: Any) -> None:
        """Set the criterion of models with these sums of squares and numbers of non-zeros."""
        m, n = X.shape
        self.noise_variance_ = self._variance(X, y, s)
        factor = 2.0 if self.criterion == "aic" else np.log(m)
        value = m * np.log(2 * np.pi * self.noise_variance_) + squares / self.noise_variance_
        value = value + factor * sizes
        if self.criterion == "ebic":
            counts = gammaln(n + 1) - gammaln(sizes + 1) - gammaln(n - sizes + 1)
            value = value + 2 * self.gamma * counts
        self.criterion_: Array = value

    def _variance(self, X: Any, y: Array, s: Array) -> float:
        """The variance of the noise, that of ordinary least squares where none is given."""
        if self.noise_variance is not None:
            require_at_least(0, strict=True, noise_variance=self.noise_variance)
            return float(self.noise_variance)
        m, n = X.shape
        if m <= n + self.fit_intercept:
            raise InputError(
                f"X has {m} samples and {n} columns, which leaves nothing to estimate the variance "
                "of the noise from; give noise_variance, or use LassoCV"
            )
        columns = X.toarray() if scipy.sparse.issparse(X) else np.asarray(X, dtype=np.float64)
        if self.fit_intercept:
            columns = np.column_stack([columns, np.ones(m)])
        root = np.sqrt(s)
        found = np.linalg.lstsq(root[:, None] * columns, root * y)[0]
        left = float(np.square(y - columns @ found) @ s)
        least = np.finfo(float).eps * max(float(np.square(y) @ s), np.finfo(float).tiny)
        return float(max(left, least)) / int(m - columns.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags
