"""Where the fit of `HuberRegressor` starts: Newton's method for coefficients and scale at once.

For an l2 penalty alone scikit-learn's objective in v = (w, c) and the scale sigma is, with the
errors r = y - X w - c and I the samples with |r_i| <= epsilon sigma,

    sum_i s_i sigma + sum_I s_i r_i^2 / sigma + sum_(not I) s_i (2 epsilon |r_i| - epsilon^2 sigma)
        + sum_j l2_j w_j^2

It is convex, and smooth with second derivatives that jump where a sample enters or leaves I. What
is found needs no certificate: it is a start of the fit, which has one.
"""

from typing import Any

import numpy as np
from scipy.linalg.lapack import dposv

from proxlearn.sklearn.fitting import Array

MOST_STEPS = 30
"""Newton steps at most.

Of 216 simulated fits from 120 x 100 to 2000 x 100, 180 took at most 19, 6 in the median. The others
were nearly exact fits, or had no penalty and correlated columns, and were left to the scales.
"""

MOST_ENTRIES = 10_000_000
"""Entries of X up to which a centred copy of it is made."""

SETTLED = 1e-12
"""The decrease that the last step promises, relative to the objective.

Convergence is quadratic there, so that the scale is then known to about this.
"""


def joint_start(
    X: Any, y: Array, s: Array, epsilon: float, l2: Any, fit_intercept: bool, scale: float
) -> tuple[Array, float] | None:
    """Coefficients with the constant, (n + 1,), and the scale; None where Newton's method fails."""
    m, n = X.shape
    if not isinstance(X, np.ndarray) or m <= n or X.size > MOST_ENTRIES or not (s > 0).any():
        return None
    mean = (s / s.sum()) @ X if fit_intercept else np.zeros(n)
    A = np.ones((m, n + fit_intercept), order="F")
    np.subtract(X, mean, out=A[:, :n])
    ridge = np.zeros(A.shape[1])
    ridge[:n] = l2
    problem = _Joint(A, y, s, epsilon, ridge)
    v = np.zeros(A.shape[1])
    if fit_intercept:
        v[n] = np.median(y[s > 0])
    with np.errstate(all="ignore"):
        try:
            found = problem.minimise(v, scale)
        except (
            ArithmeticError
        ):  # of Python's numbers: data of extreme size, or a scale that goes to 0
            return None
    if found is None:
        return None
    v, scale = found
    constant = v[n] - mean @ v[:n] if fit_intercept else 0.0
    return np.append(v[:n], constant), scale


class _Joint:
    """The objective in (v, sigma), for a matrix A with a column of ones for the constant."""

    def __init__(self, A: Array, y: Array, s: Array, epsilon: float, ridge: Array):
        self.A, self.y, self.s, self.epsilon, self.ridge = A, y, s, epsilon, ridge
        self.inside = np.zeros(len(y), dtype=bool)
        self.gram = np.zeros((A.shape[1], A.shape[1]))

    def minimise(self, v: Array, scale: float) -> tuple[Array, float] | None:
        """Newton steps with a backtracking line search, from v and a scale."""
        left = self.y - self.A @ v
        value = self._value(v, left, scale)
        for _ in range(MOST_STEPS):
            slope, step = self._step(v, left, scale)
            if not np.isfinite(slope) or slope > 0:
                return None
            change, t = self.A @ step[:-1], 1.0
            while True:
                moved = v + t * step[:-1], left - t * change, scale + t * step[-1]
                lower = self._value(*moved) if moved[2] > 0.1 * scale else np.inf
                if lower <= value + 1e-4 * t * slope + SETTLED * abs(value):
                    break
                t *= 0.5
                if t < 1e-6:
                    return None
            (v, left, scale), value = moved, lower
            if -slope <= SETTLED * abs(value):
                return v, scale
        return None

    def _value(self, v: Array, left: Array, scale: float) -> float:
        size = np.abs(left)
        capped = np.minimum(size, self.epsilon * scale)
        losses = scale + capped * (2.0 * size - capped) / scale
        return float(self.s @ losses + self.ridge @ np.square(v))

    def _step(self, v: Array, left: Array, scale: float) -> tuple[float, Array]:
        """The slope along Newton's step, NaN where there is none, and the step in (v, sigma)."""
        s, most = self.s, self.epsilon * scale
        self._count_in(np.abs(left) <= most)
        pull = s * np.clip(left, -most, most)
        within = s * np.where(self.inside, left, 0.0)
        squares = float(within @ left)
        outside = float(s.sum() - s[self.inside].sum())
        n = len(v)
        gradient, hessian = np.empty(n + 1), np.empty((n + 1, n + 1))
        gradient[:n] = (-2.0 / scale) * (pull @ self.A) + 2.0 * self.ridge * v
        gradient[n] = float(s.sum()) - self.epsilon**2 * outside - squares / scale**2
        hessian[:n, :n] = (2.0 / scale) * self.gram
        hessian[np.arange(n), np.arange(n)] += 2.0 * self.ridge
        hessian[n, :n] = hessian[:n, n] = (2.0 / scale**2) * (within @ self.A)
        hessian[n, n] = 2.0 * squares / scale**3
        _, step, failed = dposv(hessian, -gradient)
        return np.nan if failed else float(gradient @ step), step

    def _count_in(self, inside: Any) -> None:
        """Sum the Gram matrix of the samples in I: again, or where samples came and went."""
        changed = np.flatnonzero(inside != self.inside)
        if 2 * len(changed) > len(inside):
            scaled = self.A * np.sqrt(self.s * inside)[:, None]
            self.gram = scaled.T @ scaled
        else:
            rows = self.A[changed]
            signs = np.where(inside[changed], self.s[changed], -self.s[changed])
            self.gram += rows.T @ (signs[:, None] * rows)
        self.inside = inside
