"""Natural units: a problem with very large or very small numbers, scaled by powers of two.

Squares of numbers beyond 1e154 or below 1e-154 leave the range of float64, and a duality gap of
numbers that became 0 proves nothing. Such a problem is solved in other units: with x = 2^k x' and
F = 2^l F' the data become numbers of size 1. Multiplying by a power of two is exact, so that
it is the same problem, and its certificate is one.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from proxlearn.problems.batch import leaves
from proxlearn.problems.powers import times_power
from proxlearn.problems.problem import Problem
from proxlearn.solving.solution import Solution, Status


class Units(NamedTuple):
    """What x and F are measured in, as exponents of 2, (B,) integers each."""

    variable: Tensor
    """k in x = 2^k x'."""
    objective: Tensor
    """l in F = 2^l F'."""

    @property
    def inverse(self) -> "Units":
        """The units of the original problem, measured in these."""
        return Units(-self.variable, -self.objective)


def in_natural_units(problem: Problem) -> tuple[Problem, Units] | None:
    """The problem in units in which its data are of size 1; None where its own will do.

    An instance whose smaller numbers would become 0 or inexact keeps its own units.
    """
    exponents = problem.f.natural_units()
    if exponents is None:
        return None
    units = Units(*(e.expand(problem.batch).clone() for e in exponents))
    for _ in range(2):
        scaled = _in_units(problem, units)
        if scaled is None or not any(bool(e.any()) for e in units):
            return None
        exact = _same(_in_units(scaled, units.inverse), problem)
        if bool(exact.all()):
            return scaled, units
        model = problem.f.as_glm()
        if model is not None and model.A.batch == 1:
            return None  # all instances share A and its scale
        for e in units:
            e[~exact] = 0
    return None


def _in_units(problem: Problem, units: Units) -> Problem | None:
    r = problem.r.in_units(*units)
    return None if r is None else problem.replaced(problem.f.in_units(*units), r)


def _same(back: Problem | None, problem: Problem) -> Tensor:
    """Instances whose numbers have come back unchanged, (B,)."""
    assert back is not None
    zero = torch.zeros(1, dtype=torch.int64)
    numbers = [*problem.f.numbers(), *leaves(problem.r.in_units(zero, zero))]
    same = torch.ones(problem.batch, dtype=torch.bool, device=problem.device)
    for a, b in zip([*back.f.numbers(), *leaves(back.r)], numbers, strict=True):
        if a.is_floating_point():
            same = same & (a == b).reshape(max(len(a), len(b)), -1).all(-1)
    return same


def restored(
    solution: Solution, scaled: Problem, units: Units, problem: Problem, tol: float
) -> Solution:
    """The solution of the scaled problem in the units of the original one.

    An x or an F that the original units cannot hold ends as a numerical error.
    """
    inner = solution.x.reshape(scaled.batch, -1)
    x = times_power(inner, units.variable)
    status = list(solution.status)
    objective, gap = solution.objective, solution.gap
    back = times_power(x, -units.variable)
    rounded = (back != inner).any(-1)
    if bool(rounded.any()):  # numbers at the end of the range: what counts is the rounded point
        c = scaled.certificate(back)
        objective = torch.where(rounded, c.objective, objective)
        gap = torch.where(rounded, c.gap, gap)
        fails = rounded & ~(gap <= scaled.allowed_gap(tol, objective))
    else:
        fails = rounded
    objective = times_power(objective, units.objective)
    fails = fails | ~objective.isfinite() | ~x.isfinite().all(-1)
    for i in fails.nonzero()[:, 0].tolist():
        if status[i] == Status.SOLVED:
            status[i] = Status.NUMERICAL_ERROR
    history = solution.history
    if history is not None:
        history = replace(
            history,
            objective=times_power(history.objective.T, units.objective).T,
            gap=times_power(history.gap.T, units.objective).T,
        )
    return replace(
        solution,
        x=x[0] if problem.single else x,
        objective=objective,
        gap=times_power(gap, units.objective),
        status=tuple(status),
        history=history,
    )


def watched(callback: Callable[..., None] | None, units: Units) -> Callable[..., None] | None:
    """The callback, with x in the units of the original problem."""
    if callback is None:
        return None
    call = callback

    def translated(progress: Any) -> None:
        call(replace(progress, x=times_power(progress.x, units.variable[progress.index])))

    return translated
