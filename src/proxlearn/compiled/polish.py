"""Polish of one instance, as `proxlearn.polish` does it: Newton's method on the active set."""

import math
from typing import Any, NamedTuple

import numpy as np

from proxlearn.compiled.data import by_kind, correlation, dual, grow, value
from proxlearn.compiled.losses import SQUARES, conjugate, dloss, dual_scale, penalty
from proxlearn.compiled.maths import cholesky, cholesky_solve, compiled, dot, gram
from proxlearn.compiled.rule import Separable
from proxlearn.polish import DROPS, HALVINGS, ROUNDS, STEPS

ROUNDING = 8 * 2.0**-52


class Space(NamedTuple):
    """Room for K active coordinates, allocated once."""

    columns: Any
    """(K, m); unused with a Gram matrix."""
    H: Any
    """Their Gram matrix, or the Hessian, (K, K)."""
    work: Any
    """(K, K)"""


class Active(NamedTuple):
    """The active coordinates: places, values, and the side of the kink at 0 (0: no kink).

    `live` are those that may move: not those that were put on a kink and rest there.
    """

    index: Any
    w: Any
    side: Any
    live: Any


@compiled
def objective(d: Any, r: Separable, index: Any, w: Any, columns: Any, u: Any) -> float:
    """F(x) for the x with the values w in the places `index`."""
    f: float = value(d, index, w, columns, u)
    return f + penalty(r, index, w)


@compiled
def lower_bound(d: Any, r: Separable, index: Any, w: Any, u: Any, g: Any) -> float:
    """A lower bound on F*, after `objective`; g = grad f(x)."""
    loss: float = dual(d, r, index, w, u, g)
    return -loss - conjugate(r, g, dual_scale(r, g))


@compiled
def _newton_step(r: Separable, a: Active, k: int, slopes: Any, ridge: float, s: Space, moved: Any,
                 ) -> tuple[float, bool]:  # fmt: skip
    """`moved` = w - H^-1 slopes on the live coordinates, those that cross a kink put on it.

    Returns the decrease that the model promises, negative where H is singular, and whether any
    coordinate was put on a kink, which it then does not leave.
    """
    order, step = np.empty(k, np.int64), np.empty(k)
    alive, largest = 0, 0.0
    for t in range(k):
        largest = max(largest, s.H[t, t])
        moved[t] = a.w[t]
        if a.live[t]:
            order[alive] = t
            alive += 1
    for row in range(alive):
        t = order[row]
        for column in range(row + 1):
            s.work[row, column] = s.H[t, order[column]]
        s.work[row, row] += r.l2[a.index[t]] + ridge * largest
        step[row] = -slopes[t]
    if not cholesky(s.work, alive):
        return -1.0, False
    cholesky_solve(s.work, alive, step)
    decrease, pinned = 0.0, False
    for row in range(alive):
        t = order[row]
        i = a.index[t]
        low = 0.0 if a.side[t] > 0 else r.lower[i]
        high = 0.0 if a.side[t] < 0 else r.upper[i]
        decrease -= step[row] * slopes[t]
        v = a.w[t] + step[row]
        moved[t] = min(max(v, low), high)
        if moved[t] != v:
            a.live[t] = False
            pinned = True
    return decrease, pinned


@compiled
def _slope(r: Separable, a: Active, t: int) -> float:
    """Derivative of the penalty on its piece."""
    i = a.index[t]
    slope: float = a.side[t] * r.l1[i] + r.l2[i] * a.w[t]
    return slope


@compiled
def squares(d: Any, r: Separable, a: Active, k: int, s: Space, m: int, tol: float) -> float:
    """Minimise F over the active coordinates, least squares; the cost in multiplications."""
    slopes, moved, c = np.empty(k), np.empty(k), np.empty(k)
    cost = 0.0
    for t in range(k):
        c[t] = correlation(d, t, a.index[t], s.columns)
    for _ in range(DROPS):
        for t in range(k):
            slopes[t] = dot(s.H[t, :k], a.w[:k]) - c[t] + _slope(r, a, t)
        decrease, pinned = _newton_step(r, a, k, slopes, 1e-13, s, moved)
        cost += k * k * k / 6 + k * m
        if decrease < 0:
            break
        a.w[:k] = moved
        if not pinned:
            break
    return cost


@compiled
def _piece_value(
    d: Any, r: Separable, a: Active, k: int, s: Space, w: Any, z: Any, u: Any
) -> float:
    """F on the present piece; u = grad phi."""
    z[:] = 0.0
    total = 0.0
    for t in range(k):
        v, column, i = w[t], s.columns[t], a.index[t]
        total += a.side[t] * r.l1[i] * v + 0.5 * r.l2[i] * v * v
        if v != 0:
            for j in range(len(z)):
                z[j] += v * column[j]
    return total + dloss(d.loss, z, d.b, u)


@compiled
def logistic(d: Any, r: Separable, a: Active, k: int, s: Space, m: int, tol: float) -> float:
    """The same for the logistic loss, each step with a Hessian of its own."""
    slopes, moved = np.empty(k), np.empty(k)
    z, u, weight = np.empty(m), np.empty(m), np.empty(m)
    cost, F = 0.0, _piece_value(d, r, a, k, s, a.w, z, u)
    for _ in range(STEPS):
        for i in range(m):
            q = abs(m * u[i])
            weight[i] = q * (1 - q) / m
        gram(s.columns, weight, 0, k, s.H)
        for t in range(k):
            slopes[t] = dot(s.columns[t], u) + _slope(r, a, t)
        decrease, pinned = _newton_step(r, a, k, slopes, 1e-9, s, moved)
        cost += m * k * k / 2 + k * k * k / 6 + 2 * k * m
        if decrease < 0:
            break
        new = _piece_value(d, r, a, k, s, moved, z, u)
        for _half in range(HALVINGS):
            if pinned or not new > F:
                break
            for t in range(k):
                moved[t] = 0.5 * (moved[t] + a.w[t])
            new = _piece_value(d, r, a, k, s, moved, z, u)
            cost += k * m
        F = new
        a.w[:k] = moved
        if not pinned and decrease <= 0.02 * tol * abs(F):
            break
    return cost


@compiled
def either(d: Any, r: Separable, a: Active, k: int, s: Space, m: int, tol: float) -> float:
    if d.loss == SQUARES:
        return squares(d, r, a, k, s, m, tol)
    return logistic(d, r, a, k, s, m, tol)


def minimise(d: Any, r: Any, a: Any, k: int, s: Any, m: int, tol: float) -> Any:
    """Minimise F over the k active coordinates; the cost in multiplications."""


by_kind(minimise, either, either, squares)


@compiled
def _side(r: Separable, i: int, w: float) -> float:
    if r.l1[i] == 0:
        return 0.0
    return 1.0 if w > 0 else -1.0


@compiled
def _free(r: Separable, i: int, w: float, g: float) -> bool:
    """True where a coordinate is off its kink and its bounds, or the gradient pushes it off."""
    if w != 0 and w >= r.upper[i]:
        return bool(g + r.l1[i] > 0)
    if w != 0 and w <= r.lower[i]:
        return bool(g - r.l1[i] < 0)
    if w != 0:
        return True
    room = r.upper[i] > 0 if g < 0 else r.lower[i] < 0
    return bool(room and abs(g) > r.l1[i] * (1 + ROUNDING))


@compiled
def _joined(r: Separable, a: Active, k: int, g: Any) -> int:
    """The number of active coordinates with those that the gradient pushes off their kink."""
    listed = np.zeros(len(g), np.bool_)
    for t in range(k):
        i = a.index[t]
        listed[i] = True
        a.live[t] = _free(r, i, a.w[t], g[i])
        if a.w[t] == 0 and a.live[t]:
            a.side[t] = _side(r, i, -g[i])
    for i in range(len(g)):
        if not listed[i] and k < len(a.w) and _free(r, i, 0.0, g[i]):
            a.index[k], a.w[k], a.side[k], a.live[k] = i, 0.0, _side(r, i, -g[i]), True
            k += 1
    return k


@compiled
def polish(
    d: Any, r: Separable, index: Any, w: Any, s: Space, m: int, n: int, tol: float,
    budget: float, entries: float, x: Any,
) -> tuple[float, float, float]:  # fmt: skip
    """From the active coordinates `index` with the values w: F, a lower bound, and the cost.

    The best point found is in x (n,). Cost and budget are in gradients of 2 `entries`
    multiplications.
    """
    K, k, grown = len(s.H), len(index), 0
    a = Active(np.empty(K, np.int64), np.empty(K), np.empty(K), np.ones(K, np.bool_))
    u, g = np.empty(m), np.empty(n)
    for t in range(k):
        i = index[t]
        a.index[t], a.w[t], a.side[t] = i, w[t], _side(r, i, w[t])
        a.live[t] = r.lower[i] < w[t] < r.upper[i]
    best, lower, cost = math.inf, -math.inf, 0.0
    for _ in range(ROUNDS):
        grow(d, a.index, grown, k, s.columns, s.H)
        if d.loss == SQUARES:
            cost += m * (k - grown) * (k + grown) / 2 / (2 * entries)
        grown = k
        cost += minimise(d, r, a, k, s, m, tol) / (2 * entries) + 0.5
        F = objective(d, r, a.index[:k], a.w[:k], s.columns[:k], u)
        lower = max(lower, lower_bound(d, r, a.index[:k], a.w[:k], u, g))
        if not best > F:
            break
        best = F
        x[:] = 0.0
        for t in range(k):
            x[a.index[t]] = a.w[t]
        if best - lower <= tol * abs(best) or cost > budget:
            break
        k = _joined(r, a, k, g)
        if k == K:
            break
    return best, lower, cost
