"""The path of minimisers from x = 0 to the penalty that is asked for, with a Gram matrix.

With the penalty t l1 in place of l1 the minimiser is piecewise linear in t (homotopy, LARS). On a
piece with the active coordinates A, their signs s and H = G + diag(l2),

    x_A = u - t v,      u = H_AA^-1 c_A,   v = H_AA^-1 (l1 s)_A,
    c - G x = p + t a,  p = c - G_A^T u,   a = G_A^T v             elsewhere,

and it ends where one joins, |p + t a| = t l1, or leaves, u = t v. All of this follows from k rows M
with M^T M = H_AA^-1, and W = M G_A. The tableau T (ROWS + K, n) has M in the columns A, W in the
others. Who joins adds a row, by Gram and Schmidt; who leaves takes one.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from proxlearn.compiled.data import Gram, by_kind, gram_dual, gram_pull, gram_value
from proxlearn.compiled.losses import conjugate, dual_scale, penalty
from proxlearn.compiled.maths import F, bits, compiled, number
from proxlearn.compiled.rule import Separable

P, Q, LIMIT, SIDE, SPARE, ROWS = range(6)
"""Rows of T: p, or -u where active; a, or v; l1, or 0; the sign, or 0 where it may be either; a
spare one; the first of M and W. One array, since to pass many to a function takes as long as it."""
SINGULAR = 1e-9
"""Part of a column's square that must be left outside the span of the active ones."""
PARALLEL = 1e-9
"""Part of l1 by which a bound must come nearer for its coordinate to join."""
STEPS, NUMBERS = 1000, 2**16
"""Of a path, and in M and W, after which it is given up: beyond the cache a polish is faster."""
PLACES = 2047
"""The last bits of a number, in which a place fits."""


class Tableau(NamedTuple):
    """T with room for K active coordinates; these in any order (K,), their values (K,)."""

    T: Any
    active: Any
    w: Any


@compiled
def tableau(most: int, n: int) -> Tableau:
    """Room for at most so many active coordinates among n."""
    K = min(most, NUMBERS // n)
    return Tableau(np.empty((ROWS + K, n)), np.empty(K, np.int64), np.empty(K))


@compiled
def _event(T: Any, p: float, q: float, i: int) -> Any:
    """The t at which coordinate i meets its bound, |p + t q| = t LIMIT, and i, in one number.

    Positive numbers are in the order of their bits, of which the last hold i: then the search for
    the largest is a loop over vectors. 0 where it comes no nearer to the bound.
    """
    sign = T[SIDE, i]
    if sign == 0:
        sign = 1.0 if p >= 0 else -1.0
    nearer = T[LIMIT, i] - sign * q
    t = sign * p / nearer if nearer > PARALLEL * T[LIMIT, i] else 0.0
    return (bits(t) & ~PLACES) | i


@compiled
def _first(T: Any, n: int) -> Any:
    """The event with the largest t."""
    best = np.int64(0)
    for i in range(n):
        best = max(best, _event(T, T[P, i], T[Q, i], i))
    return best


@compiled
def _join(T: Any, G: Any, l2: float, active: Any, k: int, j: int, n: int) -> Any:
    """Coordinate j becomes the k-th active one; the next event, or -1 where the others span it."""
    row, whole = ROWS + k, ROWS + k - k % 4
    for i in range(n):
        T[row, i] = G[j, i]
    T[row, j] += l2
    least = SINGULAR * T[row, j]
    for e in range(k):
        T[row, active[e]] = 0.0
    for q in range(ROWS, whole, 4):
        f0, f1, f2, f3 = T[q, j], T[q + 1, j], T[q + 2, j], T[q + 3, j]
        for i in range(n):
            T[row, i] -= f0 * T[q, i] + f1 * T[q + 1, i] + f2 * T[q + 2, i] + f3 * T[q + 3, i]
    for q in range(whole, row):
        f0 = T[q, j]
        for i in range(n):
            T[row, i] -= f0 * T[q, i]
    if not T[row, j] > least:
        return -1
    scale = 1 / math.sqrt(T[row, j])
    for q in range(ROWS, row):
        T[q, j] = 0.0
    sign = T[SIDE, j]
    if sign == 0:
        sign = 1.0 if T[P, j] >= 0 else -1.0
    y, v = scale * T[P, j], scale * (sign * T[LIMIT, j] - T[Q, j])
    T[row, j], T[P, j], T[Q, j], T[LIMIT, j], T[SIDE, j] = 1.0, 0.0, 0.0, 0.0, sign
    active[k], best = j, np.int64(0)
    for i in range(n):
        e = scale * T[row, i]
        p, q = T[P, i] - y * e, T[Q, i] + v * e
        T[row, i], T[P, i], T[Q, i] = e, p, q
        best = max(best, _event(T, p, q, i))
    return best


@compiled
def _leave(T: Any, G: Any, c: Any, active: Any, k: int, d: int, n: int) -> None:
    """Coordinate d leaves the k active ones.

    A reflection of the rows makes their column d a multiple of the last unit vector; then the last
    row goes.
    """
    last, square = ROWS + k - 1, 0.0
    for i in range(n):
        T[SPARE, i] = 0.0
    for q in range(ROWS, last + 1):
        f = T[q, d]
        square += f * f
        for i in range(n):
            T[SPARE, i] += f * T[q, i]
    length = math.copysign(math.sqrt(square), T[last, d])
    y, v, end = T[P, d] / square, T[Q, d] / square, length + T[last, d]
    for i in range(n):
        T[P, i] -= y * T[SPARE, i]
        T[Q, i] -= v * T[SPARE, i]
        T[SPARE, i] = T[SPARE, i] / length + T[last, i]
    for e in range(k):
        if active[e] == d:
            active[e] = active[k - 1]
    for q in range(ROWS, last):
        f = T[q, d] / end
        for i in range(n):
            T[q, i] -= f * T[SPARE, i]
    T[P, d], T[Q, d] = c[d], 0.0
    for q in range(ROWS, last):
        T[q, d] = 0.0
    for e in range(k - 1):
        i = active[e]
        T[P, d] += G[d, i] * T[P, i]
        T[Q, d] += G[d, i] * T[Q, i]
        for q in range(ROWS, last):
            T[q, d] += G[d, i] * T[q, i]


@compiled
def _fits(r: Separable) -> bool:
    """True where every coordinate has a kink at 0, and no bounds but perhaps 0."""
    fit = 0
    for i in range(len(r.l1)):
        below = (r.lower[i] == 0) | (r.lower[i] == -math.inf)
        fit += (r.l1[i] > 0) & (r.upper[i] == math.inf) & below
    return fit == len(r.l1)


@compiled
def _is_zero(x: Any) -> bool:
    others = 0
    for i in range(len(x)):
        others += x[i] != 0
    return others == 0


@compiled
def _follow(d: Gram, r: Separable, a: Tableau) -> tuple[int, float]:
    """The number of non-zeros, -1 where the path was given up, and the multiplications.

    The non-zeros are a.w in the places a.active.
    """
    G, c, T, active, n = d.G, d.c, a.T, a.active, len(d.c)
    for i in range(n):
        T[P, i], T[Q, i], T[LIMIT, i] = c[i], 0.0, r.l1[i]
        T[SIDE, i] = 0.0 if r.lower[i] < 0 else 1.0
    k, cost, event = 0, 0.0, _first(T, n)
    for _ in range(STEPS):
        j = event & PLACES
        t, joins = number(event - j), T[LIMIT, min(j, n - 1)] > 0
        if t <= 1:
            for e in range(k):
                i = active[e]
                a.w[e] = T[SIDE, i] * max(-T[SIDE, i] * (T[P, i] + T[Q, i]), 0.0)
            return k, cost
        if not t < math.inf or (joins and k == len(active)):
            break
        if joins:
            cost += (k + 4) * n
            event = _join(T, G, r.l2[j], active, k, j, n)
            k += 1
        else:
            cost += (2 * k + 4) * n + k * k
            _leave(T, G, c, active, k, j, n)
            T[LIMIT, j], T[SIDE, j] = r.l1[j], 0.0 if r.lower[j] < 0 else 1.0
            event = _first(T, n)
            k -= 1
    return -1, cost


@compiled
def gram_path(
    d: Gram, r: Separable, plain: bool, tol: float, rounded: bool, a: Tableau, answer: Any
) -> tuple[bool, float, float, float]:
    if not (_fits(r) and _is_zero(answer)):
        return False, math.inf, math.inf, 0.0
    k, cost = _follow(d, r, a)
    if k < 0:
        return False, math.inf, math.inf, cost
    index, w, g = a.active[:k], a.w[:k], a.T[SPARE]
    uu, ub = gram_pull(d, index, w, g, g)
    s = dual_scale(r, g)
    lower = -gram_dual(d, g, s, uu, ub) - (0.0 if plain else conjugate(r, g, s))
    f = 0.5 * uu
    if rounded:
        for e in range(k):
            w[e] = F(w[e])
        f = gram_value(d, index, w, a.T, g)
    value = f + penalty(r, index, w)
    solved = value - lower <= tol * abs(value)
    if solved:
        for e in range(k):
            answer[index[e]] = w[e]
    return solved, value, max(value - lower, 0.0), cost + k * len(g)


@compiled
def no_path(
    d: Any, r: Separable, plain: bool, tol: float, rounded: bool, a: Tableau, answer: Any
) -> tuple[bool, float, float, float]:
    return False, math.inf, math.inf, 0.0


def path(d: Any, r: Any, plain: bool, tol: float, rounded: bool, a: Any, answer: Any) -> Any:
    """`answer` = the minimiser, if it was 0; whether the gap is met, F, the gap, multiplications.

    Where it is not met, or there is no path, or that was given up, it is left alone.
    """


by_kind(path, no_path, no_path, gram_path)
