"""L-BFGS, then Newton's method with conjugate gradients, for a smooth loss with an l2 penalty.

    minimise over W, c    loss(W A^T + c) + l2/2 |W|^2

Well-conditioned problems are solved by L-BFGS. Where that is slow, directions of Newton's method
solve H d = -g to a part of the remaining error. The preconditioner is the diagonal of the Hessian,
and where that takes many steps and A is dense, the Hessian of an earlier point, class by class. The
constants c are minimised after each step, so that the dual point is feasible and each gradient is a
certificate, too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.linalg.lapack import dpotrf, dpotri, dtrtrs

from proxlearn.core.glm import Limits
from proxlearn.sklearn.fitting import Array
from proxlearn.sklearn.smooth_losses import Loss, State

EPS = float(np.finfo(float).eps)

MOST_FACTORED = 4e7
"""Numbers in the factors of all classes, above which the diagonal is the preconditioner."""

MOST_CG = 500
"""Steps of conjugate gradients in one direction."""

REFRESH = 20
"""Steps of conjugate gradients after which the preconditioner is computed again.

That takes as long as about 15 steps with 10 classes of 61 columns, and 30 with 300 columns.
"""

MOST_QUASI_NEWTON = 100
"""Iterations of L-BFGS before Newton's method takes over."""

PATIENCE = 40
"""Iterations of L-BFGS after which a relative gap above `HOPELESS` ends it.

On relathe, w8a and random data L-BFGS reaches a gap of 1e-3 after 9 to 36 iterations and 1e-6 after
16 to 59, where Newton's method needs two to three times as many products with A.
"""

HOPELESS = 1e-2

MEMORY = 10
"""Steps that L-BFGS remembers."""

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


class Design:
    """A (m, n) with centred columns and, for an intercept, a last column of ones.

    Dense columns are centred in a copy, sparse ones on the fly.
    """

    def __init__(self, A: Any, s: Array, intercept: bool):
        m, self.n = A.shape
        self.A, self.s, self.intercept = A, s, intercept
        self.sparse, self.width = scipy.sparse.issparse(A), self.n + intercept
        self.mean = (s / s.sum()) @ A if intercept else np.zeros(self.n)
        self.mean = np.asarray(self.mean).ravel()
        if not self.sparse and intercept:
            self.A = np.empty((m, self.width), order="F" if A.flags.f_contiguous else "C")
            np.subtract(A, self.mean, out=self.A[:, : self.n])
            self.A[:, self.n] = 1.0
        self.AT = self.A.T  # a new object each time, for a sparse matrix
        self.kept: dict[str, Array] = {}

    def predict(self, P: Array) -> Array:
        """Z (R, m) of points (R, width)."""
        if not self.sparse:
            dense: Array = P @ self.AT
            return dense
        W = P[:, : self.n]
        Z: Array = np.ascontiguousarray((self.A @ W.T).T)
        if self.intercept:
            Z += (P[:, self.n] - W @ self.mean)[:, None]
        return Z

    def correlate(self, U: Array) -> Array:
        """Products of U (R, m) with all columns, (R, width)."""
        if not self.sparse:
            dense: Array = U @ self.A
            return dense
        found = (self.AT @ U.T).T
        if not self.intercept:
            return np.ascontiguousarray(found)
        sums = U.sum(1)[:, None]
        return np.column_stack([found - sums * self.mean, sums])

    def diagonal(self, D: Array) -> Array:
        """Sums of D_ri a_ij^2, (R, width)."""
        if "squares" not in self.kept:
            square = self.A.multiply(self.A) if self.sparse else np.square(self.A)
            self.kept["squares"] = square.tocsc() if self.sparse else square
        found = np.asarray((self.kept["squares"].T @ D.T).T)
        if self.sparse and self.intercept:
            sums = D.sum(1)[:, None]
            linear = np.asarray((self.AT @ D.T).T)
            found = found - 2.0 * self.mean * linear + sums * self.mean**2
            found = np.column_stack([np.maximum(found, 0.0), sums])
        return found

    def gram(self, d: Array) -> Array:
        """A^T diag(d) A of a dense A."""
        scaled = self.A * np.sqrt(d)[:, None]
        found: Array = scaled.T @ scaled
        return found


class Memory:
    """The inverse Hessian of L-BFGS, from the last steps s and changes y of the gradient.

    In the compact form of Byrd, Nocedal and Schnabel (1994), with the steps in the rows of S and
    the changes in those of Y,

        H g = c g + S^T (R^-T (D + c Y Y^T) R^-1 S g - c R^-T Y g) - c Y^T R^-1 S g

    where R is the upper triangle of S Y^T, D its diagonal, and c = s^T y / |y|^2 of the last pair.
    """

    def __init__(self, size: int, most: int):
        self.S, self.Y = np.empty((most, size)), np.empty((most, size))
        self.SY, self.YY = np.empty((most, most)), np.empty((most, most))
        self.most, self.k = most, 0

    def keep(self, s: Array, y: Array) -> None:
        """Take a new pair, in place of the oldest where all places are taken."""
        if self.k == self.most:
            self.S[:-1], self.Y[:-1] = self.S[1:], self.Y[1:]
            self.SY[:-1, :-1], self.YY[:-1, :-1] = self.SY[1:, 1:].copy(), self.YY[1:, 1:].copy()
            self.k -= 1
        k = self.k
        self.S[k], self.Y[k] = s, y
        self.k = k + 1
        self.SY[: k + 1, k] = self.S[: k + 1] @ y
        self.YY[: k + 1, k] = self.YY[k, : k + 1] = self.Y[: k + 1] @ y

    def product(self, g: Array) -> Array:
        """H g."""
        k = self.k
        if k == 0:
            return g
        S, Y, R = self.S[:k], self.Y[:k], np.triu(self.SY[:k, :k])
        c = R[-1, -1] / self.YY[k - 1, k - 1]
        p = dtrtrs(R, S @ g)[0]
        right = R.diagonal() * p + c * (self.YY[:k, :k] @ p - Y @ g)
        q = dtrtrs(R, right, trans=1)[0]
        found: Array = c * g + q @ S - c * (p @ Y)
        return found


class Ridge:
    """Newton's method for one design and loss, with any weight of the penalty."""

    def __init__(self, design: Design, loss: Loss, rows: int):
        self.design, self.loss, self.rows = design, loss, rows
        self.can_factor = not design.sparse and rows * design.width**2 <= MOST_FACTORED
        self.factored = self.outdated = False
        self.blocks: list[Array] | None = None
        self.is_easy = not loss.quadratic
        self.passes = 0

    def inward(self, start: Array, n: int, reduced: Reduction | None) -> Array:
        """The point of n coefficients for each row, which constants may follow."""
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
        P = np.zeros((self.rows, d.width)) if point is None else point.copy()
        self.passes, count = 0, 0
        level = EPS * self.loss.at_zero()
        if self.is_easy:
            P, count = self._quasi_newton(P, l2, ridge, limits)
        Z = self._predict(P)
        best, idle, last, part = -np.inf, 0, np.inf, 1e-3
        state, precondition = self.loss.at(Z), None
        while True:
            state = self._settle(P, Z, state, max(1e-3 * part, 1e-14))
            C = self._correlate(state.U)
            objective = state.value + 0.5 * float((ridge * P * P).sum())
            C[:, d.n :] = 0.0
            best = max(best, self.loss.bound(state) - 0.5 * float(np.square(C).sum()) / l2)
            gap = objective - best
            target = max(limits.tol * abs(objective), level)
            idle = 0 if objective < last else idle + 1
            ended = count >= limits.max_iter or idle >= 2 or not np.isfinite(gap)
            if gap <= target or ended or (only_easy and not self.is_easy):
                return Solved(P, best, count, self.passes)
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

    def _quasi_newton(self, P: Array, l2: float, ridge: Array, limits: Limits) -> tuple[Array, int]:
        """The point of L-BFGS, and its number of iterations.

        The gap is |g|^2 / (2 l2) where g is the gradient with respect to W and the constants are
        optimal. Every pair of a step and a change of the gradient has a positive product, since the
        objective is convex, so that a step is only shortened until the objective falls enough.
        """
        n, memory = self.design.n, Memory(P.size, MEMORY)
        Z = self._predict(P)
        state = self.loss.at(Z)
        objective = state.value + 0.5 * float((ridge * P * P).sum())
        g, count, gap = ridge * P - self._correlate(state.U), 0, np.inf
        while count < min(MOST_QUASI_NEWTON, limits.max_iter):
            gap = float(np.square(g[:, :n]).sum()) / (2.0 * l2)
            if gap <= 0.5 * limits.tol * objective:
                break
            if count == PATIENCE and gap > HOPELESS * objective:
                break
            D = -memory.product(g.ravel()).reshape(g.shape)
            dZ = self._predict(D)
            slope = float((g * D).sum())
            if count == 0:  # no curvature is known yet: the exact step of the quadratic model
                bent = float((self.loss.hessian(state)(dZ) * dZ).sum() + (ridge * D * D).sum())
                scale = -slope / bent
                D, dZ, slope = scale * D, scale * dZ, scale * slope
            t, state = self._step(objective, P, D, Z, dZ, ridge, slope)
            if t == 0.0:
                break
            P = P + t * D
            Z = Z + t * dZ
            objective = state.value + 0.5 * float((ridge * P * P).sum())
            before, g = g, ridge * P - self._correlate(state.U)
            memory.keep((t * D).ravel(), (g - before).ravel())
            count += 1
        self.is_easy = gap <= limits.tol * objective
        return P, count

    def _predict(self, P: Array) -> Array:
        self.passes += 1
        return self.design.predict(P)

    def _correlate(self, U: Array) -> Array:
        self.passes += 1
        return self.design.correlate(U)

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
        self.loss.balance(state)
        return state

    def _preconditioner(self, state: State, ridge: Array) -> Callable[[Array], Array]:
        if not self.factored:
            diagonal = self.design.diagonal(self.loss.curvature(state)) + ridge
            inverse = 1.0 / np.maximum(diagonal, np.finfo(float).tiny)
            return lambda G: inverse * G
        if self.blocks is None or self.outdated:
            self.blocks = [self.design.gram(row) for row in self.loss.curvature(state)]
        self.outdated = False
        inverses = np.stack([_inverse(block, ridge) for block in self.blocks])
        return lambda G: np.matmul(inverses, G[..., None])[..., 0]

    def _direction(
        self, state: State, right: Array, ridge: Array, part: float,
        precondition: Callable[[Array], Array],
    ) -> tuple[Array, Array, int]:  # fmt: skip
        """d with H d = right, up to a part of it, the change of Z, and the number of steps."""
        hessian = self.loss.hessian(state)
        x, zx, r = np.zeros_like(right), np.zeros_like(state.U), right.copy()
        y = precondition(r)
        rho = first = float((r * y).sum())
        p, steps = y, 0
        while steps < MOST_CG:
            steps += 1
            zp = self._predict(p)
            q = self._correlate(hessian(zp)) + ridge * p
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
    A: Any, loss: Loss, W: npt.NDArray[Any], constants: Array, l2: float, intercept: bool,
    bound: float | None, tol: float,
) -> Found:  # fmt: skip
    """Objective, gap and status at coefficients W (R, n); `bound` is one on the minimum."""
    double = W.astype(np.float64, copy=False)
    Z = np.asarray((A @ double.T).T) + constants[:, None]
    state = loss.at(Z)
    objective = state.value + 0.5 * l2 * float(np.square(double).sum())
    if bound is None:
        if intercept:
            loss.balance(state)
        C = np.asarray((A.T @ state.U.T).T)
        if intercept:
            mean = np.asarray((loss.s / loss.s.sum()) @ A).ravel()
            C = C - state.U.sum(1)[:, None] * mean
        bound = loss.bound(state) - 0.5 * float(np.square(C).sum()) / l2
    gap = max(objective - bound, 0.0)
    level = EPS * loss.at_zero()
    solved = tol > 0 and gap <= max(tol * abs(objective), level)
    return Found(W, constants, objective, gap, 0 if solved else 1)
