"""Many optimizers on one set of problems: objectives, gradients and time at every iteration."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from proxlearn import optimizers as registry
from proxlearn.errors import InputError
from proxlearn.optimizers import Optimizer
from proxlearn.problem import Problem
from proxlearn.solver import Solution, Status, solve

Watch = Callable[[str, int], None]
"""Told the name of the optimizer at work and its iteration, after each one."""


class Row(NamedTuple):
    """One line of long-format results."""

    optimizer: str
    instance: int
    iteration: int
    objective: float
    relative_gap: float
    grad_evals: int
    seconds: float


@dataclass(frozen=True)
class Run:
    """What one optimizer did: K iterations on B instances."""

    objective: Tensor
    """F(x_k), (K+1, B), float64."""
    grad_evals: Tensor
    """Gradient equivalents so far, (K+1, B)."""
    seconds: Tensor
    """Time so far for the whole batch, (K+1,), without the recording."""


@dataclass(frozen=True)
class Comparison:
    """Runs of several optimizers on the same B instances, against the same optimal values."""

    optimum: Tensor
    """F*, (B,), float64."""
    runs: Mapping[str, Run]

    def relative_gap(self, name: str) -> Tensor:
        """(F(x_k) - F*) / |F*| of every instance, (K+1, B)."""
        scale = self.optimum.abs().clamp(min=torch.finfo(torch.float64).tiny)
        return (self.runs[name].objective - self.optimum) / scale

    def mean_gap(self, name: str) -> Tensor:
        """The relative gap averaged over the instances, (K+1,)."""
        return self.relative_gap(name).mean(1)

    def iterations_to(self, name: str, eps: float) -> int | None:
        """The first k whose mean relative gap is below eps; None if there is none."""
        below = (self.mean_gap(name) < eps).nonzero()
        return int(below[0]) if len(below) else None

    def seconds_to(self, name: str, eps: float) -> float | None:
        """The time at that k, for the whole batch."""
        k = self.iterations_to(name, eps)
        return None if k is None else float(self.runs[name].seconds[k])

    def rows(self) -> Iterator[Row]:
        """Everything in long format: a row for each optimizer, instance and iteration."""
        for name, run in self.runs.items():
            objective, gap = run.objective.T.tolist(), self.relative_gap(name).T.tolist()
            gradients, seconds = run.grad_evals.T.tolist(), run.seconds.tolist()
            for i in range(len(objective)):
                for k, s in enumerate(seconds):
                    yield Row(name, i, k, objective[i][k], gap[i][k], gradients[i][k], s)


def optimum(
    problem: Problem, tol: float = 1e-12, max_iter: int = 20000, *, watch: Watch | None = None
) -> Tensor:
    """F* of every instance, (B,), float64: at most ``tol * F*`` too large, which is certified.

    Where a problem has no certificate (see `solve`), the prox-gradient residual meets `tol`.

    >>> import proxlearn as pl
    >>> optimum(pl.lasso([[1.0, 0.0], [0.0, 1.0]], [3.0, 0.5], lam=1.0))
    tensor([2.6250], dtype=torch.float64)
    """
    solution = _watched(problem.to(torch.float64), "fista-restart", "optimum", tol, max_iter, watch)
    if not solution.solved:
        missed = [i for i, s in enumerate(solution.status) if s != Status.SOLVED]
        worst = (solution.gap / solution.objective.abs())[missed].max().item()
        raise InputError(
            f"the optimum of {len(missed)} of {problem.batch} instances is not certified to "
            f"{tol:g} after {max_iter} iterations (relative gap {worst:.1e}, the first is instance "
            f"{missed[0]}); raise max_iter or tol, or rescale the data"
        )
    return solution.objective


def compare(
    problem: Problem,
    optimizers: Mapping[str, Optimizer] | Sequence[str],
    max_iter: int,
    optimum: Tensor | None = None,
    *,
    watch: Watch | None = None,
) -> Comparison:
    """Run every optimizer for `max_iter` iterations from the same start, recording all of them.

    `optimum` (B,) is F*, computed if not given; an optimizer that finds a smaller value lowers
    it, so no gap is negative. Lipschitz constants are computed before the clocks start: the
    first optimizer would pay for all.

    >>> import proxlearn as pl
    >>> problem = pl.families.GaussianLasso(m=20, n=40, nonzeros=4).sample(8, 0)
    >>> result = compare(problem, ["ista", "fista-restart"], max_iter=200)
    >>> result.iterations_to("fista-restart", 1e-2) < result.iterations_to("ista", 1e-2)
    True
    """
    named = _named(optimizers)
    problem.lipschitz()
    best = _optimum(problem, optimum, watch)
    runs = {}
    for name, optimizer in named.items():
        history = _watched(problem, optimizer, name, 0.0, max_iter, watch, record=True).history
        assert history is not None
        runs[name] = Run(history.objective, history.grad_evals, history.seconds)
        best = torch.minimum(best, history.objective.amin(0))
    return Comparison(best, runs)


def _named(optimizers: Mapping[str, Optimizer] | Sequence[str]) -> dict[str, Optimizer]:
    if not optimizers:
        raise InputError("no optimizers were given; expected at least one")
    if isinstance(optimizers, str):
        raise InputError(f"optimizers is {optimizers!r}; expected a list of names")
    if isinstance(optimizers, Mapping):
        return dict(optimizers)
    return {name: registry.get(name) for name in optimizers}


def _optimum(problem: Problem, given: Tensor | None, watch: Watch | None) -> Tensor:
    if given is None:
        return optimum(problem, watch=watch)
    if given.shape != (problem.batch,):
        raise InputError(
            f"optimum has shape {tuple(given.shape)}; expected ({problem.batch},), one an instance"
        )
    return given.to(dtype=torch.float64, device=problem.device)


def _watched(
    problem: Problem,
    optimizer: str | Optimizer,
    name: str,
    tol: float,
    max_iter: int,
    watch: Watch | None,
    record: bool = False,
) -> Solution:
    callback = None if watch is None else lambda p: watch(name, p.iteration)
    return solve(problem, optimizer, tol=tol, max_iter=max_iter, record=record, callback=callback)
