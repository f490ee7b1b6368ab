"""Losses, the dual of the penalty, and the bound that both give: for one instance."""

import math
from typing import Any

from proxlearn.compiled.maths import F, compiled, exp32, log32
from proxlearn.compiled.rule import Separable

SQUARES, LOGISTIC = 0, 1
PIECE = 128
"""Numbers that are added in float32: longer sums are not exact enough to see the end."""


@compiled
def dloss32(loss: int, z: Any, b: Any, m: int, u: Any) -> tuple[float, float, float]:
    """u = grad phi(z) for some of the m rows, float32; phi, |u|^2 and <u, b> of these rows."""
    value = uu = ub = 0.0
    inverse = F(1 / m)
    for first in range(0, len(z), PIECE):
        end = min(first + PIECE, len(z))
        one = two = F(0)
        if loss == SQUARES:
            for i in range(first, end):
                u[i] = z[i] - b[i]
                one += u[i] * u[i]
                two += u[i] * b[i]
            uu += float(one)
            ub += float(two)
        else:
            for i in range(first, end):
                sign = F(1) - F(2) * b[i]
                t = sign * z[i]
                e = exp32(-abs(t))
                one += max(t, F(0)) + log32(F(1) + e)
                u[i] = sign * inverse * ((F(1) if t >= 0 else e) / (F(1) + e))
            value += float(one)
    return (0.5 * uu if loss == SQUARES else value / m), uu, ub


@compiled
def dloss(loss: int, z: Any, b: Any, u: Any) -> float:
    """u = grad phi(z) and phi(z), float64."""
    total, m = 0.0, len(z)
    if loss == SQUARES:
        for i in range(m):
            u[i] = z[i] - b[i]
            total += u[i] * u[i]
        return 0.5 * total
    for i in range(m):
        sign = 1 - 2 * b[i]
        t = sign * z[i]
        e = math.exp(-abs(t))
        total += max(t, 0.0) + math.log1p(e)
        u[i] = sign / m * ((1.0 if t >= 0 else e) / (1 + e))
    return total / m


@compiled
def dual_loss32(loss: int, u: Any, b: Any, s: float, uu: float, ub: float) -> float:
    """phi*(s u), float32: to know when it is worth to know it exactly."""
    if loss == SQUARES:
        return 0.5 * s * s * uu + s * ub
    m, total = len(u), 0.0
    scale, tiny = F(m * s), F(1e-30)
    for first in range(0, m, PIECE):
        part = F(0)
        for i in range(first, min(first + PIECE, m)):
            q = max((F(1) - F(2) * b[i]) * scale * u[i], tiny)
            rest = max(F(1) - q, tiny)
            part += q * log32(q) + rest * log32(rest)
        total += float(part)
    return total / m


@compiled
def dual_loss(loss: int, u: Any, b: Any, s: float) -> float:
    """phi*(s u), float64."""
    m, total = len(u), 0.0
    if loss == SQUARES:
        for i in range(m):
            total += s * u[i] * (0.5 * s * u[i] + b[i])
        return total
    for i in range(m):
        q = (1 - 2 * b[i]) * m * s * u[i]  # the probability of the wrong label
        if q > 0:
            total += q * math.log(q)
        if q < 1:
            total += (1 - q) * math.log1p(-q)
    return total / m


@compiled
def dual_scale(r: Separable, g: Any) -> float:
    """The largest s in [0, 1] with -s g in the domain of r*."""
    s = 1.0
    for i in range(len(g)):
        size = abs(g[i])
        if size * s > r.l1[i] and r.l2[i] == 0:
            end = r.upper[i] if g[i] < 0 else -r.lower[i]
            if end == math.inf:
                s = r.l1[i] / size
    return s


@compiled
def conjugate(r: Separable, g: Any, s: float) -> float:
    """r*(-s g), s as above: each coordinate's best w for v w - r(w) is explicit."""
    total = 0.0
    for i in range(len(g)):
        v = -s * g[i]
        q = max(v - r.l1[i], 0.0) + min(v + r.l1[i], 0.0)
        w = 0.0
        if r.l2[i] > 0:
            w = q / r.l2[i]
        elif abs(q) > 1e-12 * r.l1[i]:
            w = r.upper[i] if q > 0 else r.lower[i]
            w = 0.0 if math.isinf(w) else w  # on the edge of the domain, but for rounding
        w = min(max(w, r.lower[i]), r.upper[i])
        total += v * w - r.l1[i] * abs(w) - 0.5 * r.l2[i] * w * w
    return total


@compiled
def penalty(r: Separable, index: Any, w: Any) -> float:
    """r(x) of the x that has the values w in the places `index`."""
    total = 0.0
    for t in range(len(index)):
        i = index[t]
        total += r.l1[i] * abs(w[t]) + 0.5 * r.l2[i] * w[t] * w[t]
    return total
