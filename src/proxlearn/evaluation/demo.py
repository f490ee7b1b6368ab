"""The demonstration: a rule trained now, fresh problems for it and others, one wide problem.

`train_rule`, `solve_fresh` and `wide_problem.measure` are its three parts, in this order;
``proxlearn demo`` runs them and writes one page.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from proxlearn import __version__
from proxlearn.errors import InputError
from proxlearn.evaluation import coordinate_descent
from proxlearn.evaluation.comparison import Comparison, Run, compare
from proxlearn.evaluation.competitors import notes
from proxlearn.evaluation.family_comparison import LEVELS, OPTIMUM
from proxlearn.evaluation.wide_problem import Measured
from proxlearn.methods import optimizers
from proxlearn.methods.checkpoint import Learned
from proxlearn.problems.problem import Problem
from proxlearn.solving.solution import Status
from proxlearn.solving.solver import solve
from proxlearn.training.config import TrainConfig
from proxlearn.training.families import GaussianLasso
from proxlearn.training.training_loop import Report, train
from proxlearn.watch import Watch, portion

NAMED = ("fista", "fista-restart", "lasso")
"""The methods that the trained rule is compared with: two classic ones and the shipped rule."""
TRAINED, PEER, CORE = "trained now", "scikit-learn", "core"
FAMILY = GaussianLasso(m=50, n=100, nonzeros=10)
"""Problems of the training: a fifth of the paper's size in both directions. The rule reads no
sizes, so that it works on the paper's problems as well."""
STEPS = 250
"""Minibatches: 20 s of one core. A quarter of them gave 13 / 27 iterations to 1e-3 / 1e-6 on the
paper's problems, these 12 / 21 (2026-11-18, seed 0, 32 problems)."""
MAX_ITER = 130
"""Iterations of each method; FISTA needs about 105 to a mean relative gap of 1e-6."""


def train_rule(
    seed: int = 0, steps: int = STEPS, watch: Callable[[Report], None] | None = None
) -> Learned:
    """A compact rule, trained on small problems of the paper's LASSO family."""
    config = TrainConfig(steps=steps, batch=16, validation=32, seed=seed)
    return train(FAMILY, config, watch=watch)


def solve_fresh(
    rule: Learned, count: int = 64, seed: int = 0, watch: Watch | None = None
) -> Comparison:
    """`count` problems of the paper's size by `NAMED`, the rule, scikit-learn and the core.

    The problems are in float32. The optima are certified in float64 to 1e-12, and objectives are
    measured in float64 too: in float32 the iterates come closer to the optimum than 1e-6.
    """
    if count < 1:
        raise InputError(f"count is {count}; expected at least one problem")
    problem = GaussianLasso().sample(count, seed)
    methods = {name: optimizers.get(name) for name in NAMED} | {TRAINED: rule}
    result = compare(problem, methods, MAX_ITER, watch=portion(watch, 0, 5, 6))
    result = result.with_run(PEER, coordinate_descent.run(problem, watch=portion(watch, 5, 6, 6)))
    return result.with_run(CORE, core_run(problem))


def core_run(problem: Problem) -> Run:
    """The compiled core with 1, 2, ... working sets, each a solve from the beginning.

    A working set counts as one gradient: it begins with a pass over all columns.
    """
    exact = problem.to(torch.float64)
    nothing = torch.zeros(problem.batch, problem.n, dtype=torch.float64)
    objectives, seconds, going = [exact.objective(nothing)], [0.0], True
    while going:
        began = time.perf_counter()
        solution = solve(problem, tol=1e-9, max_iter=len(seconds), threads=1)
        seconds.append(time.perf_counter() - began)
        objectives.append(exact.objective(solution.x.double()))
        going = Status.MAX_ITER in solution.status and len(seconds) <= MAX_ITER
    sets = torch.arange(len(seconds))[:, None].expand(-1, problem.batch)
    return Run(torch.stack(objectives), sets, torch.tensor(seconds).cummax(0).values)


def fresh_card(count: int, seed: int, steps: int = STEPS) -> dict[str, Any]:
    """What the page says of the fresh problems; see `report.page_data`."""
    return {
        "title": f"{count} LASSO problems, 250 × 500, 50 non-zeros, λ = 0.1",
        "command": f"proxlearn demo --count {count} --seed {seed} --steps {steps}",
        "count": count,
        "iterations": MAX_ITER,
        "seed": seed,
        "version": __version__,
        "optimum": OPTIMUM,
        "notes": [
            *notes(NAMED, "gaussian-lasso"),
            f"{TRAINED}: a learned rule, trained before this comparison in {steps} minibatches of "
            "16 problems of 50 × 100",
            f"{PEER}: an iteration is a sweep of coordinate descent over all columns; time is "
            f"measured for {coordinate_descent.timed()} sweeps and interpolated between them",
            f"{CORE}: what solve uses by default; an iteration is a working set",
        ],
    }


def sentences(fresh: Comparison, wide: Measured, seconds: float) -> Sequence[str]:
    """Three lines that say what was seen; `seconds` is how long the training took."""
    loose, tight = LEVELS
    trained, shipped, fista = (
        f"{_count(fresh, name, loose)} and {_count(fresh, name, tight)}"
        for name in (TRAINED, "lasso", "fista")
    )
    spent = {name: fresh.seconds_to(name, tight) for name in fresh.runs}
    order = sorted((s / len(fresh.optimum), name) for name, s in spent.items() if s is not None)
    times = ", ".join(f"{fresh.label(name)} {1e3 * seconds:.2f}" for seconds, name in order)
    return (
        f"A rule trained in {seconds:.0f} seconds needs {trained} iterations to relative gaps of "
        f"{loose:g} and {tight:g} on problems that it has never seen; the shipped rule needs "
        f"{shipped}, FISTA {fista}.",
        f"Milliseconds a problem to {tight:g}: {times}. All optima are certified to 1e-12.",
        wide.sentence(),
    )


def _count(result: Comparison, name: str, level: float) -> str:
    k = result.iterations_to(name, level)
    return f"more than {len(result.runs[name].seconds) - 1}" if k is None else str(k)
