"""Least squares with shares as coefficients: SimplexRegressor."""

from typing import Any

import numpy as np
import scipy.sparse

from proxlearn.core.glm import describe, solve_glm
from proxlearn.core.penalties import Simplex
from proxlearn.sklearn.fitting import (
    limits_of,
    require_at_least,
    sample_weights,
    thread_count,
    validated,
    warn_unless_solved,
    writable,
)
from proxlearn.sklearn.regressor import LeastSquaresRegressor


class SimplexRegressor(LeastSquaresRegressor):
    """Linear regression with coefficients that are not negative and have a given sum.

    The coefficients w minimise::

        1/(2 sum_i s_i) sum_i s_i (y_i - x_i w)^2    subject to w >= 0 and sum w = radius

    where s are the sample weights, all 1 by default. Spectral unmixing is an example: the columns
    of X are the spectra of materials, y that of a pixel, and w the shares of the materials in it;
    several pixels are several targets. The answer is certified: the gap is at most `tol` times the
    objective, or a `ConvergenceWarning` says that it is not.

    Parameters
    ----------
    radius : float, default=1.0
        The sum of the coefficients.
    at_most : bool, default=False
        Whether the sum may be less than `radius`.
    max_iter : int, default=10000
        Largest number of working sets.
    tol : float, default=1e-6
        Largest gap, relative to the objective.
    n_jobs : int, optional
        Number of threads that share the targets; 1 by default, -1 for all processors.

    Attributes
    ----------
    coef_ : array (n,) or (T, n)
        Coefficients, in the precision of X.
    sparse_coef_ : sparse matrix (1, n) or (T, n)
        The same.
    intercept_ : float
        Always 0: there is no intercept.
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
    >>> from proxlearn.sklearn import SimplexRegressor
    >>> spectra = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]
    >>> SimplexRegressor().fit(spectra, [0.75, 0.25, 0.5]).coef_.round(6).tolist()
    [0.75, 0.25]
    """

    fit_intercept = False

    def __init__(
        self,
        radius: float = 1.0,
        *,
        at_most: bool = False,
        max_iter: int = 10_000,
        tol: float = 1e-6,
        n_jobs: int | None = None,
    ):
        self.radius = radius
        self.at_most = at_most
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the coefficients.

        Parameters
        ----------
        X : array or sparse matrix (m, n)
        y : array (m,) or (m, T)
            One target, or several, each of which is fitted on its own.
        sample_weight : array (m,), optional
            Weights >= 0; only their ratios matter.

        Returns
        -------
        self
        """
        require_at_least(0, strict=True, radius=self.radius)
        X, y = validated(self, X, y, y_numeric=True, multi_output=True)
        if scipy.sparse.issparse(y):
            raise TypeError("y is a sparse matrix; expected a dense array")
        m, precision = X.shape[0], X.dtype.type
        w = sample_weights(sample_weight, m)
        targets = writable(np.asarray(y, dtype=np.float64))
        if w is not None:
            # The core solves on the simplex without weights: the rows have their square roots.
            root = np.sqrt(w * (m / w.sum())).astype(precision)
            X = _times_rows(X, root)
            targets = (targets.T * root).T
        glm = describe(
            X, targets.T, "squares", level=float(self.radius), simplex=Simplex(bool(self.at_most))
        )
        answer = solve_glm(glm, limits=limits_of(self), threads=thread_count(self.n_jobs))
        warn_unless_solved(answer, self.tol)
        self._assign(answer, precision, m, y.ndim)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # targets are seldom such means of the columns
        return tags


def _times_rows(X: Any, factors: Any) -> Any:
    if scipy.sparse.issparse(X):
        return (scipy.sparse.diags_array(factors) @ X).tocsc()
    return X * factors[:, None]
