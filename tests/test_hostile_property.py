"""Whatever the input: one line of words, or an answer whose every SOLVED is true."""

import time
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import proxlearn as pl
from hostile_problems import Hostile, Plain, hostile
from proxlearn.errors import InputError
from proxlearn.problems.tolerance import allowed_gap

TOL, MAX_ITER = 1e-6, 50
TINY = 1e-290
"""Where squares and products of numbers have left the range, nothing can be compared."""


def improved(plain: Plain, x: np.ndarray) -> float:
    """The best F that FISTA with restart finds from x in NumPy."""
    best, y, t = plain.objective(x), x, 1.0
    if not 0 < plain.L < np.inf:
        return best
    for _ in range(200):
        new = plain.prox(y - plain.smooth(y)[1] / plain.L, 1 / plain.L)
        value = plain.objective(new)
        if not np.isfinite(new).all() or not np.isfinite(value):
            break
        best = min(best, value)
        t = 1.0 if (y - new) @ (new - x) > 0 else t
        t_new = (1 + np.sqrt(1 + 4 * t * t)) / 2
        x, y, t = new, new + (t - 1) / t_new * (new - x), t_new
    return best


def residual(plain: Plain, x: np.ndarray) -> float:
    """The prox-gradient map at x relative to the gradient at 0; what stops without a gap."""
    L = plain.L if plain.L > 0 else 1.0
    moved = L * (x - plain.prox(x - plain.smooth(x)[1] / L, 1 / L))
    return float(np.linalg.norm(moved) / max(np.linalg.norm(plain.smooth(0 * x)[1]), TINY))


def check(plain: Plain, x: np.ndarray, solution: pl.Solution, i: int, case: Hostile) -> None:
    """The instance's numbers, recomputed in float64."""
    objective, gap = float(solution.objective[i]), float(solution.gap[i])
    assert np.isfinite(x).all()
    F = plain.objective(x)
    if not np.isfinite(F) or not np.isfinite(objective):
        assert solution.status[i] != pl.Status.SOLVED
        return
    noise = plain.noise(x) + 1e-12 * abs(F) + TINY
    assert abs(F - objective) <= noise
    best = improved(plain, x)
    assert F - best <= gap + noise
    at_zero = plain.objective(plain.prox(0 * x, 1.0))
    allowed = allowed_gap(TOL, abs(objective) + TINY, at_zero if np.isfinite(at_zero) else 0.0)
    if solution.status[i] == pl.Status.SOLVED and not gap <= 1.01 * allowed:
        assert gap == np.inf
        assert case.penalty in ("zero", "non-negative") or case.smooth in ("quadratic", "autograd")
        assert residual(plain, x) <= 1.01 * TOL + 1e-9


@pytest.mark.slow
@settings(
    max_examples=max(120, settings.default.max_examples),
    suppress_health_check=[HealthCheck.too_slow],
)
@given(hostile())
def test_one_line_or_a_true_answer(case):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        for engine in ("auto", "torch"):
            began = time.perf_counter()
            try:
                problem = case.build()
                solution = pl.solve(
                    problem, tol=TOL, max_iter=MAX_ITER, time_limit=5, engine=engine
                )
            except InputError as error:
                message = str(error)
            else:
                message = ""
            assert "\n" not in message
            if message:
                continue
            assert time.perf_counter() - began < 10
            rows = solution.x.reshape(problem.batch, -1).double().numpy()
            for i, plain in enumerate(case.instances()[: problem.batch]):
                check(plain, rows[i], solution, i, case)
                if not case.extreme[i]:
                    assert solution.status[i] != pl.Status.NUMERICAL_ERROR
