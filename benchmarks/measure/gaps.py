"""Duality gaps in float64, one function for each loss, whatever solver gave the answer.

    squares    1/2 |X w + c - y|^2 + lam |w|_1 + l2/2 |w|^2,  with w >= 0 if positive
    logistic   1/m sum_i log(1 + exp(-y_i (x_i^T w + c))) + lam |w|_1,  y_i in {-1, 1}

A dual point is built from the answer alone and scaled by the number that makes its bound best, so
`gap / F` is at least the relative suboptimality `(F - F*) / F`. An intercept c adds the constraint
that the dual point is orthogonal to the vector of ones.
"""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import entr, expit

NEWTON_STEPS = 100
"""Steps for the best intercept of given coefficients; about five are needed."""


def squares(X, y, w, c, lam, l2=0.0, positive=False, intercept=False) -> float:
    """The relative duality gap of least squares with a separable penalty."""
    if not np.isfinite(w).all() or not np.isfinite(c) or (positive and w.min() < 0):
        return np.inf
    r = y - X @ w - c
    F = 0.5 * r @ r + lam * np.abs(w).sum() + 0.5 * l2 * w @ w
    theta = r - r.mean() if intercept else r
    forces = X.T @ theta
    sizes = np.maximum(forces, 0) if positive else np.abs(forces)
    ty, tt = theta @ y, theta @ theta

    def bound(s: float) -> float:
        value = s * ty - 0.5 * s * s * tt
        if l2 > 0:
            value -= np.square(np.maximum(s * sizes - lam, 0)).sum() / (2 * l2)
        return value

    best = max(ty / tt, 0.0) if tt > 0 else 0.0
    if l2 == 0:
        feasible = lam / sizes.max() if sizes.max() > 0 else np.inf
        return _relative(F, bound(min(best, feasible)))
    return _relative(F, max(bound(1.0), _largest(bound, best)))


def logistic(X, y, w, c, lam, intercept=False) -> float:
    """The relative duality gap of l1 logistic regression with labels -1 and 1."""
    if not np.isfinite(w).all() or not np.isfinite(c):
        return np.inf
    z = X @ w
    F = np.logaddexp(0, -y * (z + c)).mean() + lam * np.abs(w).sum()
    t = balanced(y, z, c) if intercept else expit(-y * (z + c))
    forces = np.abs(X.T @ (y * t)) / len(y)
    limit = 1 / t.max() if t.max() > 0 else 0.0
    if forces.max() > 0:
        limit = min(limit, lam / forces.max())

    def bound(s: float) -> float:
        u = np.minimum(s * t, 1.0)
        return float((entr(u) + entr(1 - u)).mean())

    u = np.clip(limit * t, 1e-300, 1 - 1e-16)
    if t @ np.log((1 - u) / u) >= 0:  # the concave bound still rises at the largest feasible s
        return _relative(F, bound(limit))
    return _relative(F, _largest(bound, limit))


def balanced(y: np.ndarray, z: np.ndarray, c: float) -> np.ndarray:
    """Dual variables in [0, 1] with sum(y * t) = 0, from predictions z without intercept.

    Newton's method finds the intercept that is best for z, where the sum is zero up to rounding.
    Scaling down the class with the larger sum removes the rest.
    """
    for _ in range(NEWTON_STEPS):
        t = expit(-y * (z + c))
        curvature = (t * (1 - t)).sum()
        if curvature <= 0:
            break
        step = np.clip((y * t).sum() / curvature, -2, 2)
        c += step
        if abs(step) <= 1e-14 * max(1.0, abs(c)):
            break
    t = expit(-y * (z + c))
    up, down = t[y > 0].sum(), t[y < 0].sum()
    if up > down:
        return np.where(y > 0, t * (down / up), t)
    return np.where(y < 0, t * (up / down), t) if down > 0 else t


def _largest(bound, limit: float) -> float:
    """The maximum over [0, limit] of a concave function of one number."""
    if not limit > 0:
        return bound(0.0)
    found = minimize_scalar(
        lambda s: -bound(s), bounds=(0, limit), method="bounded", options={"xatol": 1e-10 * limit}
    )
    return bound(found.x)


def _relative(F: float, bound: float) -> float:
    gap = max(F - bound, 0.0)
    return float(gap / F) if F > 0 else (0.0 if gap == 0 else np.inf)


def largest_lam(X, y, loss: str, positive=False, intercept=False) -> float:
    """The smallest lam at which all coefficients are zero."""
    if loss == "squares":
        forces = X.T @ (y - y.mean() if intercept else y)
        return float(forces.max() if positive else np.abs(forces).max())
    share = (y > 0).mean() if intercept else 0.5
    return float(np.abs(X.T @ ((y > 0) - share)).max() / len(y))
