"""What the paper asks of an optimizer, measured for any of them.

- Fixed point: started at a minimiser, it must stay there.
- Convergence: from any start it must reach the minimum.
- What that implies for the scheme: p bounded and positive, b1 and b2 vanishing as k grows.
- The space of rules: the Jacobian of the update by its inputs is bounded.
- Units: (s A, t b, s t lam) is the same problem as (A, b, lam) with x in units of t/s, so a method
  that knows no units needs the same number of iterations.

Methods are measured by themselves, without the safeguard and without the core, in float64.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.evaluation.competitors import named
from proxlearn.evaluation.training_job import sized
from proxlearn.methods.optimizers import Optimizer
from proxlearn.methods.optimizers.optimizer import most_iterations, rule_of
from proxlearn.methods.rules.differentiated import Differentiated
from proxlearn.methods.rules.observed import Observed
from proxlearn.methods.scheme import Coefficients, Rule, Scheme, View
from proxlearn.problems.operators import Dense
from proxlearn.problems.problem import Problem
from proxlearn.solving.first_order import Progress
from proxlearn.solving.solution import Status
from proxlearn.solving.solver import solve
from proxlearn.training import families
from proxlearn.watch import Watch, portion

LEVEL = 1e-6
"""The relative gap (F - F*) / |F*| that counts as converged."""
RESCALINGS = {"A": (10.0, 1.0), "b": (1.0, 10.0), "lam": (math.sqrt(10), math.sqrt(10))}
"""Factors s of A and t of b for each change of units; lam is multiplied by s t."""
_POWERS = {"lam": (1, 1), "lam2": (2, 0), "radius": (-1, 1), "lower": (-1, 1), "upper": (-1, 1)}
"""Powers of s and t with which a penalty's numbers change."""


@dataclass(frozen=True)
class Findings:
    """What one optimizer was measured to do on B problems, K iterations each."""

    drift: float
    """The largest |x_k - x*| / |x*| when started at x*; infinite where it broke down."""
    iterations: Tensor
    """Iterations to `LEVEL` from a random start, (B,); infinite where K were too few."""
    rescaled: dict[str, Tensor | None]
    """The same for the problem in other units; None where the family has no such units."""
    step: tuple[float, float] | None
    """The least and largest p L over all coordinates and iterations; None outside the scheme."""
    bias: dict[str, tuple[float, float]] | None
    """Mean |b1| and |b2| relative to |x*|, in the first and in the last iteration."""
    jacobian: float | None
    """The largest norm of the update's Jacobian (`rules.differentiated`); None outside the scheme,
    and where the rule needs two gradients."""

    @property
    def share(self) -> float:
        """Share of the problems on which it got to `LEVEL`."""
        return self.iterations.isfinite().double().mean().item()


@dataclass(frozen=True)
class Case:
    """The problems of an audit: where the minimisers are, and where runs start."""

    problem: Problem
    minimiser: Tensor
    """(B, n)"""
    minimum: Tensor
    """F*, (B,)."""
    start: Tensor
    """(B, n)"""

    @cached_property
    def rescaled(self) -> "dict[str, Case | None]":
        """The same case in other units, by the array that is multiplied by 10."""
        return {what: self.scaled(s, t) for what, (s, t) in RESCALINGS.items()}

    def scaled(self, s: float, t: float) -> "Case | None":
        """The same case with (s A, t b); None where the problem does not have these units."""
        f, r = self.problem.f.as_glm(), self.problem.r
        entries = [] if f is None else f.A.numbers()
        if f is None or len(entries) != 1 or entries[0].ndim != 3:
            return None  # where A is not one dense array
        if not f.scales_with_target and t != 1:
            return None  # labels have no unit, so that b cannot be scaled
        changes: dict[str, Any] = {"A": Dense(s * entries[0])}
        if f.scales_with_target:
            changes["b"] = t * f.b
        powers = {e.name: _POWERS[e.name] for e in fields(r) if e.name in _POWERS}  # type: ignore[arg-type]
        numbers = {name: s**i * t**j * getattr(r, name) for name, (i, j) in powers.items()}
        problem = self.problem.replaced(replace(f, **changes), replace(r, **numbers))  # type: ignore[type-var]
        unit = t / s
        return Case(problem, unit * self.minimiser, t**2 * self.minimum, unit * self.start)


def audit(
    optimizers: Sequence[str],
    family: str = "gaussian-lasso",
    *,
    count: int = 8,
    iterations: int = 200,
    seed: int = 0,
    sizes: Sequence[str] = (),
    watch: Watch | None = None,
) -> dict[str, Findings | InputError]:
    """Measure optimizers on `count` problems of a family; an error says why one was not measured.

    `sizes` are parameters of the family that differ from its defaults, each as NAME=VALUE.

    >>> found = audit(["ista", "lasso"], count=2, iterations=100)
    >>> found["ista"].step, found["lasso"].share
    ((1.0, 1.0), 1.0)
    """
    if not optimizers:
        raise InputError("no optimizers were given; expected at least one, such as 'lasso-pa'")
    if iterations < 1:
        raise InputError(f"iterations is {iterations}; expected at least 1")
    case = sample(family, count, seed, sizes)
    found: dict[str, Findings | InputError] = {}
    parts = 1 + len(optimizers)
    for i, name in enumerate(optimizers, 1):
        told = portion(watch, i, i + 1, parts)
        try:
            found[name] = measure(case, named([name], family)[name], iterations, name, told)
        except InputError as error:
            found[name] = error
    return found


def sample(family: str, count: int, seed: int, sizes: Sequence[str] = ()) -> Case:
    """Problems of a family in float64, with minimisers to a gap of 1e-12 and normal starts.

    The starts are as long as the minimisers, and inside the set where r is one.
    """
    generator = torch.Generator().manual_seed(seed)
    chosen = sized(families.get(family), sizes)
    problem = chosen.sample(count, generator, dtype=torch.float64)
    solver = "ppa" if problem.f.gradients_are_free else "fista-restart"
    solution = solve(problem, solver, tol=1e-12, max_iter=100_000)
    if not solution.solved:
        missed = sum(s != Status.SOLVED for s in solution.status)
        raise InputError(
            f"{missed} of {count} problems of {family} have no minimiser certified to 1e-12; "
            "choose another seed or family"
        )
    x = solution.x
    direction = torch.randn(x.shape, generator=generator, dtype=x.dtype)
    start = direction / direction.norm(dim=-1, keepdim=True) * _length(x)
    if not problem.r.finite:
        start = problem.r.prox(start, problem.safe_step())
    return Case(problem, x, solution.objective, start)


def measure(
    case: Case, optimizer: Optimizer, iterations: int, name: str = "", watch: Watch | None = None
) -> Findings:
    """All measurements of one optimizer; an unrolled one has as many iterations as layers."""
    K = min(iterations, most_iterations(optimizer) or iterations)
    rescaled: dict[str, Tensor | None] = {}
    for i, (what, other) in enumerate(case.rescaled.items()):
        if watch is not None:
            watch(f"{name}, {what} in other units", i, len(case.rescaled) + 2)
        rescaled[what] = None if other is None else reach(other, optimizer, K)
    if watch is not None:
        watch(f"{name}, fixed point and convergence", len(rescaled), len(rescaled) + 2)
    seen = _Seen(case)
    rule = rule_of(optimizer)
    inside = isinstance(rule, Rule)
    shown = Scheme(Observed(rule, seen)) if inside else optimizer
    return Findings(
        drift=drift(case, optimizer, K),
        iterations=reach(case, shown, K, tol=0),
        rescaled=rescaled,
        step=(seen.least, seen.largest) if inside else None,
        bias=seen.ends() if inside else None,
        jacobian=jacobian(case, rule, K) if inside else None,
    )


def jacobian(case: Case, rule: Any, iterations: int) -> float | None:
    """The largest ||J||_F / sqrt(n) of the update by y and g/L, over a run from the random start.

    None where the rule needs two gradients, or shows no Jacobian.
    """
    if rule.gradients != 1 or rule.looks_at != "y":
        return None
    seen = Differentiated(rule)
    _bare(case.problem, Scheme(seen), case.start, 0, iterations, lambda _: None)
    return seen.largest


def drift(case: Case, optimizer: Optimizer, iterations: int) -> float:
    """How far it goes from the minimiser when it starts there, relative to |x*|, at most."""
    star, unit = case.minimiser, _length(case.minimiser)
    farthest = 0.0

    def watch(progress: Progress) -> None:
        nonlocal farthest
        moved = (progress.x - star[progress.index]) / unit[progress.index]
        farthest = max(farthest, *moved.norm(dim=-1).tolist(), 0.0)

    solution = _bare(case.problem, optimizer, star, 0, iterations, watch)
    return math.inf if Status.NUMERICAL_ERROR in solution.status else farthest


def reach(case: Case, optimizer: Optimizer, iterations: int, tol: float = LEVEL / 10) -> Tensor:
    """Iterations until (F - F*) / |F*| is at most `LEVEL`, (B,); infinite where that never was.

    An instance certified to `tol` is there, and drops out of the work.
    """
    tiny = torch.finfo(case.minimum.dtype).tiny
    goal = case.minimum + LEVEL * case.minimum.abs().clamp(min=tiny)
    first = torch.where(case.problem.objective(case.start) <= goal, 0.0, torch.inf).to(goal.dtype)
    x = case.start.clone()

    def watch(progress: Progress) -> None:
        x[progress.index] = progress.x
        there = case.problem.objective(x) <= goal
        first[there] = first[there].clamp(max=progress.iteration)

    solution = _bare(case.problem, optimizer, case.start, tol, iterations, watch)
    there = solution.objective <= goal  # instances that are solved are missing from the callback
    first[there] = torch.minimum(first, solution.iterations.to(first.dtype))[there]
    return first


def _bare(
    problem: Problem,
    optimizer: Optimizer,
    x0: Tensor,
    tol: float,
    iterations: int,
    watch: Callable[[Progress], None],
) -> Any:
    """A run of the method by itself, without safeguard and without an exact end."""
    switches: dict[str, Any] = {"safeguard": False, "polish": False}
    return solve(
        problem, optimizer, x0=x0, tol=tol, max_iter=iterations, callback=watch, **switches
    )


class _Seen:
    """The coefficients of a run, iteration by iteration."""

    def __init__(self, case: Case):
        self.unit = _length(case.minimiser).mean()
        self.least, self.largest = math.inf, -math.inf
        self.bias: dict[str, list[float]] = {"b1": [], "b2": []}

    def __call__(self, view: View, c: Coefficients) -> None:
        relative = c.p / view.problem.safe_step()
        self.least = min(self.least, relative.min().item())
        self.largest = max(self.largest, relative.max().item())
        for name, values in self.bias.items():
            b = torch.as_tensor(getattr(c, name), dtype=view.x.dtype).expand_as(view.x)
            values.append((b.norm(dim=-1).mean() / self.unit).item())

    def ends(self) -> dict[str, tuple[float, float]]:
        """Each bias in the first and in the last iteration."""
        return {name: (values[0], values[-1]) for name, values in self.bias.items()}


def _length(x: Tensor) -> Tensor:
    """|x|, (B, 1); 1 where x is 0."""
    length: Tensor = x.norm(dim=-1, keepdim=True)
    return torch.where(length > 0, length, torch.ones_like(length))
