"""The loop over the iterations of one instance: `solver`, `safeguard` and `attempts` as scalars."""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from proxlearn.attempts import FIRST_WAIT, FREE, OVERDRAFT, SETTLED, SHARE
from proxlearn.compiled.data import dual32, gradient, instance
from proxlearn.compiled.homotopy import path, tableau
from proxlearn.compiled.lanczos import MARGIN, ritz, vector
from proxlearn.compiled.losses import SQUARES, conjugate, dual_scale
from proxlearn.compiled.maths import F, compiled
from proxlearn.compiled.network import PIECE
from proxlearn.compiled.newton import MANY, PRODUCTS, Space, space
from proxlearn.compiled.polish import lower_bound, objective, polish
from proxlearn.compiled.rule import (
    Point,
    Separable,
    Weights,
    advance,
    compact,
    curvature,
    instance_bias,
    moving,
    penalty_of,
    room,
)  # fmt: skip
from proxlearn.safeguard import GROWTH, RATE, SLOWEST, STRETCH, WINDOW

PROMISING = 0.3
"""Relative gap below which a polish is worth an attempt."""
JOIN = 0.7
"""Which of the pushed coordinates join at a time where all of a polish is cheap."""
LATE = 8
"""Iterations after which an attempt at least squares no longer waits for the active set, but begins
with the largest coordinates; the next one at twice as many. It may cost `SHARE` of them."""
LARGEST, HARDEST = 8, 0.5
"""So many are one in this many rows. Others join where they are pushed this part of the hardest."""
WIDE = 4
"""Columns for each row from which this is done with many coordinates too."""
LONGER = 3.0
"""A polish of the logistic loss with no more columns than rows may cost so many times as much."""
CHEAP = 0.5
"""A polish that costs less than this part of a gradient need not wait for the active set."""
FLOOR = 1e-6
"""Relative gap that float32 iterations cannot be trusted to pass."""
SMALLEST = 1e-25
"""Of a Lipschitz constant whose problem is iterated in float32."""


class Options(NamedTuple):
    """Those of `solve`."""

    learned: bool
    """False: FISTA with restart."""
    safeguard: bool
    polish: bool
    rounded: bool
    """True where the problem is in float32, and so is the answer."""
    tol: float
    max_iter: int


class Outcome(NamedTuple):
    """How an instance ended; its x is in the array that was given for it."""

    solved: bool
    objective: float
    gap: float
    iterations: int
    gradients: float


@compiled
def _nonzeros(x: Any, r: Separable, index: Any, w: Any) -> int:
    """Places and values of the non-zeros of x; their number, or -1 where there is no room.

    Values are inside the bounds, which float32 may miss by its rounding.
    """
    k = 0
    for i in range(len(x)):
        if x[i] != 0:
            if k == len(index):
                return -1
            index[k], w[k] = i, min(max(x[i], r.lower[i]), r.upper[i])
            k += 1
    return k


@compiled
def _largest(x: Any, r: Separable, few: int, index: Any, w: Any) -> int:
    """The same for the largest coordinates of x, `few` at most."""
    sizes = np.abs(x)
    least = np.partition(sizes, len(x) - few)[len(x) - few]
    k = 0
    for i in range(len(x)):
        if x[i] != 0 and sizes[i] >= least and k < few:
            index[k], w[k] = i, min(max(x[i], r.lower[i]), r.upper[i])
            k += 1
    return k


@compiled
def _changes(x: Any, active: Any) -> tuple[int, int]:
    """How many coordinates became or ceased to be zero, and how many are not; `active` follows."""
    changed = count = 0
    for i in range(len(x)):
        now = x[i] != 0
        changed += now != active[i]
        count += now
        active[i] = now
    return changed, count


@compiled
def _estimate(loss: int, k: int, m: int, n: int, entries: float, hard: bool) -> float:
    """What a polish of k coordinates costs at least, in gradients; m = 0 with a Gram matrix."""
    if m == 0:
        return (k * k * k / 6 + 2 * k * n) / (2 * entries)
    if loss == SQUARES and k >= MANY and not hard:
        return 1 + 3 * PRODUCTS * k * m / entries
    newton = 1 if loss == SQUARES else 2
    return 1 + newton * (m * k * k / 2 + k * k * k / 6) / (2 * entries)


@compiled
def _levels(r: Separable, g: Any, level: Any) -> None:
    """lam, or where there is none a tenth of the largest gradient."""
    largest = 0.0
    for i in range(len(g)):
        largest = max(largest, abs(g[i]))
    largest = 0.1 * largest if largest > 0 else 1.0
    for i in range(len(g)):
        level[i] = r.l1[i] if r.l1[i] > 0 else F(largest)


@compiled
def _answered(
    d: Any, r: Separable, o: Options, value: float, index: Any, w: Any, size: int, s: Space,
    u: Any, answer: Any,
) -> float:  # fmt: skip
    """`answer` = a polished point, rounded where the problem is in float32, and F there.

    F was `value` before.
    """
    answer[:] = 0.0
    for t in range(size):
        i = index[t]
        answer[i] = F(w[t]) if o.rounded else w[t]
        w[t] = min(max(answer[i], r.lower[i]), r.upper[i])
    if not o.rounded:
        return value
    return objective(d, r, index[:size], w[:size], s.columns[:size], u)


@compiled
def solve_instance(
    d: Any, m: int, r: Separable, r32: Separable, plain: bool, weights: Weights, L: float,
    o: Options, s: Space, entries: float, answer: Any,
) -> Outcome:  # fmt: skip
    """Iterate until the certificate holds. The start is in `answer`, and in the end the best x."""
    n = len(answer)
    x, y, g, x_new, y_new, best = vector(n), vector(n), vector(n), vector(n), vector(n), vector(n)
    last_y, last_g, level, z, u = vector(n), vector(n), vector(n), vector(m), vector(m)
    active = np.empty(n, np.bool_)
    u64, g64 = np.empty(m), np.empty(n)
    index, w = np.empty(len(s.H), np.int64), np.empty(len(s.H))
    units, bias = room(len(weights.first)), vector(len(weights.first))
    constant, moves = np.empty((2, PIECE), np.float32), np.empty(n, np.int64)
    for i in range(n):
        x[i] = y[i] = best[i] = answer[i]
        active[i] = x[i] != 0
    f_y, uu, ub = gradient(d, y, z, u, g)
    if not L > 0:
        L = MARGIN * ritz(d, m, g) / (1 if d.loss == SQUARES else 4 * m)
    if not SMALLEST < L < 1 / SMALLEST:  # squares leave the range of float32
        return Outcome(False, math.inf, math.inf, 0, 0.0)
    step = 1 / L
    upper, lower, exact = math.inf, -math.inf, -math.inf  # exact: a lower bound in float64
    trusted, mark, needed, due, stretch, t = o.learned, math.inf, RATE, WINDOW, STRETCH, 1.0
    next_check, check_wait, next_try, try_wait = 0, 1, 0, FIRST_WAIT
    few = min(max(m // LARGEST, LARGEST), len(index))
    small = d.loss == SQUARES and (few < MANY or n > WIDE * m)
    late = LATE if small and o.polish else o.max_iter + 1
    longer = LONGER if d.loss != SQUARES and n <= m else 1.0
    spent = gradients = 0.0
    s.hard[0] = False
    for k in range(1, o.max_iter + 1):
        if k > 1:
            f_y, uu, ub = gradient(d, y, z, u, g)
        gradients += 1
        scale = dual_scale(r32, g)
        bound = -dual32(d, u, scale, uu, ub) - (0.0 if plain else conjugate(r32, g, scale))
        lower = max(lower, bound) if not math.isnan(bound) else lower

        # The rule chooses p and a; then x+ = prox(y - p g) and y+ = x+ + a (x+ - x).
        at = Point(x, y, g, last_y, last_g)
        if trusted:
            if k == 1:
                _levels(r32, g, level)
            instance_bias(weights, k - 1, step, n, curvature(at), bias)
        t_next = (1 + math.sqrt(1 + 4 * t * t)) / 2
        constant[0], constant[1] = F(step), F((t - 1) / t_next)
        r_x = linear = square = against = 0.0
        count = moving(at, r32, moves)
        for i in range(n):
            x_new[i] = y_new[i] = F(0)
        for first in range(0, count, PIECE):
            some = moves[first : min(first + PIECE, count)]
            pa = constant
            if trusted:
                compact(weights, at, some, level, step, bias, k == 1, units)
                pa = units.out
            sums = advance(at, r32, some, pa[0], pa[1], x_new, y_new)
            r_x += sums[0]
            linear += sums[1]
            square += sums[2]
            against += sums[3]
        if not trusted:
            t = t_next
            if against > 0:
                t = 1.0
                y_new[:] = x_new
        last_y, last_g, y, g, y_new, x, x_new = y, g, y_new, last_g, last_y, x_new, x
        F_x = f_y + linear + 0.5 * L * square + r_x  # an upper bound on F(x)
        if F_x < upper:
            upper = F_x
            best[:] = x
        broken = not math.isfinite(F_x)

        # Solved? Rough bounds say when to look, the certificate in float64 decides.
        gap = (F_x - max(lower, exact)) / abs(F_x)
        if gap <= o.tol and next_check <= k:
            size = _nonzeros(x, r, index, w)
            if size >= 0:
                value = objective(d, r, index[:size], w[:size], s.columns[:0], u64)
                bound = lower_bound(d, r, plain, index[:size], w[:size], u64, g64, 0.0)
                exact = max(exact, bound)
                gradients += 1
                if value - exact <= o.tol * abs(value):
                    answer[:] = 0.0
                    for j in range(size):
                        answer[index[j]] = w[j]
                    return Outcome(True, value, max(value - exact, 0.0), k, gradients)
            next_check, check_wait = k + check_wait, min(2 * check_wait, 64)

        # Polish, where the active set has nearly settled or the attempt costs next to nothing;
        # later on from the largest coordinates alone.
        changed, count = _changes(x, active)
        size, share, budget = 0, 0.0, 0.0
        if o.polish and count > 0 and next_try <= k and gap <= PROMISING:
            cost = _estimate(d.loss, count, m, n, entries, s.hard[0])
            settled = SETTLED * changed <= count and k >= 3
            if (settled or cost <= CHEAP) and spent + cost <= SHARE * k + FREE:
                size, budget = _nonzeros(x, r, index, w), longer * OVERDRAFT * cost
                next_try, try_wait = k + try_wait, 2 * try_wait
        if size <= 0 and k >= late and (count > m // 2 or k >= 4 * LATE):
            size = _largest(x, r, few, index, w)
            share, budget, late = HARDEST, SHARE * k, 2 * k
        if size > 0:
            value, bound, cost, size = polish(
                d, r, plain, index, w, size, s, m, n, o.tol, budget, entries, share
            )
            gradients += math.ceil(cost)
            exact = max(exact, bound)
            if value - exact <= o.tol * abs(value):
                value = _answered(d, r, o, value, index, w, size, s, u64, answer)
                if value - exact <= o.tol * abs(value):
                    return Outcome(True, value, max(value - exact, 0.0), k, gradients)
            spent += cost if share == 0 else 0.0

        # The safeguard: who goes on?
        merit = (upper - lower) / max(abs(upper), 1e-38)
        mark = merit if k == 1 else mark
        if k >= due or broken:
            if (merit <= FLOOR and o.tol < FLOOR) or (broken and not (trusted and o.safeguard)):
                break
            if not (o.learned and o.safeguard):
                due = k + WINDOW
                continue
            if trusted and (broken or merit > needed * mark):
                trusted, t, due, stretch = False, 1.0, k + stretch, GROWTH * stretch
                x[:], y[:] = best, best
            elif trusted:
                due = k + WINDOW
            else:
                speed = (merit / mark) ** (WINDOW * GROWTH / stretch)  # of the last stretch
                needed = min(speed, SLOWEST) if not math.isnan(speed) else SLOWEST
                trusted, due = True, k + WINDOW
                x[:], y[:] = best, best
            mark = merit
    answer[:] = best
    return Outcome(False, math.inf, math.inf, min(k, o.max_iter), gradients)


@compiled
def polish_instance(
    d: Any, r: Separable, plain: bool, o: Options, s: Space, entries: float, answer: Any
) -> Outcome:
    """A polish and nothing else: with a Gram matrix it costs less than a few iterations."""
    n, m = len(answer), 0
    index, w, u = np.empty(len(s.H), np.int64), np.empty(len(s.H)), np.empty(m)
    size = max(_nonzeros(answer, r, index, w), 0)
    value, bound, cost, size = polish(
        d, r, plain, index, w, size, s, m, n, o.tol, math.inf, entries, JOIN
    )
    solved = value - bound <= o.tol * abs(value)
    if solved:
        value = _answered(d, r, o, value, index, w, size, s, u, answer)
        solved = value - bound <= o.tol * abs(value)
    return Outcome(solved, value, max(value - bound, 0.0), 1, float(math.ceil(cost)))


@compiled
def _plain(r: Separable) -> bool:
    """True for an l1 penalty and nothing else."""
    others = 0
    for i in range(len(r.l1)):
        others += (r.l2[i] != 0) | (r.lower[i] != -math.inf) | (r.upper[i] != math.inf)
    return others == 0


def build(digest: str) -> Any:
    """The compiled entry, cached on disk. The cache looks at the sources that `digest` is of."""

    @njit(nogil=True, cache=True, error_model="numpy")
    def solve_some(
        first: int, last: int, d: Any, m: int, r: Separable, weights: Weights,
        L: Any, o: Options, entries: float, most: int, answers: Any, numbers: Any,
    ) -> int:  # fmt: skip
        """Instances first, ..., last-1: `answers` (B, n) hold the starts, then the solutions.

        `numbers` (B, 5) receives the outcomes.
        """
        n = answers.shape[1]
        s, t = space(most, m), tableau(most if m == 0 else 0, n)
        r_i = Separable(np.empty(n), np.empty(n), np.empty(n), np.empty(n))
        for i in range(first, last):
            penalty_of(r, i, i == first, r_i)
            d_i, plain = instance(d, i), _plain(r_i)
            out, x = Outcome(False, math.inf, math.inf, 0, 0.0), answers[i]
            if m == 0 and o.polish:
                solved, F_x, gap, cost = path(d_i, r_i, plain, o.tol, o.rounded, t, x)
                out = Outcome(solved, F_x, gap, 1, float(math.ceil(cost / (2 * entries))))
                if not solved:
                    out = polish_instance(d_i, r_i, plain, o, s, entries, x)
            if not out.solved:
                r32 = Separable(
                    r_i.l1.astype(np.float32), r_i.l2.astype(np.float32),
                    r_i.lower.astype(np.float32), r_i.upper.astype(np.float32),
                )  # fmt: skip
                out = solve_instance(
                    d_i, m, r_i, r32, plain, weights, L[i if len(L) > 1 else 0], o, s, entries, x
                )  # fmt: skip
            numbers[i, 0], numbers[i, 1], numbers[i, 2] = out.solved, out.objective, out.gap
            numbers[i, 3], numbers[i, 4] = out.iterations, out.gradients
        return len(digest)

    return solve_some
