"""Least squares with shares as coefficients: SimplexRegressor."""

from dataclasses import field
from typing import Any

import numpy as np
import scipy.sparse

from proxlearn.core.glm import describe, solve_glm
from proxlearn.core.penalty_kinds import Simplex
from proxlearn.sklearn.declaration import estimator
from proxlearn.sklearn.fitting import (
    Array,
    limits_of,
    require_at_least,
    thread_count,
    warn_unless_solved,
    writable,
)
from proxlearn.sklearn.regressor import LeastSquaresRegressor


@estimator
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
    radius : float
        The sum of the coefficients.
    at_most : bool
        Whether the sum may be less than `radius`.
    n_jobs : int
        Number of threads that share the targets; 1 by default, -1 for all processors.

    Attributes
    ----------
    intercept_ : float
        Always 0: there is no intercept.

    Examples
    --------
    >>> from proxlearn.sklearn import SimplexRegressor
    >>> spectra = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]
    >>> SimplexRegressor().fit(spectra, [0.75, 0.25, 0.5]).coef_.round(6).tolist()
    [0.75, 0.25]
    """

    fit_intercept = False

    radius: float = field(default=1.0, kw_only=False)
    at_most: bool = False
    n_jobs: int | None = None

    def _check_parameters(self) -> None:
        require_at_least(0, strict=True, radius=self.radius)

    def _minimise(self, X: Any, y: Any, w: Array | None) -> None:
        m, precision = X.shape[0], X.dtype.type
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # targets are seldom such means of the columns
        return tags


def _times_rows(X: Any, factors: Any) -> Any:
    if scipy.sparse.issparse(X):
        return (scipy.sparse.diags_array(factors) @ X).tocsc()
    return X * factors[:, None]
