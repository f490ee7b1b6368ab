"""Many optimizers on one set of problems: objectives, gradients and time at every iteration."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.methods import optimizers as registry
from proxlearn.methods.checkpoint import Learned
from proxlearn.methods.optimizers import Optimizer
from proxlearn.methods.optimizers.optimizer import most_iterations
from proxlearn.problems.problem import Problem, require_problem
from proxlearn.solving.first_order import Progress
from proxlearn.solving.solution import Status
from proxlearn.solving.solver import in_core, solve
from proxlearn.watch import Watch, portion

BLOCK = 64
"""Instances that are worked on at a time, so that float64 copies of the data stay small."""


class Row(NamedTuple):
    """One row of results in long format."""

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
    """Runs of several optimizers on the same B instances, against the same optimal values.

    Examples
    --------
    >>> import proxlearn as pl
    >>> problem = pl.families.GaussianLasso(m=20, n=40, nonzeros=4).sample(8, 0)
    >>> comparison = pl.compare(problem, ["fista"], max_iter=10)
    >>> list(comparison.runs), comparison.mean_gap("fista").shape
    (['fista'], torch.Size([11]))
    """

    optimum: Tensor
    """F*, (B,), float64."""
    runs: Mapping[str, Run]
    """What each optimizer did, by its name."""
    learned: frozenset[str] = frozenset()
    """Names of the runs whose optimizer has trained weights."""

    def label(self, name: str) -> str:
        """The name of a run for tables and plots, which say of a learned optimizer that it is."""
        return f"{name} (learned)" if name in self.learned else name

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

    def with_run(self, name: str, run: Run) -> "Comparison":
        """This comparison and one more run, of a method that is no optimizer: `lbfgs`."""
        best = torch.minimum(self.optimum, run.objective.amin(0).to(self.optimum.device))
        return replace(self, optimum=best, runs={**self.runs, name: run})

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
    """F* of every instance, at most ``tol * F*`` too large, which is certified.

    The compiled core computes it where it covers the problem, Douglas-Rachford's method where f has
    a proximal operator, else FISTA with restart. Where a problem has no certificate (see `solve`),
    the prox-gradient residual meets `tol`.

    Parameters
    ----------
    problem : Problem
    tol : float
        Largest relative error.
    max_iter : int
        Largest number of iterations.
    watch : callable, optional
        Called after each iteration.

    Returns
    -------
    Tensor (B,), float64

    Examples
    --------
    >>> import proxlearn as pl
    >>> optimum(pl.lasso([[1.0, 0.0], [0.0, 1.0]], [3.0, 0.5], lam=1.0))
    tensor([2.6250], dtype=torch.float64)
    """
    problem = require_problem(problem).in_tensors()
    values, gaps, missed = [], [], []
    for first in range(0, problem.batch, BLOCK):
        part = _block(problem, first).to(torch.float64)
        if in_core(None, part, tol=tol):
            solution = solve(part, tol=tol, max_iter=max_iter)
        else:
            callback = _callback("optimum", watch, problem, first, None)
            method = "auto" if part.f.has_proximal else "fista-restart"
            solution = solve(part, method, tol=tol, max_iter=max_iter, callback=callback)
        if watch is not None:
            watch("optimum", min(first + BLOCK, problem.batch), problem.batch)
        missed += [first + i for i, s in enumerate(solution.status) if s != Status.SOLVED]
        values.append(solution.objective)
        gaps.append(solution.gap / solution.objective.abs())
    if missed:
        worst = torch.cat(gaps)[missed].max().item()
        raise InputError(
            f"the optimum of {len(missed)} of {problem.batch} instances is not certified to "
            f"{tol:g} after {max_iter} iterations (relative gap {worst:.1e}, the first is instance "
            f"{missed[0]}); raise max_iter or tol, or rescale the data"
        )
    return torch.cat(values)


def compare(
    problem: Problem,
    optimizers: Mapping[str, Optimizer] | Sequence[str],
    max_iter: int,
    optimum: Tensor | None = None,
    *,
    watch: Watch | None = None,
) -> Comparison:
    """Run every optimizer for `max_iter` iterations from the same start, recording all of them.

    The methods run by themselves: without the safeguard, and without the core at the end.
    Lipschitz constants are computed before the clocks start, since the first optimizer would pay
    for all. Unrolled methods end with their layers. Instances are run in blocks of `BLOCK`.

    Parameters
    ----------
    problem : Problem
    optimizers : sequence of str, or mapping of names to optimizers
    max_iter : int
        Iterations of each optimizer.
    optimum : Tensor (B,), optional
        F*, which is computed by default. An optimizer that finds a smaller value lowers it, so
        that no gap is negative.
    watch : callable, optional
        Called after each iteration of a block.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import proxlearn as pl
    >>> problem = pl.families.GaussianLasso(m=20, n=40, nonzeros=4).sample(8, 0)
    >>> result = compare(problem, ["ista", "fista-restart"], max_iter=200)
    >>> result.iterations_to("fista-restart", 1e-2) < result.iterations_to("ista", 1e-2)
    True
    """
    problem = require_problem(problem).in_tensors()
    named = _named(optimizers)
    problem.lipschitz()
    parts = 1 + len(named)
    best = _optimum(problem, optimum, portion(watch, 0, 1, parts))
    runs = {
        name: _run(problem, opt, name, max_iter, portion(watch, i, i + 1, parts))
        for i, (name, opt) in enumerate(named.items(), 1)
    }
    for run in runs.values():
        best = torch.minimum(best, run.objective.amin(0))
    learned = frozenset(name for name, opt in named.items() if isinstance(opt, Learned))
    return Comparison(best, runs, learned)


def _run(
    problem: Problem, optimizer: Optimizer, name: str, max_iter: int, watch: Watch | None
) -> Run:
    """One optimizer on all instances, block after block."""
    histories = []
    max_iter = min(max_iter, most_iterations(optimizer) or max_iter)
    for first in range(0, problem.batch, BLOCK):
        part = _block(problem, first)
        callback = _callback(name, watch, problem, first, max_iter)
        solution = solve(
            part,
            optimizer,
            tol=0,
            max_iter=max_iter,
            safeguard=False,  # the methods are compared by themselves
            polish=False,
            record=True,
            callback=callback,
        )
        assert solution.history is not None
        histories.append(solution.history)
    # A block whose every instance broke down ends early: its last row stands for the rest.
    K = max(len(h.seconds) for h in histories)
    return Run(
        torch.cat([_extended(h.objective, K) for h in histories], 1),
        torch.cat([_extended(h.grad_evals, K) for h in histories], 1),
        torch.stack([_extended(h.seconds, K) for h in histories]).sum(0),
    )


def _extended(rows: Tensor, length: int) -> Tensor:
    return torch.cat([rows, rows[-1:].expand(length - len(rows), *rows.shape[1:])])


def _block(problem: Problem, first: int) -> Problem:
    last = min(first + BLOCK, problem.batch)
    return problem.select(torch.arange(first, last, device=problem.device))


def _callback(
    name: str, watch: Watch | None, problem: Problem, first: int, iterations: int | None
) -> Callable[[Progress], None] | None:
    """Tells the watch how many instances are done, those of the block in fractions.

    Where nobody knows how many iterations it will take, the block counts when it is done.
    """
    if watch is None:
        return None
    size = min(BLOCK, problem.batch - first)

    def tell(progress: Progress) -> None:
        share = progress.iteration / iterations if iterations else 0.0
        done = first + size * share
        watch(f"{name}, iteration {progress.iteration}", done, problem.batch)

    return tell


def _named(optimizers: Mapping[str, Optimizer] | Sequence[str]) -> dict[str, Optimizer]:
    if not optimizers:
        raise InputError("no optimizers were given; expected at least one")
    if isinstance(optimizers, str):
        raise InputError(f"optimizers is {optimizers!r}; expected a list of names")
    if isinstance(optimizers, Mapping):
        return {name: registry.get(optimizer) for name, optimizer in optimizers.items()}
    return {name: registry.get(name) for name in optimizers}


def _optimum(problem: Problem, given: Tensor | None, watch: Watch | None) -> Tensor:
    if given is None:
        return optimum(problem, watch=watch)
    if given.shape != (problem.batch,):
        raise InputError(
            f"optimum has shape {tuple(given.shape)}; expected ({problem.batch},), one an instance"
        )
    return given.to(dtype=torch.float64, device=problem.device)
