"""Polish of one instance, as `proxlearn.polish` does it: Newton's method on the active set."""

import math
from typing import Any

import numpy as np

from proxlearn.compiled.data import dual, grow, pull, value
from proxlearn.compiled.losses import SQUARES, conjugate, dual_scale, penalty
from proxlearn.compiled.maths import compiled
from proxlearn.compiled.newton import MANY, Active, Space, minimise
from proxlearn.compiled.rule import Separable
from proxlearn.polish import ROUNDS

NEAR = 0.9
"""Scaling of a dual point from which its bound is worth knowing, where rounds are cheap."""
FIRST, BETTER = 1e-2, 0.03
"""Slopes that inexact steps may leave in the first round, and of what was left in a later one."""
ROUNDING = 8 * 2.0**-52


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
    d: Any, r: Separable, plain: bool, index: Any, w: Any, k: int, s: Space, m: int, n: int,
    tol: float, budget: float, entries: float, share: float,
) -> tuple[float, float, float, int]:  # fmt: skip
    """From k active coordinates `index` with the values w: F, a lower bound, and the cost.

    The best point found is in `index` and w (K,), and as many first columns of `s` are its own: the
    last number. Cost and budget are in gradients of 2 `entries` multiplications. `share`: see
    `_joined`.
    """
    K, grown = len(s.H), 0
    a = Active(np.empty(K, np.int64), np.empty(K), np.empty(K), np.ones(K, np.bool_))
    u, g, listed = np.empty(m), np.empty(n), np.zeros(n, np.bool_)
    for t in range(k):
        i = index[t]
        a.index[t], a.w[t], a.side[t] = i, w[t], _side(r, i, w[t])
        a.live[t], listed[i] = r.lower[i] < w[t] < r.upper[i], True
    s.factored[0] = 0
    s.iterative[0] = d.loss == SQUARES and m > 0 and k >= MANY and r.l1[0] > 0 and not s.hard[0]
    accuracy = FIRST
    best, lower, cost, kept = math.inf, -math.inf, 0.0, 0
    for _ in range(ROUNDS):
        if k > 0:
            direct = d.loss == SQUARES and not s.iterative[0]
            grow(d, a.index, grown, k, s.columns, s.H, direct)
            if direct:
                cost += m * (k - grown) * (k + grown) / 2 / (2 * entries)
            grown = k
            cost += minimise(d, r, a, k, s, m, accuracy if s.iterative[0] else tol) / (2 * entries)
        F = objective(d, r, a.index[:k], a.w[:k], s.columns[:k], u)
        near = 0.0 if share == 0 else NEAR
        bound = lower_bound(d, r, plain, a.index[:k], a.w[:k], u, g, near)
        cost += 0.5
        lower = max(lower, bound)
        if not best > F:
            break
        best, kept = F, k
        for t in range(k):
            index[t], w[t] = a.index[t], a.w[t]
        failed = s.iterative[0] and s.hard[0]
        if best - lower <= tol * abs(best) or cost > budget or failed:
            break
        accuracy = max(BETTER * min(accuracy, (best - lower) / abs(best)), BETTER * tol)
        k = _joined(r, a, k, g, listed, share)
        if k == K and k < n:
            break
    return best, lower, cost, kept
