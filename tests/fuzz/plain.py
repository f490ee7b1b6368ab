"""One instance in extended precision, written without the package: F, lower bounds, minimisers.

All numbers are np.longdouble, whose range of 1e-4932 to 1e4932 holds the squares of every float64.
"""

from dataclasses import dataclass

import numpy as np

LONG = np.longdouble
EPS = float(np.finfo(np.float64).eps)
INF, ZERO = LONG(np.inf), LONG(0)
REGRESSIONS = ("squares", "huber")


@dataclass(frozen=True)
class Plain:
    """``loss(A x, b) + r(x)`` with a separable penalty, a group norm or a simplex.

    Separable: ``r(x) = sum_j t_j |x_j| + q_j/2 x_j^2`` for lower <= x <= upper. With `groups`, t is
    the weight of each group's norm, and l1 that of each |x_j|. With `radius`, x lies on the
    simplex, or with `at_most` its sum may also be smaller.
    """

    loss: str  # squares, huber, logistic, poisson, softmax
    A: np.ndarray
    b: np.ndarray
    t: np.ndarray
    q: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    groups: np.ndarray | None = None
    radius: np.longdouble | None = None
    at_most: bool = False
    classes: int = 1
    delta: np.longdouble = INF
    l1: np.ndarray | np.longdouble = ZERO
    intercepts: int = 0  # so many of the last coordinates, of least squares, are intercepts

    @property
    def n(self) -> int:
        return self.A.shape[1] * self.classes

    @property
    def bend(self) -> np.longdouble:
        """The largest second derivative of the loss."""
        if self.loss in REGRESSIONS:
            return LONG(1)
        if self.loss == "poisson":  # where f(x) <= f(0)
            return 4 * (self.smooth(0 * self.b[:, None])[0] + self.b.max() / len(self.A))
        return LONG({"logistic": 0.25, "softmax": 0.5}[self.loss]) / len(self.A)

    # ---- the loss -------------------------------------------------------------------------------
    def margins(self, x: np.ndarray) -> np.ndarray:
        return self.A @ x.reshape(self.classes, -1).T  # (m, classes)

    def smooth(self, z: np.ndarray) -> tuple[np.longdouble, np.ndarray]:
        """The loss of the margins and its gradient there."""
        m = len(self.A)
        if self.loss == "squares":
            r = z[:, 0] - self.b
            return (r * r).sum() / 2, r[:, None]
        if self.loss == "huber":
            r = z[:, 0] - self.b
            inner = np.minimum(abs(r), self.delta)
            return (inner * (abs(r) - inner / 2)).sum(), (np.sign(r) * inner)[:, None]
        if self.loss == "poisson":
            fine = z[:, 0] < 11000
            mu = np.where(fine, np.exp(np.where(fine, z[:, 0], 0)), INF)
            d = z[:, 0] - np.log(np.where(self.b > 0, self.b, 1))
            near = (self.b > 0) & (abs(d) < 1)  # where mu - b z cancels: b (exp(d) - 1 - d)
            close = self.b * (np.expm1(np.where(near, d, 0)) - np.where(near, d, 0))
            value = np.where(near, close, mu - self.b * d - self.b)
            return value.mean(), ((mu - self.b) / m)[:, None]
        if self.loss == "logistic":
            s = 1 - 2 * self.b
            p = s * z[:, 0]
            large = np.maximum(p, 0)
            value = (large + np.log1p(np.exp(-abs(p)))).mean()
            wrong = np.exp(p - large) / (np.exp(p - large) + np.exp(-large))
            return value, (s * wrong / m)[:, None]
        labels = self.b.astype(int)
        own = z - z[np.arange(m), labels][:, None]
        top = own.max(1, keepdims=True)
        total = np.exp(own - top).sum(1, keepdims=True)
        P = np.exp(own - top) / total
        return (np.log(total) + top).mean(), (P - np.eye(self.classes)[labels]) / m

    def conjugate(self, u: np.ndarray) -> np.longdouble:
        """The conjugate of the loss at a dual point u (m, classes)."""
        m = len(self.A)
        if self.loss in REGRESSIONS:
            if (abs(u) > self.delta * (1 + 1e-18)).any():
                return INF
            return (u[:, 0] * (u[:, 0] / 2 + self.b)).sum()
        if self.loss == "poisson":
            q = self.b + m * u[:, 0]
            if (q < 0).any():
                return INF
            terms = [v * np.log(np.where(v > 0, v, 1)) - v for v in (q, self.b)]
            return (terms[0] - terms[1]).mean()
        if self.loss == "logistic":
            wrong = (1 - 2 * self.b) * u[:, 0] * m
            P = np.stack([wrong, 1 - wrong], 1)
        else:
            P = u * m + np.eye(self.classes)[self.b.astype(int)]
        if (P < -1e-18).any() or (abs(P.sum(1) - 1) > 1e-17).any():
            return INF
        P = np.maximum(P, 0)
        return np.where(P > 0, P * np.log(np.where(P > 0, P, 1)), 0).sum() / m

    def pull(self, u: np.ndarray) -> np.ndarray:
        return (self.A.T @ u).T.reshape(-1)

    def grad(self, x: np.ndarray) -> np.ndarray:
        return self.pull(self.smooth(self.margins(x))[1])

    # ---- the penalty ----------------------------------------------------------------------------
    def norms(self, x: np.ndarray) -> np.ndarray:
        assert self.groups is not None
        squares = np.zeros(len(self.t), LONG)
        np.add.at(squares, self.groups, x * x)
        return np.sqrt(squares)

    def penalty(self, x: np.ndarray) -> np.longdouble:
        if self.radius is not None:
            return LONG(0) if (x >= 0).all() else INF
        if self.groups is not None:
            return (self.t * self.norms(x)).sum() + (self.l1 * abs(x)).sum()
        if (x < self.lower).any() or (x > self.upper).any():
            return INF
        return (self.t * abs(x) + self.q * x * x / 2).sum()

    def value(self, x: np.ndarray) -> np.longdouble:
        return self.smooth(self.margins(x))[0] + self.penalty(x)

    def prox(self, v: np.ndarray, p: np.longdouble) -> np.ndarray:
        if self.at_most and np.maximum(v, 0).sum() <= self.radius:
            return np.maximum(v, 0)
        if self.radius is not None:
            u = np.sort(v)[::-1]
            shift = (np.cumsum(u) - self.radius) / np.arange(1, len(v) + 1)
            x = np.maximum(v - shift[np.flatnonzero(u > shift)[-1]], 0)
            return x * (self.radius / x.sum())
        if self.groups is not None:
            v = np.sign(v) * np.maximum(abs(v) - p * self.l1, 0)
            norms = self.norms(v)
            shrink = np.where(norms > p * self.t, 1 - p * self.t / np.where(norms > 0, norms, 1), 0)
            return shrink[self.groups] * v
        x = np.sign(v) * np.maximum(abs(v) - p * self.t, 0) / (1 + p * self.q)
        return np.minimum(np.maximum(x, self.lower), self.upper)

    def nearest_to_zero(self) -> np.ndarray:
        return self.prox(np.zeros(self.n, LONG), LONG(1))

    # ---- what float64 cannot see ----------------------------------------------------------------
    def noise(self, x: np.ndarray) -> float:
        """A bound on the rounding of F(x) and of a dual value near it, in float64.

        Products are known to (n + 2) EPS (|A| |x| + |b|) each; the loss multiplies that by its
        slope, the residual, and the squares of what is not known are not known either.
        """
        z = self.margins(x)
        b = abs(self.b)[:, None] if self.loss in REGRESSIONS else LONG(0)
        size = abs(self.A) @ abs(x.reshape(self.classes, -1)).T + b
        unknown = (self.A.shape[1] + 4) * EPS * size
        value, u = self.smooth(z)
        total = (abs(u) * unknown).sum() + self.bend * (unknown * unknown).sum()
        if self.loss == "poisson":  # entries of the dual point are multiplied by logarithms of b
            logs = abs(np.log(np.where(self.b > 0, self.b, 1))) + abs(z[:, 0])
            total = total + 4 * EPS * (abs(u[:, 0]) * (1 + logs)).sum()
        # The logarithm of a number near 1 is known to EPS, however small it is.
        total = total if self.loss in REGRESSIONS else total + 2 * EPS
        return 2 * total + 16 * (len(self.A) + self.n) * EPS * (value + self.penalty(x))

    def noise_of_dual(self, x: np.ndarray, y: np.ndarray) -> float:
        """What rounding of the dual point of x can take from a bound on F(y).

        It is known to EPS, and feasible to EPS times its columns, which y multiplies.
        """
        u = abs(self.smooth(self.margins(x))[1])
        size = abs(self.A) @ abs(y.reshape(self.classes, -1)).T
        return float((self.A.shape[1] + 4) * EPS * (u * size).sum())

    # ---- the residual, which decides where no gap is known --------------------------------------
    def lipschitz(self) -> np.longdouble:
        """Of the gradient, from float64's spectral norm of A in units in which A has size 1."""
        size = abs(self.A).max()
        if size == 0:
            return LONG(0)
        return self.bend * (LONG(np.linalg.norm((self.A / size).astype(float), 2)) * size) ** 2

    def residual(self, x: np.ndarray) -> np.longdouble:
        L = self.lipschitz()
        step = 1 / L if L > 0 else LONG(1)
        moved = (x - self.prox(x - step * self.grad(x), step)) / step
        return np.sqrt((moved * moved).sum())

    def residual_noise(self, x: np.ndarray) -> np.longdouble:
        """Rounding of the gradient in float64."""
        z = self.margins(x)
        b = abs(self.b)[:, None] if self.loss in REGRESSIONS else LONG(0)
        size = abs(self.A) @ abs(x.reshape(self.classes, -1)).T + b
        u = abs(self.smooth(z)[1]) + size
        pulled = (abs(self.A).T @ u).max()
        return 8 * (self.n + len(self.A)) * EPS * pulled * np.sqrt(LONG(self.n))

    def slope_at_zero(self) -> np.longdouble:
        """The length of the gradient at 0, or at the best constants alone where that is longer.

        Least squares with intercepts are solved with columns and targets whose mean is 0, and the
        length that counts is that of their gradient at 0.
        """
        at = np.zeros((1 + bool(self.intercepts), self.n), LONG)
        if self.intercepts:
            ones = self.A[:, -self.intercepts :].astype(float)
            at[1, -self.intercepts :] = np.linalg.lstsq(ones, self.b.astype(float))[0]
        return max(np.sqrt((g * g).sum()) for g in map(self.grad, at))

    def group_scale(self, v: np.ndarray) -> np.longdouble:
        """The largest s <= 1 for which s v is in the domain of r*, by bisection with an l1."""
        if np.ndim(self.l1) == 0:
            norms = self.norms(v)
            over = norms > self.t
            return (self.t[over] / norms[over]).min() if over.any() else LONG(1)

        def feasible(s: np.longdouble) -> bool:
            return bool((self.norms(np.maximum(s * abs(v) - self.l1, 0)) <= self.t).all())

        low, high = LONG(0), LONG(1)
        if feasible(high):
            return high
        if not feasible(LONG(1e-300)):
            return LONG(0)
        while not feasible(high / 2) and high > 0:  # s may be tiny
            high = high / 2
        low = high / 2
        for _ in range(70):
            middle = (low + high) / 2
            low, high = (middle, high) if feasible(middle) else (low, middle)
        return low

    # ---- lower bounds ---------------------------------------------------------------------------
    def lower_bound(self, x: np.ndarray) -> np.longdouble:
        """Weak duality with the residual at x, made feasible by scaling or by projection."""
        u = self.smooth(self.margins(x))[1]
        v = -self.pull(u)
        if self.radius is not None:
            return -self.conjugate(u) - self.radius * max(
                v.max(), LONG(0) if self.at_most else -INF
            )
        if self.groups is not None:
            alone = (self.t[self.groups] == 0) & (self.l1 * np.ones(self.n) == 0)
            if alone.any() and self.loss == "squares":
                u = self._orthogonal(u, self.A[:, alone])
                v = np.where(alone, LONG(0), -self.pull(u))
            return -self.conjugate(self.group_scale(v) * u)
        open_, t = self.q == 0, self.t
        up, down = np.isinf(self.upper) & open_, np.isinf(self.lower) & open_
        free = up & down & (t == 0)
        if free.any() and self.loss == "squares":
            u = self._orthogonal(u, self.A[:, free])
            v = -self.pull(u)
            v[free] = 0
        bad = (up & (v > t)) | (down & (-v > t))
        hard = bad & (t == 0)
        lost = LONG(0)
        if hard.any():
            # A slope that is rounding: what it costs for an x_j a hundred times as large as the
            # data explain. No proof, but then a minimiser would have to be that far away.
            if self.loss != "squares":
                return -INF
            size = np.sqrt((self.A * self.A).sum(0))
            if (abs(v[hard]) > 1e-15 * size[hard] * np.sqrt((u * u).sum())).any():
                return -INF
            reach = 100 * (abs(self.A) @ abs(x) + abs(self.b)).max() / size[hard]
            lost = (abs(v[hard]) * reach).sum()
            v, bad = np.where(hard, LONG(0), v), bad & ~hard
        s = (t[bad] / abs(v[bad])).min() if bad.any() else LONG(1)
        u, v = s * u, s * v
        # The supremum of v x - t |x| - q x^2 / 2 over the interval is at one of its ends, or at
        # the point where the slope vanishes.
        excess = np.sign(v) * np.maximum(abs(v) - t, 0)
        best = np.where(self.q > 0, excess / np.where(self.q > 0, self.q, 1), np.sign(excess) * INF)
        best = np.where(excess == 0, LONG(0), best)
        best = np.minimum(np.maximum(best, self.lower), self.upper)
        best = np.where(np.isinf(best), LONG(0), best)  # feasible to rounding: the slope is 0
        conjugate = (v * best - t * abs(best) - self.q * best * best / 2).sum()
        return -self.conjugate(u) - conjugate - lost

    @staticmethod
    def _orthogonal(u: np.ndarray, Z: np.ndarray) -> np.ndarray:
        basis: list[np.ndarray] = []
        for z in Z.T:
            size = abs(z).max()
            if size == 0:
                continue
            w = z / size
            start = np.sqrt((w * w).sum())
            for _ in range(3):
                for e in basis:
                    w = w - e * (e * w).sum()
            norm = np.sqrt((w * w).sum())
            if norm > 1e-15 * start:
                basis.append(w / norm)
        for _ in range(3):
            for e in basis:
                u = u - (e * (e * u[:, 0]).sum())[:, None]
        return u

    # ---- minimisers -----------------------------------------------------------------------------
    def polished(self, x: np.ndarray) -> np.ndarray:
        """For squares with a separable penalty: the minimiser on the coordinates off the kinks."""
        if self.groups is not None or self.radius is not None:
            return x
        if self.loss != "squares":
            return self.newton(x)
        kink = (self.t > 0) & (x == 0)
        S = ~kink & (x > self.lower) & (x < self.upper)
        if not S.any():
            return x
        w, B = x.copy(), self.A[:, S]
        size = abs(B).max(0)
        size = np.where(size > 0, size, LONG(1))
        B = B / size  # in units in which the columns have size 1
        rest = self.b - self.A[:, ~S] @ x[~S]
        H = B.T @ B + np.diag(self.q[S] / size / size)
        g = B.T @ rest - self.t[S] * np.sign(x[S]) / size
        step = solve(H, g)
        if step is None:
            return x
        new = step / size
        ok = (np.sign(new) == np.sign(x[S])) | (self.t[S] == 0)
        new = np.where(ok, new, 0)
        w[S] = np.minimum(np.maximum(new, self.lower[S]), self.upper[S])
        return w if self.value(w) < self.value(x) else x

    def newton(self, x: np.ndarray, steps: int = 12) -> np.ndarray:
        """Newton steps on the coordinates off the kinks, shortened until F falls."""
        value = self.value(x)
        for _ in range(steps):
            kink = (self.t > 0) & (x == 0)
            S = np.flatnonzero(~kink & (x > self.lower) & (x < self.upper))
            if not len(S) or len(S) > 80:
                return x
            H, g = self.hessian(x, S), self.grad(x)[S]
            g = g + self.t[S] * np.sign(x[S]) + self.q[S] * x[S]
            H[np.arange(len(S)), np.arange(len(S))] += self.q[S] + 1e-19 * abs(np.diag(H)).max()
            size = np.sqrt(np.where(np.diag(H) > 0, np.diag(H), 1))
            step = solve(H / size / size[:, None], -g / size)
            if step is None or not np.isfinite(step).all():
                return x
            step, factor, better = step / size, LONG(1), False
            while factor > 1e-4 and not better:
                new = x.copy()
                new[S] = x[S] + factor * step
                crossed = (np.sign(new[S]) != np.sign(x[S])) & (self.t[S] > 0)
                new[S] = np.clip(np.where(crossed, 0, new[S]), self.lower[S], self.upper[S])
                found = self.value(new)
                better, factor = bool(found < value), factor / 4
            if not better:
                return x
            x, value = new, found
        return x

    def hessian(self, x: np.ndarray, S: np.ndarray) -> np.ndarray:
        """Second derivatives of the loss by the coordinates S."""
        z, m = self.margins(x), len(self.A)
        d, C = self.A.shape[1], self.classes
        if C > 1:
            P = self.smooth(z)[1] * m + np.eye(C)[self.b.astype(int)]
            k, B = S // d, self.A[:, S % d]
            both = -P[:, k, None] * P[:, None, k]
            both = both + (k[:, None] == k) * P[:, k, None]
            return np.einsum("ij,ijl,il->jl", B, both, B) / m
        B, z = self.A[:, S], z[:, 0]
        if self.loss == "huber":
            D = (abs(z - self.b) < self.delta) * LONG(1)
        elif self.loss == "poisson":
            D = np.exp(np.minimum(z, 11000)) / m
        else:
            D = 1 / (2 + np.exp(z) + np.exp(-z)) / m
        return (B.T * D) @ B

    def coordinate_descent(self, x: np.ndarray, sweeps: int) -> np.ndarray:
        """Exact for squares, by prox-gradient steps for the others; separable penalties only."""
        if self.groups is not None or self.radius is not None or self.loss == "softmax":
            return x
        x = x.copy()
        L = self.bend * (self.A * self.A).sum(0)
        z = self.margins(x)
        for _ in range(sweeps):
            before = x.copy()
            for j in range(self.n):
                if L[j] == 0 and self.q[j] == 0:
                    continue
                g = self.A[:, j] @ self.smooth(z)[1][:, 0]
                old = x[j]
                v = L[j] * old - g
                new = np.sign(v) * max(abs(v) - self.t[j], LONG(0)) / (L[j] + self.q[j])
                x[j] = min(max(new, self.lower[j]), self.upper[j])
                z = z + (self.A[:, j] * (x[j] - old))[:, None]
            if (abs(x - before) <= 1e-18 * abs(x)).all():
                break
            z = self.margins(x)
        return x

    def fista(self, x: np.ndarray, iterations: int) -> np.ndarray:
        L = self.bend * (self.A * self.A).sum()
        if L == 0:
            return self.prox(x, LONG(1))
        y, t = x, LONG(1)
        for _ in range(iterations):
            new = self.prox(y - self.grad(y) / L, 1 / L)
            if ((y - new) * (new - x)).sum() > 0:
                t = LONG(1)
            t_new = (1 + np.sqrt(1 + 4 * t * t)) / 2
            x, y, t = new, new + (t - 1) / t_new * (new - x), t_new
        return x


def solve(H: np.ndarray, g: np.ndarray) -> np.ndarray | None:
    """H^-1 g by Gaussian elimination with pivots in extended precision; None if singular."""
    M = np.column_stack([H, g])
    k = len(g)
    for i in range(k):
        pivot = i + int(abs(M[i:, i]).argmax())
        if abs(M[pivot, i]) <= 1e-17 * abs(H).max():
            return None
        M[[i, pivot]] = M[[pivot, i]]
        M[i] = M[i] / M[i, i]
        for r in range(k):
            if r != i:
                M[r] = M[r] - M[r, i] * M[i]
    return M[:, k]
