"""L-BFGS for a smooth loss with an l2 penalty, whose gradient is its certificate."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dtrtrs

from proxlearn.sklearn.design import Design
from proxlearn.sklearn.fitting import Array
from proxlearn.sklearn.smooth_losses import Loss, State

MOST_ITERATIONS = 100
"""Iterations before Newton's method takes over."""

PATIENCE = 40
"""Iterations after which a relative gap above `HOPELESS` ends L-BFGS.

On relathe, w8a and random data L-BFGS reaches a gap of 1e-3 after 9 to 47 iterations and 1e-6 after
16 to 76, where Newton's method needs two to three times as many products with A.
"""

HOPELESS = 1e-2
"""Relative gap above which L-BFGS ends after `PATIENCE` iterations and Newton's method goes on."""

MEMORY = 20
"""Steps that are remembered.

With 10 of them w8a takes 68 iterations to a gap of 1e-4 in place of 44 and gravier 51 in place of
45; random data take as many.
"""

SPAN = 2
"""How many of the last solutions of a path span the plane in which the next start is sought."""
MOST_SPAN_STEPS = 3
"""Largest number of Newton steps in that span."""
LEAST_SPAN_FALL = 1e-2
"""Relative decrease of the objective below which these steps end."""


class Memory:
    """The inverse Hessian of L-BFGS, from the last steps s and changes y of the gradient.

    In the compact form of Byrd, Nocedal and Schnabel (1994), with the steps in the rows of S and
    the changes in those of Y,

        H g = c g + S^T (R^-T (D + c Y Y^T) R^-1 S g - c R^-T Y g) - c Y^T R^-1 S g

    where R is the upper triangle of S Y^T, D its diagonal, and c = s^T y / |y|^2 of the last pair.
    S and Y are the even and the odd rows of one array, so that a product takes both at once; the
    oldest pair gives its place to the newest, and `order` are the places, oldest first.
    """

    def __init__(self, size: int, most: int = MEMORY):
        self.pairs = np.empty((2 * most, size))
        self.R, self.YY = np.zeros((most, most)), np.zeros((most, most))
        self.order = np.arange(0)
        self.most = most

    def keep(self, s: Array, y: Array) -> None:
        """Take a new pair, in place of the oldest where all places are taken."""
        k = len(self.order)
        if k == self.most:
            place = self.order[0]
            self.order = np.append(self.order[1:], place)
            self.R[:-1, :-1], self.YY[:-1, :-1] = self.R[1:, 1:].copy(), self.YY[1:, 1:].copy()
            k -= 1
        else:
            place, self.order = k, np.arange(k + 1)
        self.pairs[2 * place], self.pairs[2 * place + 1] = s, y
        products = (self.pairs[: 2 * len(self.order)] @ y).reshape(-1, 2)[self.order]
        self.R[: k + 1, k] = products[:, 0]
        self.YY[: k + 1, k] = self.YY[k, : k + 1] = products[:, 1]

    def rescale(self, factors: Array) -> None:
        """Measure the coordinates in other units, in which the steps are `factors` times as long.

        The products of steps and changes stay, and those of the changes are computed again.
        """
        k = len(self.order)
        self.pairs[0 : 2 * k : 2] *= factors
        self.pairs[1 : 2 * k : 2] /= factors
        Y = self.pairs[1 : 2 * k : 2][self.order]
        self.YY[:k, :k] = Y @ Y.T

    def shift(self, ridge: Array) -> None:
        """Add a diagonal to the Hessian of which the pairs are known."""
        k = len(self.order)
        if k == 0:
            return
        S, Y = self.pairs[0 : 2 * k : 2], self.pairs[1 : 2 * k : 2]
        Y += ridge * S
        S, Y = S[self.order], Y[self.order]
        self.R[:k, :k], self.YY[:k, :k] = S @ Y.T, Y @ Y.T

    def product(self, g: Array) -> Array:
        """H g."""
        k = len(self.order)
        if k == 0:
            return g
        R, YY, pairs = self.R[:k, :k], self.YY[:k, :k], self.pairs[: 2 * k]
        known = (pairs @ g).reshape(-1, 2)[self.order]
        c = R[-1, -1] / YY[-1, -1]
        p = dtrtrs(R, known[:, 0])[0]
        right = R.diagonal() * p + c * (YY @ p - known[:, 1])
        parts = np.empty((k, 2))
        parts[self.order, 0] = dtrtrs(R, right, trans=1)[0]
        parts[self.order, 1] = -c * p
        found: Array = parts.ravel() @ pairs
        found += c * g
        return found


@dataclass
class Reached:
    """A point (R, width), its predictions (R, m), the loss there, and whether its gap is met."""

    point: Array
    Z: Array
    state: State
    iterations: int
    done: bool


class QuasiNewton:
    """L-BFGS for one design and loss, which keeps what it knows from one penalty to the next."""

    def __init__(self, design: Design, loss: Loss, rows: int):
        self.design, self.loss, self.rows = design, loss, rows
        self.memory: Memory | None = None
        self.diagonal: Array | None = None
        self.l2 = 0.0
        self.recent: list[tuple[Array, Array]] = []

    def minimise(self, at: Reached, l2: float, tol: float, max_iter: int) -> Reached:
        """Go from a point until the gap is half of `tol` times the objective, or progress is slow.

        The gap is |g|^2 / (2 l2) where g is the gradient with respect to W and the constants are
        optimal. Every pair of a step and a change of the gradient has a positive product, since the
        objective is convex, so that a step is only shortened until the objective falls enough.
        """
        n, P, Z, state = self.design.n, at.point, at.Z, at.state
        memory, root = self._remembered(P.size, l2, state)
        value, g = self._objective(state, P, l2), self._gradient(state, P, l2)
        room: tuple[Array, State | None] = np.empty_like(Z), None
        gap, count, most = np.inf, at.iterations, min(MOST_ITERATIONS, max_iter)
        while True:
            inner = g[:, :n]
            gap = float(np.vdot(inner, inner)) / (2.0 * l2)
            slow = count == PATIENCE and gap > HOPELESS * value
            if gap <= 0.5 * tol * value or slow or count >= most:
                break
            D = -memory.product((g / root).ravel()).reshape(g.shape) / root
            dZ = self.design.predict(D)
            slope = float(np.vdot(g, D))
            if len(memory.order) == 0:  # the exact step of the quadratic model
                bent = float(np.vdot(self.loss.hessian(state)(dZ), dZ)) + l2 * _square(D[:, :n])
                D, dZ, slope = D * (-slope / bent), dZ * (-slope / bent), slope * (-slope / bent)
            found = self._step(value, P, D, Z, dZ, l2, slope, room)
            if found is None:
                break
            room = Z, state
            last, before, (P, Z, state) = P, g, found
            value, g = self._objective(state, P, l2), self._gradient(state, P, l2)
            memory.keep((root * (P - last)).ravel(), ((g - before) / root).ravel())
            count += 1
        return Reached(P, Z, state, count, gap <= tol * value)

    def look_ahead(self, at: Reached, l2: float) -> Reached:
        """The best point in the span of the last solutions of a path, from the last one.

        Newton's method in as many dimensions needs no product with A, since the predictions of
        all these points are known. It halves the iterations of a path to large C.
        """
        self.recent = [*self.recent[-(SPAN - 1) :], (at.point.copy(), at.Z.copy())]
        if len(self.recent) < 2:
            return at
        points = np.stack([point.ravel() for point, _ in self.recent])
        flat = np.stack([Z.ravel() for _, Z in self.recent])
        W = points.reshape(len(points), *at.point.shape)[:, :, : self.design.n]
        W = W.reshape(len(points), -1)
        WW, state, share = W @ W.T, at.state, np.zeros(len(points))
        share[-1] = 1.0
        value = state.value + 0.5 * l2 * WW[-1, -1]
        for _ in range(MOST_SPAN_STEPS):
            hessian = self.loss.hessian(state)
            bent = np.stack([hessian(Z).ravel() for _, Z in self.recent])
            slope = l2 * (WW @ share) - flat @ state.U.ravel()
            try:
                trial = share - np.linalg.solve(bent @ flat.T + l2 * WW, slope)
            except np.linalg.LinAlgError:  # one solution is a multiple of the other
                break
            there = self.loss.at((trial @ flat).reshape(at.Z.shape))
            reached = there.value + 0.5 * l2 * float(trial @ WW @ trial)
            if not reached < value:
                break
            fell, share, value, state = value - reached, trial, reached, there
            if fell < LEAST_SPAN_FALL * value:
                break
        point, Z = (share @ points).reshape(at.point.shape), (share @ flat).reshape(at.Z.shape)
        return Reached(point, Z, state, at.iterations, False)

    def _remembered(self, size: int, l2: float, state: State) -> tuple[Memory, Array]:
        """The pairs of the last solve, moved to this penalty, and the units of the coordinates.

        With more samples than columns the units are the roots of the Hessian's diagonal. Elsewhere
        most eigenvalues of the Hessian are l2, which such units would scatter. On simulated data 44
        iterations become 8 with 3000 x 150 columns of unequal lengths (C = 1), and 22 would become
        43 with texts of 1000 x 4000 (C = 100).
        """
        ridge = np.zeros((self.rows, self.design.width))
        ridge[:, : self.design.n] = 1.0
        if self.memory is None:
            self.memory, self.root = Memory(size), np.ones_like(ridge)
            if len(self.design.s) > self.design.n:
                level = self.loss.curvature(state).sum(1) / self.design.s.sum()
                self.diagonal = level[:, None] * self.design.squares()
        else:
            self.memory.shift(((l2 - self.l2) * ridge / np.square(self.root)).ravel())
        self.l2 = l2
        if self.diagonal is not None:
            root = np.sqrt(self.diagonal + l2 * ridge)
            root[root == 0.0] = 1.0
            self.memory.rescale((root / self.root).ravel())
            self.root = root
        return self.memory, self.root

    def _objective(self, state: State, P: Array, l2: float) -> float:
        return state.value + 0.5 * l2 * _square(P[:, : self.design.n])

    def _gradient(self, state: State, P: Array, l2: float) -> Array:
        g = self.design.correlate(state.U)
        np.negative(g, out=g)
        g[:, : self.design.n] += l2 * P[:, : self.design.n]
        return g

    def _step(
        self, value: float, P: Array, D: Array, Z: Array, dZ: Array, l2: float, slope: float,
        room: tuple[Array, State | None],
    ) -> tuple[Array, Array, State] | None:  # fmt: skip
        """The point to go to, its predictions and the loss there, in `room`; None if there is none.

        The objective has to fall by a thousandth of what the slope promises.
        """
        t, noise = 1.0, 1e-14 * abs(value)
        for _ in range(40):
            there = P + D
            trial = self.loss.at(np.add(Z, dZ, out=room[0]), room[1])
            if self._objective(trial, there, l2) <= value + 1e-3 * t * slope + noise:
                return there, room[0], trial
            t *= 0.5
            D, dZ = 0.5 * D, 0.5 * dZ
        return None


def _square(W: Array) -> float:
    return float(np.vdot(W, W))
