"""Newton's method on the active set of one instance, as `proxlearn.newton` does it.

Few coordinates: the system is formed, and for least squares kept. Many: conjugate gradients.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from proxlearn.compiled.data import add_rows, by_kind, correlation
from proxlearn.compiled.losses import SQUARES, dloss
from proxlearn.compiled.maths import cholesky, cholesky_solve, compiled, dot, gram, row_dot
from proxlearn.compiled.rule import Separable
from proxlearn.newton import DROPS, HALVINGS, STEPS

MANY = 200
"""Active coordinates from which a system of least squares is not formed."""
FORCING = 0.03
"""Part of the slopes that a step by conjugate gradients may leave."""
PRODUCTS = 15
"""With the Hessian, for such a step."""


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
    iterative: Any
    """True where steps are found by conjugate gradients, (1,)."""
    hard: Any
    """True where these were found to be slow for this instance, (1,)."""


@compiled
def space(K: int, m: int) -> Space:
    """Room for K active coordinates with columns of m numbers."""
    return Space(
        np.empty((K, m)), np.empty((K, K)), np.empty((K, K)), np.empty(K, np.int64),
        np.zeros(1, np.int64), np.zeros(1, np.int64), np.empty(K), np.empty(K), np.empty(K),
        np.empty(K), np.empty(K), np.zeros(1, np.bool_), np.zeros(1, np.bool_),
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
def _model_at(r: Separable, a: Active, k: int, s: Space, c: Any) -> float:
    """The same at the present point, from the slopes there."""
    total = 0.0
    for t in range(k):
        total += 0.5 * a.w[t] * (s.slopes[t] + a.side[t] * r.l1[a.index[t]] - c[t])
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
        start, length, pinned = _model_at(r, a, k, s, c), 1.0, False
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
def newton(d: Any, r: Separable, a: Active, k: int, s: Space, m: int, tol: float) -> float:
    """The same for the logistic loss, where each step has a Hessian of its own.

    And for many coordinates, where it has none and is inexact: until no slope is above `tol` times
    the penalty's.
    """
    slopes, step, moved = s.slopes, s.step, s.moved
    z, u, weight = np.empty(m), np.empty(m), np.ones(m)
    cost, F = 0.0, _piece_value(d, r, a, k, s, a.w, z, u)
    for _ in range(DROPS + STEPS if s.iterative[0] else STEPS):
        if d.loss != SQUARES:
            for i in range(m):
                q = abs(m * u[i])
                weight[i] = q * (1 - q) / m
        for t in range(k):
            slopes[t] = dot(s.columns[t], u) + _slope(r, a, t)
        decrease = 0.0
        if s.iterative[0]:
            if _steepest(r, a, k, slopes) <= tol:
                break
            decrease, products = _conjugate_gradients(r, a, k, s, weight)
            cost += 2 * products * k * m
        else:
            gram(s.columns, weight, 0, k, s.H)
            s.factored[0] = 0
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
        if not (pinned or s.iterative[0]) and decrease <= 0.02 * tol * abs(F):
            break
    return cost


@compiled
def _steepest(r: Separable, a: Active, k: int, slopes: Any) -> float:
    """The largest slope of a live coordinate, relative to the penalty's."""
    largest = 0.0
    for t in range(k):
        if a.live[t]:
            largest = max(largest, abs(slopes[t]) / r.l1[a.index[t]])
    return largest


@compiled
def _conjugate_gradients(
    r: Separable, a: Active, k: int, s: Space, weight: Any
) -> tuple[float, int]:
    """`s.step` with H `s.step` near -`s.slopes` on the live coordinates, H from the columns.

    Returns the decrease that the model promises, negative where `PRODUCTS` with H are not enough,
    and their number.
    """
    columns, q = s.columns[:k], np.empty(len(weight))
    rest, p, Hp = np.empty(k), np.empty(k), np.empty(k)
    for t in range(k):
        s.step[t] = 0.0
        p[t] = rest[t] = -s.slopes[t] if a.live[t] else 0.0
    now = dot(rest, rest)
    target = FORCING * FORCING * now
    for count in range(PRODUCTS + 1):
        if now <= target:
            decrease = 0.0
            for t in range(k):
                decrease -= s.step[t] * s.slopes[t]
            return decrease, count
        if count == PRODUCTS:
            break
        q[:] = 0.0
        add_rows(columns, p, q)
        for i in range(len(q)):
            q[i] *= weight[i]
        for t in range(k):
            Hp[t] = dot(columns[t], q) + r.l2[a.index[t]] * p[t] if a.live[t] else 0.0
        curved = dot(p, Hp)
        if not curved > 0:
            break
        length, last, now = now / curved, now, 0.0
        for t in range(k):
            s.step[t] += length * p[t]
            rest[t] -= length * Hp[t]
            now += rest[t] * rest[t]
        for t in range(k):
            p[t] = rest[t] + now / last * p[t]
    s.hard[0] = True
    return -1.0, PRODUCTS


@compiled
def either(d: Any, r: Separable, a: Active, k: int, s: Space, m: int, tol: float) -> float:
    if d.loss == SQUARES and not s.iterative[0]:
        return squares(d, r, a, k, s, m, tol)
    return newton(d, r, a, k, s, m, tol)


def minimise(d: Any, r: Any, a: Any, k: int, s: Any, m: int, tol: float) -> Any:
    """Minimise F over the k active coordinates; the cost in multiplications."""


by_kind(minimise, either, either, squares)
