"""HuberRegressor: linear regression that outliers change little, with an l1 or l2 penalty."""

from typing import Any

import numpy as np

from proxlearn.core.glm import Answer, describe, solve_glm
from proxlearn.sklearn.fitting import (
    Array,
    limits_of,
    require_at_least,
    require_ratio,
    sample_weights,
    validated,
    warn_unless_solved,
    writable,
)
from proxlearn.sklearn.regressor import LeastSquaresRegressor, feature_weights

MOST_SCALES = 100
"""Scales that are tried at most; each is a fit from the last coefficients."""

SCALE_TOLERANCE = 1e-9
"""The relative change of the scale below which it is kept."""

SMALLEST_SCALE = 1e-6
"""The smallest scale, relative to the spread of y: an exact fit would have the scale 0."""


class HuberRegressor(LeastSquaresRegressor):
    """Linear regression with Huber's loss, whose scale is fitted too.

    The coefficients w, the intercept c and the scale sigma minimise, as in scikit-learn::

        sum_i s_i (sigma + H((y_i - x_i w - c) / sigma) sigma)
            + alpha l1_ratio |w|_1 + alpha (1 - l1_ratio) |w|^2

    where ``H(z) = z^2`` for ``|z| <= epsilon`` and ``2 epsilon |z| - epsilon^2`` beyond, and s are
    the sample weights, all 1 by default. For the scale that is found, the coefficients are
    certified: the duality gap is at most `tol` times the objective, or a `ConvergenceWarning` says
    that it is not.

    Parameters
    ----------
    epsilon : float, default=1.35
        Errors beyond epsilon sigma count as outliers; at least 1.
    max_iter : int, default=10000
        Largest number of working sets of each fit.
    alpha : float, default=0.0001
        Weight of the penalty.
    warm_start : bool, default=False
        Whether `fit` starts from the coefficients and the scale of the last fit.
    fit_intercept : bool, default=True
        Whether c is fitted; it is 0 otherwise.
    tol : float, default=1e-6
        Largest duality gap, relative to the objective.
    l1_ratio : float, default=0.0
        Share of the l1 norm in the penalty, from 0 to 1.
    positive : bool, default=False
        Whether the coefficients are constrained to be >= 0.
    penalty_weights : array (n,), optional
        Weights >= 0 of the columns in the penalty, 1 by default.

    Attributes
    ----------
    coef_ : array (n,)
        Coefficients.
    intercept_ : float
        The constant c.
    scale_ : float
        The scale sigma.
    outliers_ : array (m,) of bool
        Which samples have errors beyond epsilon sigma.
    dual_gap_ : float
        Upper bound on the distance of the objective to its minimum for this scale.
    n_iter_ : int
        Number of scales that were tried.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array (n,)
        Their names, where all are strings.

    Examples
    --------
    >>> import numpy as np
    >>> from proxlearn.sklearn import HuberRegressor
    >>> X = np.arange(20.0)[:, None]
    >>> y = 3 * X[:, 0] + np.cos(X[:, 0])
    >>> y[:2] = 1000.0
    >>> HuberRegressor().fit(X, y).coef_.round(1)
    array([3.])
    """

    scale_: float

    def __init__(
        self,
        *,
        epsilon: float = 1.35,
        max_iter: int = 10_000,
        alpha: float = 0.0001,
        warm_start: bool = False,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        l1_ratio: float = 0.0,
        positive: bool = False,
        penalty_weights: Any = None,
    ):
        self.epsilon = epsilon
        self.max_iter = max_iter
        self.alpha = alpha
        self.warm_start = warm_start
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.l1_ratio = l1_ratio
        self.positive = positive
        self.penalty_weights = penalty_weights

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the coefficients and the scale.

        Parameters
        ----------
        X : array or sparse matrix (m, n)
        y : array (m,)
        sample_weight : array (m,), optional
            Weights >= 0.

        Returns
        -------
        self
        """
        require_at_least(1, epsilon=self.epsilon)
        require_at_least(0, alpha=self.alpha)
        require_ratio(l1_ratio=self.l1_ratio)
        X, y = validated(self, X, y, y_numeric=True)
        X = X.astype(np.float64, copy=False)
        y = writable(np.asarray(y, dtype=np.float64))
        w = sample_weights(sample_weight, X.shape[0])
        s = np.ones(X.shape[0]) if w is None else w
        start = self._start_point(X.shape[1])
        scale = self.scale_ if start is not None else _first_scale(y, s)
        answer, scale, left, count = self._alternate(X, y, s, scale, start)
        warn_unless_solved(answer, self.tol)
        self.coef_, self.intercept_ = answer.x[0], float(answer.intercept[0])
        # The core's objective is that of scikit-learn, times sigma/2 and without m sigma.
        self.scale_, self.n_iter_ = float(scale), count
        self.dual_gap_ = 2.0 * float(answer.gap[0]) / scale if scale > 0 else 0.0
        self.outliers_ = np.abs(left) > self.epsilon * scale
        return self

    def _start_point(self, features: int) -> Array | None:
        """Coefficients and intercept of the last fit, where they are asked for."""
        if not self.warm_start or not hasattr(self, "scale_"):
            return None
        return np.append(self.coef_, self.intercept_) if len(self.coef_) == features else None

    def _alternate(
        self, X: Any, y: Array, s: Array, scale: float, start: Array | None
    ) -> tuple[Answer, float, Array, int]:
        """Coefficients for a scale and the scale for coefficients, in turns."""
        strength = self.alpha * feature_weights(self.penalty_weights, X.shape[1])
        lower = 0.0 if self.positive else -np.inf
        full = bool(np.all(strength))
        count, last = 0, np.inf
        middle = np.average(y, weights=s)
        least = SMALLEST_SCALE * float(np.sqrt(np.average((y - middle) ** 2, weights=s)))
        least = max(least, np.finfo(float).tiny)
        while count < MOST_SCALES and abs(scale - last) > SCALE_TOLERANCE * scale:
            count, last = count + 1, scale
            glm = describe(
                X, y, "huber", options={"delta": self.epsilon * scale}, sample_weight=s,
                l1=0.5 * scale * self.l1_ratio * strength,
                l2=scale * (1.0 - self.l1_ratio) * strength,
                lower=lower, intercept=bool(self.fit_intercept),
            )  # fmt: skip
            answer = solve_glm(glm, start, limits_of(self, full))
            start = np.append(answer.x[0], answer.intercept[0])
            left = y - np.asarray(X @ answer.x[0]).ravel() - answer.intercept[0]
            scale = max(_scale_of(left, s, self.epsilon, scale), least)
        return answer, last, left, count

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags


def _first_scale(y: Array, s: Array) -> float:
    """A scale to begin with: the median distance of y from its median."""
    y = y[s > 0]
    spread = float(np.median(np.abs(y - np.median(y)))) or float(y.std())
    return 1.4826 * spread if spread > 0 else 1.0


def _scale_of(left: Array, s: Array, epsilon: float, scale: float) -> float:
    """The scale that minimises the objective for these errors.

    Its derivative vanishes where sigma^2 is the sum of the squares of the errors up to
    epsilon sigma, divided by m - epsilon^2 times the number of the others.
    """
    size, total = np.abs(left), float(s.sum())
    for _ in range(100):
        inside = size <= epsilon * scale
        free = total - epsilon**2 * float(s[~inside].sum())
        if free <= 0:
            scale *= 2.0  # too many outliers: the objective falls with the scale
            continue
        better = float(np.sqrt((s[inside] @ np.square(left[inside])) / free))
        better = max(better, np.finfo(float).tiny)
        if abs(better - scale) <= 1e-14 * scale:
            return better
        scale = better
    return scale
