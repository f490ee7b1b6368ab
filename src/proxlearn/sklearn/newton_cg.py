"""L-BFGS, then Newton's method with conjugate gradients, for a smooth loss with an l2 penalty.

    minimise over W, c    loss(W A^T + c) + l2/2 |W|^2

Well-conditioned problems are solved by L-BFGS. Where that is slow, directions of Newton's method
solve H d = -g approximately. The preconditioner is the diagonal of the Hessian. Where that takes
many steps and A is dense, it is the Hessian at an earlier point, a block for each class. The
constants c are minimised after each step, so that the dual point is feasible and each gradient is a
certificate, too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dpotrf, dpotri

from proxlearn.core.glm import Limits
from proxlearn.sklearn.design import Design
from proxlearn.sklearn.fitting import Array
from proxlearn.sklearn.quasi_newton import QuasiNewton, Reached
from proxlearn.sklearn.smooth_losses import Loss, State

EPS = float(np.finfo(float).eps)

MOST_FACTORED = 4e7
"""Entries in the blocks of all classes above which the diagonal is the preconditioner."""

MOST_CG = 500
"""Steps of conjugate gradients in one direction."""

REFRESH = 20
"""Steps of conjugate gradients after which the preconditioner is computed again.

Computing it takes as long as about 15 steps with 10 classes of 61 columns, 30 with 300 columns.
"""

FIRST_SETTLED = 1e-3
"""How well the constants are known before L-BFGS begins, relative to the dual point.

With classes of unequal size (w8a, C = 0.01) 8 iterations are enough in place of 12.
"""

LOOSEST = 0.1
"""The largest error that a direction may keep, relative to the gradient."""


@dataclass
class Found:
    """A solution W (R, n) with constants (R,), and what is proven of it."""

    W: npt.NDArray[Any]
    constants: Array
    objective: float
    gap: float
    status: int
    iterations: int = 0
    passes: int = 0


@dataclass
class Solved:
    """Where Newton's method ended, in coordinates of a `Design`."""

    point: Array
    bound: float
    iterations: int
    passes: int


class Reduction(Protocol):
    """A change of coordinates, from x to v."""

    def reduce(self, W: Array) -> Array:
        """v (R, m) of x (R, n)."""


class Ridge:
    """Newton's method for one design and loss, with any weight of the penalty."""

    def __init__(self, design: Design, loss: Loss, rows: int):
        self.design, self.loss, self.rows = design, loss, rows
        self.can_factor = not design.sparse and rows * design.width**2 <= MOST_FACTORED
        self.factored = self.outdated = False
        self.blocks: list[Array] | None = None
        self.is_easy = not loss.quadratic
        self.quasi_newton = QuasiNewton(design, loss, rows)

    def inward(self, start: Array, n: int, reduced: Reduction | None) -> Array:
        """The point of a start: n coefficients for each row, and then the constants, if any."""
        size, R = n * self.rows, self.rows
        W = np.array(start[:size], dtype=np.float64).reshape(R, n)
        constants = start[size:] if len(start) > size else np.zeros(R)
        W = W if reduced is None else reduced.reduce(W)
        if not self.design.intercept:
            return W
        return np.column_stack([W, constants + W @ self.design.mean])

    def outward(self, point: Array) -> tuple[Array, Array]:
        """Coefficients (R, n) and constants (R,) of a point."""
        d = self.design
        if not d.intercept:
            return point, np.zeros(self.rows)
        W = point[:, : d.n]
        return W, point[:, d.n] - W @ d.mean

    def solve(
        self, l2: float, point: Array | None, limits: Limits, only_easy: bool = False
    ) -> Solved:
        """Minimise from a point (R, width), or from 0; by L-BFGS alone with `only_easy`."""
        d = self.design
        ridge = np.full(d.width, l2)
        ridge[d.n :] = 0.0
        d.passes, level = 0, EPS * self.loss.at_zero()
        begun = self._begin(point, l2, limits)
        P, Z, state, count = begun.point, begun.Z, begun.state, begun.iterations
        bound = self._bound_of(begun, l2)
        if self._objective(begun, l2) - bound <= limits.tol * self._objective(begun, l2):
            return Solved(P, bound, count, d.passes)
        best, idle, last, part, precondition = -np.inf, 0, np.inf, 1e-3, None
        while True:
            state = self._settle(P, Z, state, max(1e-3 * part, 1e-14))
            if d.intercept:
                self.loss.balance(state)
            C = self.design.correlate(state.U)
            objective = state.value + 0.5 * float((ridge * P * P).sum())
            C[:, d.n :] = 0.0
            bound = self.loss.bound(state) - 0.5 * float(np.square(C).sum()) / l2
            best = max(best, bound - _lost(state, P[:, d.n :]))
            gap = objective - best
            target = max(limits.tol * abs(objective), level)
            idle = 0 if objective < last else idle + 1
            ended = count >= limits.max_iter or idle >= 2 or not np.isfinite(gap)
            if gap <= target or ended or (only_easy and not self.is_easy):
                return Solved(P, best, count, d.passes)
            last, part = objective, min(gap / abs(objective), 1.0)
            if precondition is None or not self.factored:
                precondition = self._preconditioner(state, ridge)
            forcing = max(0.5 * np.sqrt(target / gap), min(LOOSEST, np.sqrt(part)))
            D, dZ, steps = self._direction(state, C - ridge * P, ridge, forcing, precondition)
            if self.can_factor and steps > max(REFRESH, d.width // 32):
                precondition, self.factored, self.outdated = None, True, True
            slope = float((D * (ridge * P - C)).sum())
            t, state = self._step(objective, P, D, Z, dZ, ridge, slope)
            P += t * D
            Z += t * dZ
            count += 1

    def _objective(self, at: Reached, l2: float) -> float:
        return at.state.value + 0.5 * l2 * float(np.square(at.point[:, : self.design.n]).sum())

    def _bound_of(self, at: Reached, l2: float) -> float:
        """A lower bound on the minimum without a product with A, where the gradient is known.

        With an intercept the dual point has to sum to 0. It does when the same multiple of all
        weights is taken from it, which changes no product with centred columns.
        """
        state: State | None = at.state
        if at.gradient is None or not at.done:
            return -np.inf
        if self.design.intercept:
            state = self.loss.moved(at.state, float(at.state.U.sum() / self.loss.s.sum()))
        if state is None:
            return -np.inf
        n = self.design.n
        C = (l2 * at.point - at.gradient)[:, :n]
        bound = self.loss.bound(state) - 0.5 * float(np.square(C).sum()) / l2
        return bound - _lost(state, at.point[:, n:])

    def _begin(self, point: Array | None, l2: float, limits: Limits) -> Reached:
        """Where Newton's method begins."""
        d = self.design
        if point is None:
            P, Z = np.zeros((self.rows, d.width)), np.zeros((self.rows, len(d.s)))
        else:
            P, Z = point.copy(), d.predict(point)
        state = self.loss.at(Z)
        start = Reached(P, Z, state, 0, False)
        if not self.is_easy:
            return start
        if point is not None:
            start = self.quasi_newton.look_ahead(start, l2)
        start.state = self._settle(start.point, start.Z, start.state, FIRST_SETTLED)
        found = self.quasi_newton.minimise(start, l2, limits.tol, limits.max_iter)
        self.is_easy = found.done
        return found

    def _settle(self, P: Array, Z: Array, state: State, part: float) -> State:
        """The loss at Z after its constants were minimised, which changes P and Z.

        The sums of the dual point, which are the gradient with respect to the constants, become at
        most a part of the sum of its magnitudes.
        """
        if not self.design.intercept:
            return state
        for _ in range(20):
            sums = np.abs(state.U.sum(1)).max()
            if sums <= part * np.abs(state.U).sum():
                break
            change = np.clip(self.loss.centre_constants(state), -10.0, 10.0)[:, None]
            trial = self.loss.at(Z + change)
            if not trial.value <= state.value * (1.0 + 4.0 * EPS):
                change *= 0.25
                trial = self.loss.at(Z + change)
                if not trial.value < state.value:
                    break
            elif np.abs(trial.U.sum(1)).max() > 0.5 * sums and trial.value >= state.value:
                break
            Z += change
            P[:, -1:] += change
            state = trial
        return state

    def _preconditioner(self, state: State, ridge: Array) -> Callable[[Array], Array]:
        if not self.factored:
            diagonal = self.design.diagonal(self.loss.curvature(state)) + ridge
            inverse = 1.0 / np.maximum(diagonal, np.finfo(float).tiny)
            return lambda G: inverse * G
        if self.blocks is None or self.outdated:
            self.blocks = [self.design.gram(slice(None), row) for row in self.loss.curvature(state)]
        self.outdated = False
        inverses = np.stack([_inverse(block, ridge) for block in self.blocks])
        return lambda G: np.matmul(inverses, G[..., None])[..., 0]

    def _direction(
        self, state: State, right: Array, ridge: Array, part: float,
        precondition: Callable[[Array], Array],
    ) -> tuple[Array, Array, int]:  # fmt: skip
        """Conjugate gradients for H d = right: d, the change of Z, and the number of steps.

        They end when the residual, in the norm of the preconditioner, is `part` of its first value.
        """
        hessian = self.loss.hessian(state)
        x, zx, r = np.zeros_like(right), np.zeros_like(state.U), right.copy()
        y = precondition(r)
        rho = first = float((r * y).sum())
        p, steps = y, 0
        while steps < MOST_CG:
            steps += 1
            zp = self.design.predict(p)
            q = self.design.correlate(hessian(zp)) + ridge * p
            curvature = float((p * q).sum())
            if not curvature > 0.0:
                break
            a = rho / curvature
            x += a * p
            zx += a * zp
            r -= a * q
            y = precondition(r)
            rho, before = float((r * y).sum()), rho
            if not rho > part * part * first:
                break
            p = y + (rho / before) * p
        return x, zx, steps

    def _step(
        self, objective: float, P: Array, D: Array, Z: Array, dZ: Array, ridge: Array, slope: float
    ) -> tuple[float, State]:
        """How far to go, and the loss there.

        The objective has to fall by a thousandth of what the slope promises.
        """
        t, noise = 1.0, 1e-14 * abs(objective)
        for _ in range(40):
            there, state = P + t * D, self.loss.at(Z + t * dZ)
            value = state.value + 0.5 * float((ridge * there * there).sum())
            if value <= objective + 1e-3 * t * slope + noise:
                return t, state
            t *= 0.5
        return 0.0, self.loss.at(Z)


def _inverse(block: Array, ridge: Array) -> Array:
    """The inverse of block + diag(ridge), with a larger diagonal where that is not definite.

    A product with it takes a fifth of the time of two triangular solves with a Cholesky factor.
    """
    more = EPS * float(np.trace(block))
    while True:
        H = block.copy()
        H[np.diag_indices_from(H)] += ridge + more
        L, info = dpotrf(H, lower=1, overwrite_a=1)
        if info == 0:
            inverse = dpotri(L, lower=1, overwrite_c=1)[0]
            found: Array = np.tril(inverse) + np.tril(inverse, -1).T
            return found
        more = max(100.0 * more, np.finfo(float).tiny)


def certified(
    A: Any, loss: Loss, W: npt.NDArray[Any], constants: Array, l2: Array, intercept: bool,
    solved: Sequence[Solved], proven: bool, tol: float,
) -> list[Found]:  # fmt: skip
    """Objective, gap and status at coefficients W (K, R, n) with constants (K, R).

    There are K problems, with l2 (K,). The bounds on the minima are those of `solved` where they
    are `proven` for A itself.
    """
    K, R, n = W.shape
    double = W.astype(np.float64, copy=False)
    Z = np.asarray((A @ double.reshape(K * R, n).T).T).reshape(K, R, -1) + constants[:, :, None]
    states = [loss.at(z) for z in Z]
    squares = np.square(double).sum((1, 2))
    objectives = [s.value + 0.5 * w * q for s, w, q in zip(states, l2, squares, strict=True)]
    bounds = [one.bound for one in solved]
    if not proven:
        bounds = _bounds(A, loss, states, double, constants, l2, intercept)
    level, found = EPS * loss.at_zero(), []
    for k, one in enumerate(solved):
        gap = max(objectives[k] - bounds[k], 0.0)
        status = 0 if tol > 0 and gap <= max(tol * abs(objectives[k]), level) else 1
        ended = one.iterations, one.passes
        found.append(Found(W[k], constants[k], objectives[k], gap, status, *ended))
    return found


def _bounds(
    A: Any, loss: Loss, states: Sequence[State], W: Array, constants: Array, l2: Array,
    intercept: bool,
) -> list[float]:  # fmt: skip
    """Lower bounds on the minima, from the dual points of the states."""
    if intercept:
        for state in states:
            loss.balance(state)
    U = np.concatenate([state.U for state in states])
    C = np.asarray((A.T @ U.T).T)
    lost = [0.0] * len(states)
    if intercept:
        mean = np.asarray((loss.s / loss.s.sum()) @ A).ravel()
        C = C - U.sum(1)[:, None] * mean
        lost = [_lost(s, c) for s, c in zip(states, constants + W @ mean, strict=True)]
    squares = np.square(C).sum(1).reshape(len(states), -1).sum(1)
    return [
        loss.bound(state) - 0.5 * float(square) / w - less
        for state, square, w, less in zip(states, squares, l2, lost, strict=True)
    ]


def _lost(state: State, constants: Array) -> float:
    """What the bound of a dual point U (R, m) loses, as its rows do not sum to exactly 0.

    F(y) is at least the dual value plus sum(U_r) c_r with the constants c of the minimiser y, for
    centred columns. They are taken for at most twice the last ones.
    """
    sums = np.abs(state.U.sum(1))[: np.size(constants)]  # without an intercept there are none
    return 2.0 * float(sums @ np.abs(np.ravel(constants)))
