"""Who does the work: PyTorch, the reference, or the compiled loop, where it is there and suits."""

import os
import sys
import time
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch

from proxlearn.arrays import start_point
from proxlearn.engine_names import AUTO, ENGINES
from proxlearn.errors import InputError, unknown
from proxlearn.problem import Problem
from proxlearn.rules import CompactRule, Fista
from proxlearn.smooth import GLM
from proxlearn.solution import Solution, Status

VARIABLE = "PROXLEARN_ENGINE"
"""Environment variable with the engine of solves that do not name one."""
WORTH = 1e7
"""Numbers in all A together from which it is worth to load the compiled loop, about a second."""

ENOUGH = 150
"""Iterations of the compiled loop; who is not solved then is hard, and the reference tries more."""


def compiled_suits(engine: str | None, problem: Problem, method: Any, plain: bool) -> bool:
    """True where the compiled loop shall do the work.

    `plain` is a solve that the loop has nothing to say to: one that is recorded, timed or watched.
    """
    name = engine or os.environ.get(VARIABLE) or AUTO
    if name not in ENGINES:
        raise unknown("engine", name, ENGINES)
    if name == "torch" or (name == AUTO and not _worth(problem)):
        return False
    fits = not plain and _rule_of(method) is not None and _there()
    if fits:
        from proxlearn.compiled import engine as loop

        fits = loop.suits(problem)
    if name == "compiled":
        if not fits:
            raise InputError(_why_not(problem, method, plain))
        return True
    return fits and _prepared(problem)


def _worth(problem: Problem) -> bool:
    """True where a loop may be loaded already, or there is enough work to load one."""
    return "proxlearn.compiled.engine" in sys.modules or _large(problem)


def _large(problem: Problem) -> bool:
    f = problem.f
    return isinstance(f, GLM) and f.A.entries * problem.batch >= WORTH


def _prepared(problem: Problem) -> bool:
    """True where the loop is loaded, or is on disk and worth loading; else it is made by and by."""
    from proxlearn.compiled import cache as loops
    from proxlearn.compiled.engine import variant

    name = variant(problem)
    if loops.loaded(name) or not _large(problem):
        return loops.loaded(name)
    if loops.ready(name):
        return True
    loops.make_in_background(name)
    return False


def _rule_of(method: Any) -> Any:
    """The rule of a scheme that the loop knows: a compact one, or FISTA with restart."""
    rule = getattr(method, "rule", None)
    known = isinstance(rule, CompactRule) or (isinstance(rule, Fista) and rule.restart)
    return rule if known else None


@cache
def _there() -> bool:
    """True where Numba is installed and has a place for what it compiles."""
    if find_spec("numba") is None:
        return False
    try:
        import_module("proxlearn.compiled.engine")
    except RuntimeError:
        return False
    return True


def _why_not(problem: Problem, method: Any, plain: bool) -> str:
    if not _there():
        return (
            "the compiled engine needs numba and a folder that it can write (NUMBA_CACHE_DIR): "
            "pip install numba, or engine='torch'"
        )
    if plain:
        return (
            "the compiled engine neither records nor calls back, and needs tol > 0 and no "
            "time_limit; use engine='torch'"
        )
    if _rule_of(method) is None:
        return "the compiled engine knows compact rules and 'fista-restart'; use engine='torch'"
    f, r = type(problem.f).__name__, type(problem.r).__name__
    return (
        f"the compiled engine does not solve {f} with {r} as given; expected least squares or "
        "logistic on the CPU, dense or sparse, with l1, elastic net (>= 0 too) or a box around 0; "
        "use engine='torch'"
    )


def solve_compiled(
    problem: Problem,
    method: Any,
    x0: Any,
    reference: Callable[..., Solution],
    *,
    tol: float,
    max_iter: int,
    safeguard: bool,
    polish: bool,
) -> Solution:
    """Solve with the compiled loop; `reference` goes on with the instances it did not solve."""
    from proxlearn.compiled import cache as loops
    from proxlearn.compiled.engine import options, run, variant

    began = time.perf_counter()
    rule = _rule_of(method)
    o = options(problem, rule, tol, min(max_iter, ENOUGH), safeguard, polish)
    x, numbers = run(problem, rule, None if x0 is None else start_point(problem, x0), o)
    loops.used(variant(problem))
    solved, objective, gap, iterations, gradients = torch.from_numpy(numbers).unbind(1)
    iterations, gradients = iterations.long(), gradients.long()
    status = [Status.SOLVED] * problem.batch
    left = (solved == 0).nonzero()[:, 0]
    if len(left):
        rest = reference(
            problem.select(left),
            method,
            tol=tol,
            max_iter=max_iter - int(iterations[left].min()),
            x0=x[left],
            safeguard=safeguard,
            polish=polish,
            engine="torch",
        )
        x[left], objective[left], gap[left] = rest.x, rest.objective, rest.gap
        iterations[left] += rest.iterations
        gradients[left] += rest.grad_evals
        for i, state in zip(left.tolist(), rest.status, strict=True):
            status[i] = state
    return Solution(
        x=x[0] if problem.single else x,
        objective=objective,
        gap=gap,
        status=tuple(status),
        iterations=iterations,
        grad_evals=gradients,
        seconds=time.perf_counter() - began,
    )
