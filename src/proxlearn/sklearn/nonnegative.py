"""Least squares with coefficients that are not negative: NonNegativeLeastSquares."""

from dataclasses import replace
from typing import Any

import numpy as np

from proxlearn.core.glm import Glm, path_glm
from proxlearn.sklearn.declaration import estimator
from proxlearn.sklearn.fitting import Array, limits_of
from proxlearn.sklearn.regression_path import largest_correlation
from proxlearn.sklearn.regressor import LeastSquaresRegressor

VANISHING = 0.01 ** np.arange(1, 8)
"""Weights of an l1 penalty that falls to 1e-14 times the smallest one whose solution is 0."""


@estimator
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
    fit_intercept : bool
        Whether c is fitted; it is 0 otherwise.

    Attributes
    ----------
    coef_ : array (n,) or (T, n)
        Coefficients, in float64.
    dual_gap_ : float or array (T,)
        Upper bound on the distance of the objective to its minimum; may be infinite.

    Examples
    --------
    >>> from proxlearn.sklearn import NonNegativeLeastSquares
    >>> model = NonNegativeLeastSquares(fit_intercept=False)
    >>> model.fit([[1, 0], [0, 1], [0, 0]], [2, -1, 0]).coef_.tolist()
    [2.0, 0.0]
    """

    fit_intercept: bool = True
    tol: float = 1e-8

    def _minimise(self, X: Any, y: Any, w: Array | None) -> None:
        # Where no gap is known the optimality conditions are the certificate, and coefficients
        # that are rounded to float32 do not meet them.
        X = X.astype(np.float64, copy=False)
        self._solve(X, y, w, {"lower": 0.0})

    def _start(self, X: Any, glm: Glm) -> Array | None:
        """For wide data, the end of a path over an l1 penalty that all but vanishes.

        Wide data have many solutions, and which of them the solver finds from 0 depends on
        rounding. The path leads to the solution with the smallest sum of coefficients.
        """
        m, n = X.shape
        if m >= n:
            return None
        weights = glm.in_rows().sample_weight[0]
        largest = [largest_correlation(X, b, weights, self.fit_intercept, True) for b in glm.b]
        penalised = replace(glm, l1=np.full((1, n), max(m * max(largest), np.finfo(float).tiny)))
        return path_glm(penalised, VANISHING, limits=limits_of(self))[-1].x
