"""Polish of one instance, as `proxlearn.polish` does it: Newton's method on the active set."""

import math
from typing import Any, NamedTuple

import numpy as np

from proxlearn.compiled.data import by_kind, correlation, dual, grow, pull, value
from proxlearn.compiled.losses import SQUARES, conjugate, dloss, dual_scale, penalty
from proxlearn.compiled.maths import cholesky, cholesky_solve, compiled, dot, gram, row_dot
from proxlearn.compiled.rule import Separable
from proxlearn.newton import DROPS, HALVINGS, STEPS
from proxlearn.polish import ROUNDS

NEAR = 0.9
"""Scaling of a dual point from which its bound is worth knowing, where rounds are cheap."""
ROUNDING = 8 * 2.0**-52


class Space(NamedTuple):
    """Room for K active coordinates, allocated once."""

    columns: Any
    """(K, m); unused with a Gram matrix."""
    H: Any
    """Their Gram matrix, or the Hessian, (K, K)."""
    factor: Any
    """The Cholesky factor of the part of H that is in `order`, (K, K)."""
    order: Any
    """The coordinates that were factored, in their order, (K,)."""
    factored: Any
    """How many they are, (1,)."""
    kept: Any
    """How many rows of the factor before it were used again, (1,)."""
    slopes: Any
    step: Any
    moved: Any
    c: Any
    some: Any
    """(K,) each"""


@compiled
def space(K: int, m: int) -> Space:
    """Room for K active coordinates with columns of m numbers."""
    return Space(
        np.empty((K, m)), np.empty((K, K)), np.empty((K, K)), np.empty(K, np.int64),
        np.zeros(1, np.int64), np.zeros(1, np.int64), np.empty(K), np.empty(K), np.empty(K),
        np.empty(K), np.empty(K),
    )  # fmt: skip


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
def lower_bound(
    d: Any, r: Separable, plain: bool, index: Any, w: Any, u: Any, g: Any, near: float
) -> float:
    """A lower bound on F*, after `objective`; g = grad f(x). `plain` is an l1 penalty.

    None, for short, where the dual point would have to be scaled by less than `near`.
    """
    uu, ub = pull(d, index, w, u, g)
    s = dual_scale(r, g)
    if s < near:
        return -math.inf
    loss: float = dual(d, u, s, uu, ub)
    return -loss - (0.0 if plain else conjugate(r, g, s))


@compiled
def _newton_step(r: Separable, a: Active, k: int, ridge: float, s: Space) -> float:
    """`s.step` = -H^-1 `s.slopes` on the live coordinates, 0 on the others.

    What is left of the last factor, its first rows up to the first change, is used again. Returns
    the decrease that the model promises, negative where H is singular.
    """
    same, alive, largest = True, 0, 0.0
    kept = 0
    for t in range(k):
        largest = max(largest, s.H[t, t])
        s.step[t] = 0.0
        if a.live[t]:
            same = same and alive < s.factored[0] and s.order[alive] == t
            kept += same
            s.order[alive] = t
            s.some[alive] = -s.slopes[t]
            alive += 1
    for row in range(kept, alive):
        t = s.order[row]
        for column in range(row + 1):
            s.factor[row, column] = s.H[t, s.order[column]]
        s.factor[row, row] += r.l2[a.index[t]] + ridge * largest
    s.factored[0], s.kept[0] = 0, kept
    if not cholesky(s.factor, alive, kept):
        return -1.0
    s.factored[0] = alive
    cholesky_solve(s.factor, alive, s.some)
    decrease = 0.0
    for row in range(alive):
        t = s.order[row]
        s.step[t] = s.some[row]
        decrease -= s.some[row] * s.slopes[t]
    return decrease


@compiled
def _ends(r: Separable, a: Active, t: int) -> tuple[float, float]:
    """The interval on which the penalty of a coordinate is smooth."""
    i = a.index[t]
    return (0.0 if a.side[t] > 0 else r.lower[i]), (0.0 if a.side[t] < 0 else r.upper[i])


@compiled
def _along(r: Separable, a: Active, k: int, step: Any, length: float, moved: Any) -> bool:
    """`moved` = w + length step, coordinates staying on kinks they reach; True if any did."""
    out = False
    for t in range(k):
        low, high = _ends(r, a, t)
        v = a.w[t] + length * step[t]
        moved[t] = min(max(v, low), high) if a.live[t] else a.w[t]
        out = out or (a.live[t] and moved[t] != v)
    return out


@compiled
def _to_first_kink(r: Separable, a: Active, k: int, step: Any, moved: Any) -> None:
    """`moved` = the point on the way to w + step where the first coordinate reaches a kink."""
    length, first, there = 1.0, -1, 0.0
    for t in range(k):
        low, high = _ends(r, a, t)
        end = high if step[t] > 0 else low
        if a.live[t] and step[t] != 0 and (end - a.w[t]) / step[t] < length:
            length, first, there = max((end - a.w[t]) / step[t], 0.0), t, end
    _along(r, a, k, step, length, moved)
    if first >= 0:
        moved[first] = there  # exactly


@compiled
def _settle(r: Separable, a: Active, k: int, step: Any, moved: Any) -> None:
    """Go to `moved`. Who arrived at a kink while going there rests."""
    for t in range(k):
        low, high = _ends(r, a, t)
        if a.live[t] and ((moved[t] == low and step[t] < 0) or (moved[t] == high and step[t] > 0)):
            a.live[t] = False
        a.w[t] = moved[t]


@compiled
def _slope(r: Separable, a: Active, t: int) -> float:
    """Derivative of the penalty on its piece."""
    i = a.index[t]
    slope: float = a.side[t] * r.l1[i] + r.l2[i] * a.w[t]
    return slope


@compiled
def _model(r: Separable, a: Active, k: int, s: Space, c: Any, w: Any) -> float:
    """F on the present piece, but for a constant: least squares."""
    total = 0.0
    for t in range(k):
        i = a.index[t]
        linear = a.side[t] * r.l1[i] - c[t] + 0.5 * r.l2[i] * w[t]
        total += w[t] * (0.5 * row_dot(s.H, t, w, k) + linear)
    return total


@compiled
def squares(d: Any, r: Separable, a: Active, k: int, s: Space, m: int, tol: float) -> float:
    """Minimise F over the active coordinates, least squares; the cost in multiplications.

    On the way of a step coordinates stay on the kinks that they reach. Where that leads uphill the
    step is halved; the last resort is its way up to the first kink.
    """
    slopes, step, moved, c = s.slopes, s.step, s.moved, s.c
    cost = 0.0
    for t in range(k):
        c[t] = correlation(d, t, a.index[t], s.columns)
    for _ in range(k + DROPS):
        for t in range(k):
            slopes[t] = row_dot(s.H, t, a.w, k) - c[t] + _slope(r, a, t)
        decrease = _newton_step(r, a, k, 1e-13, s)
        cost += (k * k * k - s.kept[0] ** 3) / 6 + k * m
        if decrease < 0:
            break
        start, length, pinned = _model(r, a, k, s, c, a.w), 1.0, False
        for attempt in range(HALVINGS + 1):
            pinned = _along(r, a, k, step, length, moved)
            if attempt == HALVINGS:
                _to_first_kink(r, a, k, step, moved)
            if not pinned or _model(r, a, k, s, c, moved) <= start:
                break
            length *= 0.5
        _settle(r, a, k, step, moved)
        if not pinned and length == 1:
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
    slopes, step, moved = s.slopes, s.step, s.moved
    z, u, weight = np.empty(m), np.empty(m), np.empty(m)
    cost, F = 0.0, _piece_value(d, r, a, k, s, a.w, z, u)
    for _ in range(STEPS):
        for i in range(m):
            q = abs(m * u[i])
            weight[i] = q * (1 - q) / m
        gram(s.columns, weight, 0, k, s.H)
        s.factored[0] = 0
        for t in range(k):
            slopes[t] = dot(s.columns[t], u) + _slope(r, a, t)
        decrease = _newton_step(r, a, k, 1e-9, s)
        cost += m * k * k / 2 + k * k * k / 6 + 2 * k * m
        if decrease < 0:
            break
        pinned, length, new = False, 1.0, math.inf
        for attempt in range(HALVINGS + 1):
            pinned = _along(r, a, k, step, length, moved)
            if attempt == HALVINGS:
                _to_first_kink(r, a, k, step, moved)
            new = _piece_value(d, r, a, k, s, moved, z, u)
            cost += k * m
            if new <= F:
                break
            length *= 0.5
        if not new <= F:
            break
        F = new
        _settle(r, a, k, step, moved)
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
def _joined(r: Separable, a: Active, k: int, g: Any, listed: Any, share: float) -> int:
    """The number of active coordinates with those that the gradient pushes off their kinks.

    Of those that were not active only the ones that are pushed hardest join: by at least `share` of
    the hardest push.
    """
    pushes, hardest = np.empty(len(g)), 0.0
    for i in range(len(g)):
        room = r.upper[i] if g[i] < 0 else -r.lower[i]
        push = abs(g[i]) - r.l1[i] * (1 + ROUNDING)
        pushes[i] = -1.0 if listed[i] or room <= 0 else push
    for i in range(len(g)):
        hardest = max(hardest, pushes[i])
    for t in range(k):
        i = a.index[t]
        a.live[t] = _free(r, i, a.w[t], g[i])
        if a.w[t] == 0 and a.live[t]:
            a.side[t] = _side(r, i, -g[i])
    for i in range(len(g)):
        if pushes[i] > 0 and pushes[i] >= share * hardest and k < len(a.w):
            a.index[k], a.w[k], a.side[k], a.live[k] = i, 0.0, _side(r, i, -g[i]), True
            listed[i] = True
            k += 1
    return k


@compiled
def polish(
    d: Any, r: Separable, plain: bool, index: Any, w: Any, s: Space, m: int, n: int, tol: float,
    budget: float, entries: float, share: float, x: Any,
) -> tuple[float, float, float]:  # fmt: skip
    """From the active coordinates `index` with the values w: F, a lower bound, and the cost.

    The best point found is in x (n,). Cost and budget are in gradients of 2 `entries`
    multiplications. `share`: see `_joined`.
    """
    K, k, grown = len(s.H), len(index), 0
    a = Active(np.empty(K, np.int64), np.empty(K), np.empty(K), np.ones(K, np.bool_))
    u, g, listed = np.empty(m), np.empty(n), np.zeros(n, np.bool_)
    for t in range(k):
        i = index[t]
        a.index[t], a.w[t], a.side[t] = i, w[t], _side(r, i, w[t])
        a.live[t], listed[i] = r.lower[i] < w[t] < r.upper[i], True
    s.factored[0] = 0
    best, lower, cost, kept, point = math.inf, -math.inf, 0.0, 0, np.empty(K)
    for _ in range(ROUNDS):
        if k > 0:
            grow(d, a.index, grown, k, s.columns, s.H)
            if d.loss == SQUARES:
                cost += m * (k - grown) * (k + grown) / 2 / (2 * entries)
            grown = k
            cost += minimise(d, r, a, k, s, m, tol) / (2 * entries)
        F = objective(d, r, a.index[:k], a.w[:k], s.columns[:k], u)
        near = 0.0 if share == 0 else NEAR
        bound = lower_bound(d, r, plain, a.index[:k], a.w[:k], u, g, near)
        cost += 0.5
        lower = max(lower, bound)
        if not best > F:
            break
        best, kept = F, k
        for t in range(k):
            point[t] = a.w[t]
        if best - lower <= tol * abs(best) or cost > budget:
            break
        k = _joined(r, a, k, g, listed, share)
        if k == K and k < n:
            break
    x[:] = 0.0
    for t in range(kept):
        x[a.index[t]] = point[t]
    return best, lower, cost
