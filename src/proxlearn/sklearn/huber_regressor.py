"""HuberRegressor: linear regression that outliers change little, with an l1 or l2 penalty."""

from typing import Any

import numpy as np

from proxlearn.core.glm import STATUSES, Answer, describe, solve_glm
from proxlearn.sklearn.declaration import estimator
from proxlearn.sklearn.fitting import (
    Array,
    last_point,
    limits_of,
    require_at_least,
    warn,
    warn_of_gap,
    writable,
)
from proxlearn.sklearn.huber_start import joint_start
from proxlearn.sklearn.regressor import Regressor, penalises_all, times
from proxlearn.sklearn.shared_parameters import L1Ratio, SeparablePenalty

MOST_SCALES = 100
"""Scales that are tried at most; each is a fit from the last coefficients."""

SCALE_TOLERANCE = 1e-9
"""The relative change of the scale below which it is kept."""

FARTHEST = 7.0
"""How far the logarithm of the scale may rise in one step, a factor of about a thousand."""

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
        start = last_point(self, X.shape[1])
        scale = self.scale_ if start is not None else self._first_scale(y, s)
        if start is None and self._ratio() == 0 and not self.positive:
            start, scale = self._joint_start(X, y, s, scale)
        answer, search, left = self._alternate(X, y, s, scale, start)
        scale = search.scale
        self.coef_, self.intercept_ = answer.x[0], float(answer.intercept[0])
        # The core's objective is that of scikit-learn, times sigma/2 and without m sigma.
        self.scale_: float = float(scale)
        self.n_iter_ = search.count
        self.dual_gap_ = 2.0 * float(answer.gap[0]) / scale
        self.outliers_ = np.abs(left) > self.epsilon * scale
        objective = float(s.sum()) * scale + 2.0 * float(answer.objective[0]) / scale
        if answer.status[0] and not self.dual_gap_ <= self.tol * objective:
            warn_of_gap(STATUSES[answer.status[0]], self.dual_gap_ / objective, self.tol)
        elif not search.done:
            warn(f"The scale did not converge in {MOST_SCALES} fits; scale the features or y.")

    def _first_scale(self, y: Array, s: Array) -> float:
        """A scale to begin with: the median distance of y from its median, or from 0."""
        y = y[s > 0]
        middle = np.median(y) if self.fit_intercept else 0.0
        spread = float(np.median(np.abs(y - middle))) or float(y.std())
        return 1.4826 * spread if spread > 0 else 1.0

    def _joint_start(self, X: Any, y: Array, s: Array, scale: float) -> tuple[Array | None, float]:
        """Where coefficients and scale are close to the solution, with an l2 penalty alone."""
        l2 = self.alpha * self._penalty(X.shape[1], 0.0)["l2"]
        found = joint_start(X, y, s, self.epsilon, l2, bool(self.fit_intercept), scale)
        return (None, scale) if found is None else found

    def _alternate(
        self, X: Any, y: Array, s: Array, scale: float, start: Array | None
    ) -> tuple[Answer, "ScaleSearch", Array]:
        """Coefficients for a scale and the scale for coefficients, in turns."""
        # The core's penalty has l2/2 where scikit-learn's objective has l2.
        penalty = times(self.alpha, self._penalty(X.shape[1], self._ratio()))
        penalty["l1"] = 0.5 * penalty["l1"]
        middle = np.average(y, weights=s) if self.fit_intercept else 0.0
        least = SMALLEST_SCALE * float(np.sqrt(np.average((y - middle) ** 2, weights=s)))
        least = max(
            least, SMALLEST_SCALE**2 * float(np.abs(y).max()), np.sqrt(np.finfo(float).tiny)
        )
        search = ScaleSearch(scale, least)
        while True:
            glm = describe(
                X, y, "huber", options={"delta": self.epsilon * search.scale}, sample_weight=s,
                **times(search.scale, penalty), intercept=bool(self.fit_intercept),
            )  # fmt: skip
            answer = solve_glm(glm, start, limits_of(self, penalises_all(penalty)))
            start = np.append(answer.x[0], answer.intercept[0])
            left = y - np.asarray(X @ answer.x[0]).ravel() - answer.intercept[0]
            if search.ends(_scale_of(left, s, self.epsilon)):
                return answer, search, left


class ScaleSearch:
    """Search for the scale at which the objective, minimised over the coefficients, is smallest.

    A fit at a scale gives coefficients, and these have a best scale of their own. The minimum over
    the coefficients is a convex function of the scale, so that the solution lies above the scale
    of a fit whose best scale is larger, and below it otherwise. The secant method looks for the
    scale where the logarithm of the ratio of the two is 0. It takes at most a third of the fits of
    an alternation, in which the best scale of a fit is the scale of the next.
    """

    def __init__(self, scale: float, least: float):
        self.scale, self.least = max(scale, least), least
        self.count, self.done = 0, False
        self.low, self.high = -np.inf, np.inf
        self.last: tuple[float, float] | None = None

    def ends(self, best: float) -> bool:
        """Whether the search ends, given the best scale of this fit; else choose the next one."""
        self.count += 1
        place, floor = float(np.log(self.scale)), float(np.log(self.least))
        off = float(np.log(max(best, self.least))) - place
        self.low, self.high = (place, self.high) if off > 0 else (self.low, place)
        self.done = min(abs(off), self.high - self.low) <= SCALE_TOLERANCE
        if self.done or self.count >= MOST_SCALES:
            return True
        next_ = place + off
        if self.last is not None and off * (off - self.last[1]) * (place - self.last[0]) != 0.0:
            next_ = place - off * (place - self.last[0]) / (off - self.last[1])
        self.last = place, off
        next_ = min(next_, place + FARTHEST)
        if not self.low < next_ < self.high:
            inside = np.isfinite(self.low) and np.isfinite(self.high)
            next_ = 0.5 * (self.low + self.high) if inside else place + off
        self.scale = float(np.exp(next_)) if next_ > floor else self.least
        return False


def _scale_of(left: Array, s: Array, epsilon: float) -> float:
    """The scale that minimises the objective for these errors; 0 where it rises with the scale.

    Its derivative is the sum of the weights less that of ``s_i min(left_i / sigma, epsilon)^2``.
    It vanishes where sigma^2 is the sum of the squares of the errors up to epsilon sigma, divided
    by the weight of all samples less epsilon^2 times that of the others.
    """
    squares = np.square(left)
    order = np.argsort(squares)
    squares, weights = squares[order], s[order]
    total = float(s.sum())
    inside, outside = np.cumsum(weights * squares), total - np.cumsum(weights)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Where sigma is such that epsilon sigma is each of the errors in turn.
        derivative = total - epsilon**2 * (inside / squares + outside)
        falls = np.flatnonzero((squares > 0) & (derivative <= 1e-12 * total))
    if not len(falls):
        return 0.0
    last = falls[-1]
    return float(np.sqrt(inside[last] / (total - epsilon**2 * outside[last])))
