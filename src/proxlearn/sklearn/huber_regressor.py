"""HuberRegressor: linear regression that outliers change little, with an l1 or l2 penalty."""

from typing import Any

import numpy as np

from proxlearn.core.glm import Answer, describe, solve_glm
from proxlearn.sklearn.declaration import estimator
from proxlearn.sklearn.fitting import (
    Array,
    limits_of,
    require_at_least,
    warn_unless_solved,
    writable,
)
from proxlearn.sklearn.regressor import Regressor, is_full, times
from proxlearn.sklearn.shared_parameters import L1Ratio, SeparablePenalty

MOST_SCALES = 100
"""Scales that are tried at most; each is a fit from the last coefficients."""

SCALE_TOLERANCE = 1e-9
"""The relative change of the scale below which it is kept."""

SMALLEST_SCALE = 1e-6
"""The smallest scale, relative to the spread of y: an exact fit would have the scale 0."""


@estimator
class HuberRegressor(L1Ratio, SeparablePenalty, Regressor):
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
    epsilon : float
        Errors beyond epsilon sigma count as outliers; at least 1.
    alpha : float
        Weight of the penalty.
    warm_start : bool
        Whether `fit` starts from the coefficients and the scale of the last fit.

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

    epsilon: float = 1.35
    alpha: float = 0.0001
    warm_start: bool = False
    l1_ratio: float = 0.0

    takes_several_targets = False

    def _check_parameters(self) -> None:
        require_at_least(1, epsilon=self.epsilon)
        require_at_least(0, alpha=self.alpha)
        self._ratio()
        limits_of(self)

    def _minimise(self, X: Any, y: Any, w: Array | None) -> None:
        X = X.astype(np.float64, copy=False)
        y = writable(np.asarray(y, dtype=np.float64))
        s = np.ones(X.shape[0]) if w is None else w
        start = self._start_point(X.shape[1])
        scale = self.scale_ if start is not None else _first_scale(y, s)
        answer, scale, left, count = self._alternate(X, y, s, scale, start)
        warn_unless_solved(answer, self.tol)
        self.coef_, self.intercept_ = answer.x[0], float(answer.intercept[0])
        # The core's objective is that of scikit-learn, times sigma/2 and without m sigma.
        self.scale_: float = float(scale)
        self.n_iter_ = count
        self.dual_gap_ = 2.0 * float(answer.gap[0]) / scale if scale > 0 else 0.0
        self.outliers_ = np.abs(left) > self.epsilon * scale

    def _start_point(self, features: int) -> Array | None:
        """Coefficients and intercept of the last fit, where they are asked for."""
        if not self.warm_start or not hasattr(self, "scale_"):
            return None
        return np.append(self.coef_, self.intercept_) if len(self.coef_) == features else None

    def _alternate(
        self, X: Any, y: Array, s: Array, scale: float, start: Array | None
    ) -> tuple[Answer, float, Array, int]:
        """Coefficients for a scale and the scale for coefficients, in turns."""
        # The core's penalty has l2/2 where scikit-learn's objective has l2.
        penalty = times(self.alpha, self._penalty(X.shape[1], self._ratio()))
        penalty["l1"] = 0.5 * penalty["l1"]
        count, last = 0, np.inf
        middle = np.average(y, weights=s)
        least = SMALLEST_SCALE * float(np.sqrt(np.average((y - middle) ** 2, weights=s)))
        # Beside y, a scale below its rounding is lost.
        least = max(least, np.finfo(float).eps * float(np.abs(y).max()), np.finfo(float).tiny)
        while count < MOST_SCALES and abs(scale - last) > SCALE_TOLERANCE * scale:
            count, last = count + 1, scale
            glm = describe(
                X, y, "huber", options={"delta": self.epsilon * scale}, sample_weight=s,
                **times(scale, penalty), intercept=bool(self.fit_intercept),
            )  # fmt: skip
            answer = solve_glm(glm, start, limits_of(self, is_full(penalty)))
            start = np.append(answer.x[0], answer.intercept[0])
            left = y - np.asarray(X @ answer.x[0]).ravel() - answer.intercept[0]
            scale = max(_scale_of(left, s, self.epsilon, scale), least)
        return answer, last, left, count


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
