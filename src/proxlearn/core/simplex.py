"""Least squares on the simplex, one problem at a time, with working sets of columns.

    minimise over x    1/2 |A x - b|^2      subject to    x >= 0 and sum x = radius

or sum x <= radius. The active-set method of the core solves the problem on a working set of
columns; one product with A^T then certifies it on all of them by the gap of Frank and Wolfe,

    F(x) - F* <= radius max_j c_j - c^T x,      c = A^T (b - A x)

and brings in the columns with the largest c_j.
"""

import math
import time
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from proxlearn.core import kernel
from proxlearn.core.penalty_kinds import Simplex
from proxlearn.core.scaling import MODERATE
from proxlearn.core.shared_matrix import FIRST_NEW, PART, compiled, prepared
from proxlearn.core.single import Glm, Limits, matrix_of, of_problem

Array = npt.NDArray[np.float64]

ALL_AT_ONCE = 512
"""Columns up to which the working set is all of them.

On 12 simulated problems of 60 x 300 to 50 x 8000 (mixtures of 8 columns, and Gaussian columns) 128
takes 0.99 times as long, from 0.3 times on 60 x 500 to 2.9 times on 100 x 300, and 2048 takes 1.7
times as long, up to 22 times (2026-11-19, CPU time).
"""
FIRST = 64
"""Columns of the first working set, and least number that join it later. 16, 32 and 128 take 1.04,
1.04 and 1.10 times as long on those of the problems above that have more than 512 columns."""
EPS = float(np.finfo(float).eps)
CONSTRAINTS = (0.0, 0.0, 0.0, math.inf)
"""l1, l2, lower and upper of each coordinate."""


class OnSimplex:
    """One problem, in units in which its numbers have moderate size.

    The units are one power of two for all columns, since a sum of x in different units would be
    another constraint.
    """

    def __init__(self, glm: Glm, i: int, start: Array | None):
        penalty = glm.penalty
        assert isinstance(penalty, Simplex)
        A = matrix_of(glm, i)
        self.A, self.b = A, of_problem(glm.b, i)
        level = of_problem(glm.level, i)
        self.radius, self.slack = float(np.max(level)), penalty.slack
        self.single, self.start = A.dtype == np.float32, start
        self.x_power = self.power = 0
        entries = A.data if scipy.sparse.issparse(A) else A
        if glm.largest is not None and glm.A.ndim == 2:
            size = glm.largest
        else:
            size = kernel.largest_magnitude(entries) if entries.size else 0.0
        sizes = (size, kernel.largest_magnitude(self.b), self.radius)
        if not all(v == 0.0 or MODERATE[0] <= v <= MODERATE[1] for v in sizes):
            self._rescale(*sizes)

    def _rescale(self, size: float, target: float, radius: float) -> None:
        """Divide x by a power of two near the radius, and the residual by one near its size."""
        self.x_power = exponent(radius)
        self.power = max(exponent(target), exponent(size) + self.x_power)
        shift, A = self.x_power - self.power, self.A
        self.given = A, self.b
        if scipy.sparse.issparse(A):
            self.A = A.astype(np.float64)
            self.A.data = np.ldexp(self.A.data, shift)
        else:
            self.A = np.ldexp(A.astype(np.float64), shift)
        self.b = np.ldexp(self.b, -self.power)
        self.radius, self.single = math.ldexp(radius, -self.x_power), False

    def solve(self, limits: Limits, until: float) -> tuple[Any, ...]:
        """x, intercept, objective, gap, status, iterations and passes."""
        n, rounds, passes, status = self.A.shape[1], 0, 1.0, 1
        working, level = self._first(), self._level()
        while True:
            x, numbers = self._on(working, limits, rounds, until)
            rounds += max(int(numbers[3]), 1)
            if len(working) == n and numbers[2] == 0:
                objective, gap, status = float(numbers[0]), float(numbers[1]), 0
                break
            objective, gap, c = self._certify(x)
            passes += 1.0
            if not math.isfinite(objective):
                status = 3
            elif gap <= max(limits.tol * objective, EPS * level):
                status = 0
            elif time.perf_counter() >= until:
                status = 2
            if status != 1 or rounds >= limits.max_iter or len(working) == n:
                break
            grown = self._grow(working, x, c)
            if len(grown) == len(working):
                break
            working = grown
        if self.single and status == 0:
            x, objective, gap = self._rounded(x, objective - gap)
            status = 0 if gap <= max(limits.tol * objective, EPS * level) else 1
        if self.x_power or self.power:
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                x, objective, gap, status = self._in_units_of_the_user(
                    x, objective, gap, status, limits.tol, level
                )
        return x, 0.0, objective, gap, status, rounds, passes

    def _level(self) -> float:
        """F at the feasible point nearest to 0, where products that rounding hides count as 0."""
        n, u = self.A.shape[1], self.b
        if not self.slack:
            x = np.full(n, self.radius / n)
            z, size = self.A @ x, abs(self.A) @ x
            u = u - np.where(np.abs(z) > n * EPS * size, z, 0.0)
        return 0.5 * float(u @ u)

    def _first(self) -> Any:
        """All columns, or those that alone fit b best and those of the start."""
        n = self.A.shape[1]
        if n <= ALL_AT_ONCE:
            return np.arange(n)
        q = self._correlations(self.b)
        norms = self._norms
        score = q - 0.5 * self.radius * norms * norms
        best = np.argpartition(score, -FIRST)[-FIRST:]
        if self.start is not None:
            best = np.union1d(best, np.flatnonzero(self.start[:n] > 0))
        return np.sort(best)

    def _grow(self, working: Any, x: Array, c: Array) -> Any:
        """The support and the columns with the largest c_j above those of the support."""
        support = working[x[working] > 0]
        multiplier = max(float(c @ x) / self.radius, 0.0 if self.slack else -math.inf)
        score = np.where(c > multiplier, c - multiplier, 0.0)
        score[working] = 0.0
        want = max(FIRST, len(support))
        best = np.argpartition(score, -want)[-want:] if len(score) > want else np.arange(len(score))
        return np.union1d(working, best[score[best] > 0])

    def _on(self, working: Any, limits: Limits, rounds: int, until: float) -> tuple[Array, Array]:
        """The minimiser over a working set, and the numbers of `SharedProblems.solve`."""
        n = self.A.shape[1]
        A = self.A if len(working) == n else self.A[:, working]
        shared = prepared(A, None, CONSTRAINTS, None, limits.tol, self.radius, self.slack)
        found, numbers = np.empty((1, len(working))), np.zeros((1, 5))
        left = math.inf if until == math.inf else max(until - time.perf_counter(), 0.0)
        most = max(limits.max_iter - rounds, 1)
        compiled(shared, limits.tol).solve(self.b[None], found, numbers, False, most, left)
        x = np.zeros(n)
        x[working] = found[0]
        return x, numbers[0]

    def _certify(self, x: Array) -> tuple[float, float, Array]:
        """F(x), the gap of Frank and Wolfe with what rounding may hide of it, and c."""
        u = self.b - self.A @ x
        c, length = self._correlations(u), math.sqrt(float(u @ u))
        hidden = 8.0 * EPS * length * self._norms
        most = max(float(np.max(c + hidden)), 0.0 if self.slack else -math.inf)
        gap = abs(self.radius * most - float((c - hidden) @ x))
        return 0.5 * length * length, gap, c

    def _correlations(self, u: Array) -> Array:
        return np.asarray(u @ self.A, dtype=np.float64)

    @cached_property
    def _norms(self) -> Array:
        A = self.A
        if scipy.sparse.issparse(A):
            square = A.astype(np.float64).power(2).sum(axis=0)
        else:
            square = np.einsum("ij,ij->j", A, A, dtype=np.float64)
        return np.sqrt(np.asarray(square, dtype=np.float64).ravel())

    def _rounded(self, x: Array, bound: float) -> tuple[Array, float, float]:
        """x in single precision, with its objective and gap."""
        x = rounded_on_simplex(x)
        u = self.b - self.A @ x
        objective = 0.5 * float(u @ u)
        return x, objective, abs(objective - bound)

    def _in_units_of_the_user(
        self, x: Array, objective: float, gap: float, status: int, tol: float, level: float
    ) -> tuple[Array, float, float, int]:
        """x, objective, gap and status; what the units of the largest numbers hid counts again."""
        A, b = self.given
        bound = float(np.ldexp(max(objective - gap, 0.0), 2 * self.power))
        x = np.ldexp(x, self.x_power)
        x = rounded_on_simplex(x) if A.dtype == np.float32 else x
        u = b - A @ x
        power = exponent(float(np.abs(u).max(initial=0.0)))
        u = np.ldexp(u, -power)
        objective = float(np.ldexp(0.5 * float(u @ u), 2 * power))
        gap = max(float(np.ldexp(gap, 2 * self.power)), objective - bound)
        if not (math.isfinite(objective) and np.isfinite(x).all()):
            status = 3  # float64 cannot hold the answer
        elif status == 0 and gap > max(
            tol * objective, EPS * float(np.ldexp(level, 2 * self.power))
        ):
            status = 1
        return x, objective, gap, status


def solve_as_given(
    A: Any, largest: float, b: Array, radius: float, slack: bool, limits: Limits
) -> tuple[Any, ...] | None:
    """Solve a dense problem with few columns by one compiled call; None where it takes more.

    The numbers are those of `OnSimplex.solve`.
    """
    if A.shape[1] > ALL_AT_ONCE or A.dtype != np.float64 or limits.seconds < math.inf:
        return None
    found: tuple[Any, ...] | None = kernel.solve_on_simplex(
        A, largest, b, radius, slack, FIRST_NEW, PART, limits.tol, limits.max_iter
    )
    return found


def exponent(size: float) -> int:
    """The exponent of the power of two next to a size; 0 for 0."""
    return int(np.frexp(size)[1]) if size > 0.0 else 0


def rounded_on_simplex(x: Array) -> Array:
    """x with entries of float32 whose sum is that of x, up to the rounding of the smallest one.

    The rounding error of each entry is added to the next smaller one.
    """
    out, left = np.zeros_like(x), 0.0
    for j in sorted(np.flatnonzero(x).tolist(), key=lambda j: -x[j]):
        wanted = float(x[j]) + left
        out[j] = float(np.float32(max(wanted, 0.0)))
        left = wanted - float(out[j])
    return out
