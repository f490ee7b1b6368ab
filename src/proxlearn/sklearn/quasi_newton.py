"""L-BFGS for a smooth loss with an l2 penalty, whose gradient is its certificate."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dtrtrs

from proxlearn.sklearn.design import Design
from proxlearn.sklearn.fitting import Array
from proxlearn.sklearn.preconditioning import Diagonal, Factor, estimate, factor, rows_of_estimate
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

SPELL = 8
"""Iterations from which the number of those that are left is estimated, and before which it is not.

With 4 of them the fit of logistic regression to 500 x 300 entries took 3.1 ms in place of 2.0; a
factor from the fifth iteration on let counts of 10,000 x 100 take 12 iterations in place of 8.
"""
COUNT_WITH_FACTOR = 10
"""Iterations that are too few for a factor to pay.

It leaves 5 to 8 on seven simulated designs, and L-BFGS grows faster than the last iterations say.
"""
ITERATION, PASSES, ROW_ENTRY, CHOLESKY = 1e6, 5.0, 40.0, 0.3
"""What an iteration takes, for each entry of A, and a factor for each entry and column's cube.

They are counted in multiplications of a Gram matrix, 25 of which take a nanosecond (4601 x 57 to
8000 x 200, 500 x 300).
"""
CLOSE = 0.9
"""The part of the tolerance at which L-BFGS ends: the dual point is still to be balanced."""

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
    """A point (R, width), its predictions (R, m), the loss there, and whether its gap is met.

    `gradient` (R, width) is that of the objective, where it is known.
    """

    point: Array
    Z: Array
    state: State
    iterations: int
    done: bool
    gradient: Array | None = None


class QuasiNewton:
    """L-BFGS for one design and loss, which keeps what it knows from one penalty to the next."""

    def __init__(self, design: Design, loss: Loss, rows: int):
        self.design, self.loss, self.rows = design, loss, rows
        self.memory: Memory | None = None
        self.units: Diagonal | Factor | None = None
        self.diagonal: Array | None = None
        self.block: Array | None = None
        self.can_factor = rows == 1 and not design.sparse
        self.l2 = 0.0
        self.recent: list[tuple[Array, Array]] = []

    def minimise(self, at: Reached, l2: float, tol: float, max_iter: int) -> Reached:
        """Go from a point until the gap is a part `CLOSE` of the tolerance, or progress is slow.

        The gap is |g|^2 / (2 l2) where g is the gradient with respect to W and the constants are
        optimal. Every pair of a step and a change of the gradient has a positive product, since the
        objective is convex, so that a step is only shortened until the objective falls enough.
        """
        n, P, Z, state = self.design.n, at.point, at.Z, at.state
        value, g = self._objective(state, P, l2), self._gradient(state, P, l2)
        memory, units = self._remembered(P.size, l2, state)
        room: tuple[Array, State | None] = np.empty_like(Z), None
        gap, count, most = np.inf, at.iterations, min(MOST_ITERATIONS, max_iter)
        gaps: list[float] = []  # since the units are what they are
        while True:
            inner = g[:, :n]
            gap = float(np.vdot(inner, inner)) / (2.0 * l2)
            slow = count == PATIENCE and gap > HOPELESS * value
            if gap <= CLOSE * tol * value or slow or count >= most:
                break
            gaps.append(gap)
            if self._factor_pays(gaps, CLOSE * tol * value):
                self.block = estimate(self.design, self.loss.curvature(state)[0])
                memory, units = self._factored(P.size, l2)
                gaps = []
            D = units.outward(-memory.product(units.gradient(g)))
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
            memory.keep(units.step(P - last), units.gradient(g - before))
            count += 1
        return Reached(P, Z, state, count, gap <= tol * value, g)

    def _factor_pays(self, gaps: list[float], target: float) -> bool:
        """True where a factor of the Hessian will save more time than it takes.

        What is left of the gap is thought to fall as it fell in the last `SPELL` iterations. It
        goes up and down, so that the least gaps count.
        """
        if not self.can_factor or len(gaps) <= SPELL or not 0.0 < gaps[-1] < np.inf:
            return False
        (m, n), k = self.design.A.shape, rows_of_estimate(self.design)
        cost = (0.5 * n + ROW_ENTRY) * k * n + CHOLESKY * n**3
        least, before = min(gaps), min(gaps[:-SPELL])
        left = SPELL * np.log(least / target) / max(np.log(before / least), 1e-3)
        return bool((left - COUNT_WITH_FACTOR) * (ITERATION + PASSES * m * n) > cost)

    def _factored(self, size: int, l2: float) -> tuple[Memory, Diagonal | Factor]:
        """No pairs, and the units of the Hessian that is known; those of last time if they fail."""
        found = None if self.block is None else factor(self.block, l2 * self._ridge()[0])
        if found is None:
            self.can_factor, self.block = False, None
        else:
            self.memory, self.units = Memory(size), found
        assert self.memory is not None
        assert self.units is not None
        return self.memory, self.units

    def _ridge(self) -> Array:
        """The part of l2 in the Hessian's diagonal, which constants do not have."""
        ridge = np.zeros((self.rows, self.design.width))
        ridge[:, : self.design.n] = 1.0
        return ridge

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

    def _remembered(self, size: int, l2: float, state: State) -> tuple[Memory, Diagonal | Factor]:
        """The pairs of the last solve, moved to this penalty, and the units of the coordinates.

        With more samples than columns the units are the roots of the Hessian's diagonal. Elsewhere
        most eigenvalues of the Hessian are l2, which such units would scatter. On simulated data 44
        iterations become 8 with 3000 x 150 columns of unequal lengths (C = 1), and 22 would become
        43 with texts of 1000 x 4000 (C = 100).
        """
        ridge, before, self.l2 = self._ridge(), self.l2, l2
        if self.memory is None or self.units is None:
            self.memory, self.units = Memory(size), Diagonal(np.ones_like(ridge))
            if len(self.design.s) > self.design.n:
                level = self.loss.curvature(state).sum(1) / self.design.s.sum()
                self.diagonal = level[:, None] * self.design.squares()
        elif l2 == before:
            return self.memory, self.units
        elif isinstance(self.units, Factor):
            return self._factored(size, l2)
        else:
            self.memory.shift(((l2 - before) * ridge / np.square(self.units.root)).ravel())
        if self.diagonal is not None:
            root = np.sqrt(self.diagonal + l2 * ridge)
            root[root == 0.0] = 1.0
            self.memory.rescale((root / self.units.root).ravel())
            self.units = Diagonal(root)
        return self.memory, self.units

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
