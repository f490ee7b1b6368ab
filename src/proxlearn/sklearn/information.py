"""LassoIC: the weight of the penalty chosen by an information criterion."""

from dataclasses import field
from typing import Any

import numpy as np
from scipy.special import gammaln

from proxlearn.core.glm import describe
from proxlearn.errors import InputError, unknown
from proxlearn.sklearn.declaration import estimator
from proxlearn.sklearn.fitting import (
    Array,
    limits_of,
    require_at_least,
    warn_unless_solved,
    writable,
)
from proxlearn.sklearn.folds import of_fold
from proxlearn.sklearn.regression_path import least_squares_residual
from proxlearn.sklearn.regressor import LeastSquaresRegressor, penalises_all
from proxlearn.sklearn.ridge import path
from proxlearn.sklearn.shared_parameters import AlphaGrid, SeparablePenalty

CRITERIA = ("aic", "bic", "ebic")


@estimator
class LassoIC(SeparablePenalty, AlphaGrid, LeastSquaresRegressor):
    """`Lasso` with the alpha that an information criterion prefers.

    The criterion of coefficients w with df non-zeros is, as in scikit-learn's `LassoLarsIC`::

        m log(2 pi sigma^2) + |y - X w - c|^2 / sigma^2 + factor df

    where `factor` is 2 for "aic" and log(m) for "bic". "ebic" adds ``2 gamma log(n choose df)`` to
    "bic", which suits data with many columns. Here m is the number of samples, or the sum of their
    weights: a weight of 2 is a sample that occurs twice. Every problem of the path is certified.

    Parameters
    ----------
    criterion : {"aic", "bic", "ebic"}
        What is minimised.
    gamma : float
        Weight of the number of models of one size, for "ebic".
    noise_variance : float
        sigma^2. By default that of the residuals of ordinary least squares, which needs more
        samples than columns.

    Attributes
    ----------
    alpha_ : float
        The chosen alpha.
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

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from proxlearn.sklearn import LassoIC
    >>> model = LassoIC(criterion="bic").fit(*load_diabetes(return_X_y=True))
    >>> model.coef_.nonzero()[0].tolist()
    [1, 2, 3, 4, 6, 8, 9]
    """

    criterion: str = field(default="aic", kw_only=False)
    gamma: float = 1.0
    noise_variance: float | None = None

    takes_several_targets = False

    def _check_parameters(self) -> None:
        if self.criterion not in CRITERIA:
            raise unknown("criterion", self.criterion, CRITERIA)
        require_at_least(0, gamma=self.gamma)

    def _minimise(self, X: Any, y: Any, w: Array | None) -> None:
        y = writable(np.asarray(y, dtype=np.float64))
        s = np.ones(len(y)) if w is None else w
        m = float(s.sum())
        self.alphas_ = self._grid(X, y, w, 1.0)
        penalty = self._penalty(X.shape[1], 1.0)
        intercept = bool(self.fit_intercept)
        glm = describe(X, y, "squares", **penalty, sample_weight=s, intercept=intercept)
        limits = limits_of(self, penalises_all(penalty) and bool(self.alphas_.all()))
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

    def _judge(self, X: Any, y: Array, s: Array, squares: Array, sizes: Any) -> None:
        """Set the criterion of models with these sums of squares and numbers of non-zeros."""
        m, n = float(s.sum()), X.shape[1]
        self.noise_variance_ = self._variance(X, y, s)
        factor = 2.0 if self.criterion == "aic" else np.log(m)
        value = m * np.log(2 * np.pi * self.noise_variance_) + squares / self.noise_variance_
        value = value + factor * sizes
        if self.criterion == "ebic":
            counts = gammaln(n + 1) - gammaln(sizes + 1) - gammaln(n - sizes + 1)
            value = value + 2 * self.gamma * counts
        self.criterion_: Array = value

    def _variance(self, X: Any, y: Array, s: Array) -> float:
        """The variance of the noise; where none is given, that of ordinary least squares."""
        if self.noise_variance is not None:
            require_at_least(0, strict=True, noise_variance=self.noise_variance)
            return float(self.noise_variance)
        m, n = float(s.sum()), X.shape[1]
        if m <= n + self.fit_intercept:
            raise InputError(
                f"X has {m:g} samples and {n} columns, which leaves nothing to estimate the "
                "variance of the noise from; give noise_variance, or use LassoCV"
            )
        residual = least_squares_residual(X, y, s, self.fit_intercept)
        left = float(np.square(residual) @ s)
        least = np.finfo(float).eps * max(float(np.square(y) @ s), np.finfo(float).tiny)
        return float(max(left, least) / (m - n - int(self.fit_intercept)))
