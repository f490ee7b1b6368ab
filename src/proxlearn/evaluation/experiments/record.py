"""One optimizer on one block of instances: what the rows are made of."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.methods.optimizers import Optimizer
from proxlearn.methods.optimizers.optimizer import most_iterations, rule_of
from proxlearn.methods.rules.observed import Observed
from proxlearn.methods.scheme import Coefficients, Rule, Scheme, View
from proxlearn.problems.problem import Problem
from proxlearn.problems.tensors import start_point
from proxlearn.solving.first_order import Progress
from proxlearn.solving.solver import solve

Arrays = dict[str, npt.NDArray[Any]]
Told = Callable[[int], None] | None
BARE: dict[str, Any] = {"safeguard": False, "polish": False}
"""A method is measured by itself: whatever `solve` can do to help it is switched off."""
POINTS = 64
"""Iterates whose F is computed together: one product with A for all, in place of one for each."""


class _Recorder:
    """A callback that keeps F(x_k) in float64, and a clock that stands still meanwhile.

    `solve(record=True)` would compute the certificate too, a gradient more an iteration.
    """

    def __init__(self, problem: Problem, gradients: int, told: Told):
        exact, each = problem.to(torch.float64), torch.arange(problem.batch, device=problem.device)
        self.instances = [exact.select(i) for i in each.split(1)]
        self.gradients, self.told = gradients, told
        self.x = start_point(problem, None).double()
        self.waiting = [self.x.clone()]
        self.objective: list[Tensor] = []
        self.spent = [torch.zeros(problem.batch, dtype=torch.float64, device=problem.device)]
        self.seconds = [0.0]
        self.paused = 0.0

    def __call__(self, progress: Progress) -> None:
        began = time.perf_counter()
        self.seconds.append(progress.seconds - self.paused)
        self.spent.append(self.spent[-1].clone())
        self.spent[-1][progress.index] += self.gradients
        self.x[progress.index] = progress.x.double()
        self.waiting.append(self.x.clone())
        if len(self.waiting) == POINTS:
            self.evaluate()
        if self.told is not None:
            self.told(progress.iteration)
        self.paused += time.perf_counter() - began

    def evaluate(self) -> None:
        """F at all points that wait for it."""
        if self.waiting:
            points = torch.stack(self.waiting, 1)  # (B, points, n)
            values = [p.objective(x) for p, x in zip(self.instances, points, strict=True)]
            self.objective.append(torch.stack(values, 1))
            self.waiting.clear()


def record_gap(
    problem: Problem, optimizer: Optimizer, iterations: int, told: Told = None
) -> Arrays:
    """objective and gradients (K+1, B), seconds (K+1,), from x_0 on.

    An optimizer with a fixed number of layers ends there. Where all instances broke down before,
    the last row stands for the rest.
    """
    K = min(iterations, most_iterations(optimizer) or iterations)
    problem.lipschitz()  # before the clock starts: it is remembered
    recorder = _Recorder(problem, optimizer.gradients, told)
    solve(problem, optimizer, tol=0, max_iter=K, callback=recorder, **BARE)
    recorder.evaluate()
    rows = {
        "objective": torch.cat(recorder.objective).cpu().numpy(),
        "gradients": torch.stack(recorder.spent).cpu().numpy(),
        "seconds": np.array(recorder.seconds),
    }
    last = np.minimum(np.arange(K + 1), len(rows["seconds"]) - 1)
    return {name: values[last] for name, values in rows.items()}


def record_bias(problem: Problem, optimizer: Any, iterations: int, told: Told = None) -> Arrays:
    """b1 and b2, their norms (K, B) at iterations 0, ..., K-1, and seconds (K,)."""
    rule = rule_of(optimizer)
    seen: list[tuple[Tensor, Tensor]] = []
    seconds: list[float] = []
    if not isinstance(rule, Rule):
        raise InputError("norms of b1 and b2 need a rule of the scheme, such as 'lasso-pba12'")

    def watch(progress: Progress) -> None:
        seconds.append(progress.seconds)
        if told is not None:
            told(progress.iteration)

    def look(view: View, c: Coefficients) -> None:
        x = view.x
        b1, b2 = (torch.as_tensor(b, dtype=x.dtype, device=x.device) for b in (c.b1, c.b2))
        b1, b2 = b1.expand_as(x), b2.expand_as(x)
        seen.append((b1.norm(dim=-1).double(), b2.norm(dim=-1).double()))

    watched = Scheme(Observed(rule, look))
    solve(problem, watched, tol=0, max_iter=iterations, callback=watch, **BARE)
    if any(len(b1) != problem.batch for b1, _ in seen) or len(seen) != iterations:
        raise InputError(f"the rule broke down on some instance within {iterations} iterations")
    b1, b2 = (torch.stack(norms).cpu().numpy() for norms in zip(*seen, strict=True))
    return {"b1": b1, "b2": b2, "seconds": np.array(seconds)}
