"""One wide LASSO, such as genes give, by the compiled core and by scikit-learn."""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from proxlearn import __version__
from proxlearn.evaluation.coordinate_descent import lasso as peer
from proxlearn.evaluation.report.page_data import Array, Curve, Experiment, Method, Panel
from proxlearn.problems.constructors import lasso
from proxlearn.problems.problem import Problem
from proxlearn.solving.solver import solve
from proxlearn.watch import Watch

ROWS, COLUMNS, MODULES, CAUSES = 100, 10_000, 200, 20
"""Samples, columns, groups of correlated columns, and columns that the target depends on."""
LEVEL = 0.05
"""lambda / lambda_max."""
END = 1e-9
"""Relative gap at which the curve of scikit-learn ends."""
STEP, MOST = 1.3, 40
"""How many times more sweeps each run of scikit-learn has than the one before, and most runs."""
REPEATS = 2
"""Runs of each length; the fastest counts."""


@dataclass(frozen=True)
class Measured:
    """The curves of both solvers, and the certified relative gaps of their last answers."""

    core: Curve
    peer: Curve
    gaps: tuple[float, float]
    columns: int

    def seconds_to(self, curve: Curve, level: float = 1e-6) -> float:
        """The time at the first point below the level; infinite where there is none."""
        below = np.flatnonzero(curve.value < level)
        return float(curve.seconds[below[0]]) if len(below) else float("inf")

    def sentence(self) -> str:
        """What was seen, in one line."""
        ours, theirs = self.seconds_to(self.core), self.seconds_to(self.peer)
        certified = "certified relative gaps {:.0e} and {:.0e}".format(*self.gaps)
        return (
            f"On one problem of {ROWS} × {self.columns:,} the compiled core takes "
            f"{1e3 * ours:.1f} ms to a relative gap of 1e-06, scikit-learn {1e3 * theirs:.1f} ms, "
            f"{theirs / ours:.0f} times as long ({certified} at the end)."
        )

    def experiment(self, seed: int) -> Experiment:
        """What the page shows."""
        methods = (
            Method("core", "proxlearn", self.core),
            Method("scikit-learn", "scikit-learn", self.peer),
        )
        return Experiment("wide", (Panel("", methods, 1),), self._card(seed))

    def _card(self, seed: int) -> dict[str, Any]:
        """What the page says of the problem."""
        return {
            "title": f"One wide LASSO, {ROWS} × {self.columns:,}, λ = {LEVEL} λ_max",
            "x": "time",
            "seed": seed,
            "version": __version__,
            "optimum": "float64, certified to a relative gap of 1e-12",
            "data": f"{self.columns:,} columns in {MODULES} correlated groups, as genes are; the "
            f"target depends on {CAUSES} of them and on noise.",
            "notes": [
                "An iteration of the core is a working set, one of scikit-learn a sweep over all "
                f"columns. Every point is a call of its own, the fastest of {REPEATS}.",
            ],
        }


def draw(seed: int, columns: int = COLUMNS) -> tuple[Array, Array, float]:
    """A (m, n) in Fortran order, b and lambda."""
    rng = np.random.default_rng(seed)
    modules = rng.standard_normal((ROWS, MODULES))
    A = modules[:, rng.integers(0, MODULES, columns)] + rng.standard_normal((ROWS, columns))
    A = np.asfortranarray((A - A.mean(0)) / A.std(0))
    b = A[:, rng.choice(columns, CAUSES, replace=False)] @ rng.standard_normal(CAUSES)
    b += 0.3 * b.std() * rng.standard_normal(ROWS)
    b -= b.mean()
    return A, b, LEVEL * float(np.abs(A.T @ b).max())


def measure(seed: int = 0, columns: int = COLUMNS, watch: Watch | None = None) -> Measured:
    """Both solvers with more and more iterations, until the core is done and the peer is close."""
    from sklearn.exceptions import ConvergenceWarning

    A, b, lam = draw(seed, columns)
    problem = lasso(A, b, lam=lam)
    best = solve(problem, tol=1e-12, max_iter=10_000)
    optimum = float(best.objective[0])
    working_sets = range(1, int(best.iterations[0]) + 1)
    core = _curve(problem, optimum, working_sets, lambda k: solve(problem, tol=1e-12, max_iter=k).x)
    if watch is not None:
        watch("scikit-learn", 1, 2)
    sweeps = sorted({round(STEP**e) for e in range(MOST)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # so many sweeps, whatever is left
        theirs = _curve(problem, optimum, sweeps, lambda k: peer(lam / ROWS, k).fit(A, b).coef_)
    return Measured(core[0], theirs[0], (core[1], theirs[1]), columns)


def _curve(
    problem: Problem, optimum: float, counts: Sequence[int], answer: Callable[[int], Array]
) -> tuple[Curve, float]:
    """Relative gap and time after each number of iterations; the certified gap of the last x."""
    exact = problem.in_tensors()
    nothing = torch.zeros(1, problem.n, dtype=torch.float64)
    points = [(0, 0.0, float(exact.objective(nothing)[0]) / optimum - 1)]
    certified = float("inf")
    for k in counts:
        seconds = float("inf")
        for _ in range(REPEATS):
            began = time.perf_counter()
            x = answer(k)
            seconds = min(seconds, time.perf_counter() - began)
        found = exact.certificate(torch.from_numpy(x)[None])
        certified = float(found.gap[0] / found.objective[0])
        points.append((k, seconds, max(float(found.objective[0]) / optimum - 1, 0.0)))
        if certified < END:
            break
    iterations, spent, value = (np.array(column) for column in zip(*points, strict=True))
    return Curve(iterations, iterations, np.maximum.accumulate(spent), value), certified
