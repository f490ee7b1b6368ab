"""An iteration after its gradient: what the rule chooses, the prox, the momentum.

The same equations as `rules.compact.CompactRule`, `rules.classic.Fista` and `scheme.Scheme`, for
one instance in float32, in pieces of a few coordinates that stay in the nearest cache.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from proxlearn.compiled.maths import F, compiled, exp32, log32
from proxlearn.compiled.network import PIECE, UNITS, layer
from proxlearn.rules.compact import COORDINATE, INSTANCE, LEAST_LOG_P


class Weights(NamedTuple):
    """Those of a compact rule, float32; units that are missing to a tile have weights of 0."""

    coordinate: Any
    """(COORDINATE, H)"""
    instance: Any
    """(INSTANCE, H)"""
    first: Any
    """(H,)"""
    hidden: Any
    """(H, H)"""
    second: Any
    """(H,)"""
    head: Any
    """(H, UNITS), the first two columns for p and a"""
    last: Any
    """(UNITS,)"""
    largest_log_p: float


class Point(NamedTuple):
    """An iteration's vectors, (n,) float32."""

    x: Any
    y: Any
    g: Any
    """grad f(y)"""
    last_y: Any
    last_g: Any


class Separable(NamedTuple):
    """r(x) = sum_i l1_i |x_i| + l2_i x_i^2/2 on lower_i <= x_i <= upper_i, each (n,)."""

    l1: Any
    l2: Any
    lower: Any
    upper: Any


@compiled
def _spread(part: Any, i: int, first: bool, row: Any) -> None:
    """`row` (n,) = the instance i of a `part` that is (B, n), (B, 1), (1, n) or (1, 1)."""
    if first or len(part) > 1:
        i, one = i if len(part) > 1 else 0, part.shape[1] == 1
        for j in range(len(row)):
            row[j] = part[i, 0 if one else j]


@compiled
def penalty_of(r: Separable, i: int, first: bool, one: Separable) -> None:
    """`one` = the penalty of the instance i. What all share is there after the first."""
    _spread(r.l1, i, first, one.l1)
    _spread(r.l2, i, first, one.l2)
    _spread(r.lower, i, first, one.lower)
    _spread(r.upper, i, first, one.upper)


class Room(NamedTuple):
    """Space for the rule, allocated once."""

    units: Any
    one: Any
    two: Any
    out: Any


@compiled
def room(H: int) -> Room:
    """Space for a rule of H units."""
    return Room(
        np.zeros((COORDINATE, PIECE), np.float32),
        np.empty((H, PIECE), np.float32),
        np.empty((H, PIECE), np.float32),
        np.empty((UNITS, PIECE), np.float32),
    )


@compiled
def curvature(at: Point) -> tuple[float, float, float, int]:
    """<dy, dg>, |dy|^2 and |dg|^2 for the last step, and the non-zeros of x."""
    dot, dy2, dg2 = F(0), F(0), F(0)
    count = 0
    x, y, g, last_y, last_g = at.x, at.y, at.g, at.last_y, at.last_g
    for i in range(len(x)):
        dy, dg = y[i] - last_y[i], g[i] - last_g[i]
        dot += dy * dg
        dy2 += dy * dy
        dg2 += dg * dg
        count += x[i] != 0
    return float(dot), float(dy2), float(dg2), count


@compiled
def instance_bias(w: Weights, k: int, s: float, n: int, bends: Any, bias: Any) -> None:
    """The first layer's bias, (H,), with the inputs that all coordinates share."""
    dot, dy2, dg2, count = bends
    along = across = 0.0
    if k > 0:
        dot = max(dot, 0.0)
        along = math.log(s * dot / max(dy2, 1e-38) + 1e-4)
        across = min(math.log(dot / max(s * dg2, 1e-38) + 1e-4), 10.0)
    inputs = (math.log1p(k), 1 / (1 + k), math.log(count / n + 1e-3), along, across)
    for h in range(len(bias)):
        bias[h] = w.first[h]
        for j in range(INSTANCE):
            bias[h] += w.instance[j, h] * inputs[j]


@compiled
def moving(at: Point, r: Separable, index: Any) -> int:
    """The coordinates that an iteration can move, in `index`; their number.

    Where x_i = y_i = 0 and |g_i| <= l1_i, prox(y - p g) = 0 whatever p is, and so is y+. What a
    rule says there does not matter, so it is not asked.
    """
    count = 0
    for i in range(len(index)):
        if at.x[i] != 0 or at.y[i] != 0 or abs(at.g[i]) > r.l1[i]:
            index[count] = i
            count += 1
    return count


@compiled
def compact(
    w: Weights, at: Point, index: Any, level: Any, s: float, bias: Any, fresh: bool, space: Room
) -> None:
    """p and a of the coordinates `index`, at most `PIECE` of them, in `space.out`."""
    size = len(index)
    u0, u1, u2, u3 = space.units[0], space.units[1], space.units[2], space.units[3]
    inverse = F(1 / s)
    for j in range(size):
        i = index[j]
        scale = F(1) / level[i]
        u0[j] = at.g[i] * scale
        u1[j] = at.y[i] * scale * inverse
        u2[j] = (at.y[i] - at.x[i]) * scale * inverse
        u3[j] = F(0) if fresh else (at.g[i] - at.last_g[i]) * scale
    for c in range(COORDINATE):
        u = space.units[c]
        for j in range(size):
            t = log32(F(1) + abs(u[j]))
            u[j] = t if u[j] >= 0 else -t
    layer(w.coordinate, space.units, bias, size, space.one, 0.0)
    layer(w.hidden, space.one, w.second, size, space.two, 0.0)
    layer(w.head, space.two, w.last, size, space.out, -math.inf)
    p, a = space.out[0], space.out[1]
    least, most, step = F(LEAST_LOG_P), F(w.largest_log_p), F(s)
    for j in range(size):
        p[j] = step * exp32(min(max(p[j], least), most))
        a[j] = F(1) / (F(1) + exp32(-a[j]))


@compiled
def advance(
    at: Point, r: Separable, index: Any, p: Any, a: Any, x_new: Any, y_new: Any
) -> tuple[float, float, float, float]:
    """x+ = prox_{r,p}(y - p g) and y+ = x+ + a (x+ - x) for the coordinates `index`.

    Returns r(x+), <g, x+ - y>, |x+ - y|^2 and <y - x+, x+ - x> of these coordinates.
    """
    value, linear, square, against = F(0), F(0), F(0), F(0)
    for j in range(len(index)):
        i = index[j]
        v, t = at.y[i] - p[j] * at.g[i], p[j] * r.l1[i]
        v = max(v - t, F(0)) + min(v + t, F(0))
        v = min(max(v / (F(1) + p[j] * r.l2[i]), r.lower[i]), r.upper[i])
        d = v - at.y[i]
        value += r.l1[i] * abs(v) + F(0.5) * r.l2[i] * v * v
        linear += at.g[i] * d
        square += d * d
        against -= d * (v - at.x[i])
        x_new[i] = v
        y_new[i] = v + a[j] * (v - at.x[i])
    return float(value), float(linear), float(square), float(against)
