"""What the shipped models are measured to do, on problems that no training has seen.

A result is the number of iterations (one gradient each) to a mean relative gap of 1e-3 and of 1e-6
at x, with F* certified in float64 to 1e-12, beside that of FISTA with restart on the same problems.
For photographs it is the median number of iterations to a certified gap of 1e-3.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial

import torch

from proxlearn.evaluation.comparison import compare, optimum
from proxlearn.methods import optimizers
from proxlearn.methods.optimizers import Optimizer
from proxlearn.problems import datasets
from proxlearn.problems.constructors import logistic
from proxlearn.problems.problem import Problem
from proxlearn.solving.solution import Status
from proxlearn.solving.solver import solve
from proxlearn.training import families
from proxlearn.training.families import GaussianLasso, GaussianLogistic

LEVELS = (1e-3, 1e-6)
"""Relative gaps to which iterations are counted."""
TEST_SEED = 1_000_003
"""Seed of the test problems; training seeds are scrambled and never small numbers."""
COUNT, FEW = 1024, 128
"""Problems in a test, and in one of the paper's competitors, which cost more and matter less."""
COMPETITORS = ("l2o-dm", "rnnprop", "step-lista", "ada-lista")

Result = dict[str, list[int | None]]
"""Iterations to each of `LEVELS` by optimizer; None where it was not reached."""


def real_logistic(load: Callable[[], tuple[torch.Tensor, torch.Tensor]], lam: float) -> Problem:
    """Logistic regression on standardised features of a real data set."""
    A, b = load()
    return logistic(datasets.standardise(A), b, lam)


PHOTOGRAPHS = ("deblur", "mri", "inpaint", "tomography")


def photographs(name: str) -> Problem:
    """Pieces of photographs that no training has seen, 64x64."""
    family = families.NAMES[name](folder="bsds500", split="test", size=64)  # type: ignore[call-arg]
    return family.sample(8, TEST_SEED)


TESTS: dict[str, tuple[Callable[[], Problem], int]] = {
    "gaussian-lasso": (lambda: GaussianLasso().sample(COUNT, TEST_SEED), 200),
    "gaussian-logistic": (lambda: GaussianLogistic().sample(COUNT, TEST_SEED), 200),
    "few gaussian-lasso": (lambda: GaussianLasso().sample(FEW, TEST_SEED), 200),
    "few gaussian-logistic": (lambda: GaussianLogistic().sample(FEW, TEST_SEED), 200),
    "few gaussian-logistic lam 0.0001": (
        lambda: GaussianLogistic(lam=1e-4).sample(FEW, TEST_SEED),
        1000,
    ),
    "spambase lam 0.1": (lambda: real_logistic(datasets.spambase, 0.1), 1000),
    "spambase lam 0.01": (lambda: real_logistic(datasets.spambase, 0.01), 1000),
    "spambase lam 0.001": (lambda: real_logistic(datasets.spambase, 0.001), 1000),
    "ionosphere lam 0.1": (lambda: real_logistic(datasets.ionosphere, 0.1), 1000),
    "ionosphere lam 0.01": (lambda: real_logistic(datasets.ionosphere, 0.01), 1000),
    "ionosphere lam 0.001": (lambda: real_logistic(datasets.ionosphere, 0.001), 1000),
    **{name: (partial(photographs, name), 600) for name in PHOTOGRAPHS},
}
"""Test problems by name, and the most iterations that are looked at."""


def suite_of(name: str) -> list[str]:
    """Which tests a model's card reports: those of its own loss, or all for the general one."""
    if name == "imaging":
        return list(PHOTOGRAPHS)
    if name == "imaging-splitting":
        return [test for test in PHOTOGRAPHS if test != "tomography"]
    kind, _, rule = name.partition("-")
    if kind == "lowlambda":
        return ["few gaussian-logistic lam 0.0001"]
    if rule in COMPETITORS:
        real = ["spambase lam 0.1", "ionosphere lam 0.1"] if kind == "logistic" else []
        return [f"few gaussian-{kind}", *real]
    kinds = {"lasso": ("gaussian-lasso",), "logistic": ("gaussian-log", "spambase", "ionosphere")}
    wanted = kinds.get(kind, ("gaussian", "spambase", "ionosphere"))
    return [test for test in TESTS if test.startswith(wanted) and test not in PHOTOGRAPHS]


def measure(named: Mapping[str, Optimizer], test: str) -> Result:
    """Iterations of each optimizer, and of FISTA with restart, on one test."""
    if test in PHOTOGRAPHS:
        methods = {"fista-restart": optimizers.get("fista-restart"), **named}
        return {name: _certified(test, method) for name, method in methods.items()}
    problem, best, baseline = _prepared(test)
    result = compare(problem, named, TESTS[test][1], best)
    found = {name: [result.iterations_to(name, eps) for eps in LEVELS] for name in named}
    return {"fista-restart": list(baseline), **found}


def _certified(test: str, method: Optimizer) -> list[int | None]:
    """Iterations to a certified relative gap of 1e-3, the median over the instances.

    Photographs are solved in float32, which certifies no gap of 1e-6.
    """
    make, max_iter = TESTS[test]
    solution = solve(
        make(), method, tol=LEVELS[0], max_iter=max_iter, safeguard=False, polish=False
    )
    done = [s == Status.SOLVED for s in solution.status]
    counts = solution.iterations.double().where(torch.tensor(done), torch.inf)
    median = float(counts.median())
    return [int(median) if median < torch.inf else None, None]


@cache
def _prepared(test: str) -> tuple[Problem, torch.Tensor, tuple[int | None, ...]]:
    """The problems of a test, their optimal values, and what FISTA with restart needs: once."""
    make, max_iter = TESTS[test]
    problem = make()
    best = optimum(problem)
    result = compare(problem, ["fista-restart"], max_iter, best)
    return problem, best, tuple(result.iterations_to("fista-restart", eps) for eps in LEVELS)


WIDE_BATCHES, WIDE_COUNT, WIDE_ITERATIONS = 5, 16, 3000
"""Batches, problems in each, and iterations of the test on the families of all designs."""


def gradient_ratios(name: str, learned: Optimizer, family: str) -> dict[str, float | int]:
    """Gradients to each of `LEVELS` relative to FISTA with restart: medians over the instances.

    On `WIDE_BATCHES` fresh batches of a wide family. Instances whose F* FISTA does not certify to
    1e-8 in 20,000 iterations, or that it does not solve to 1e-6 in `WIDE_ITERATIONS`, are left
    out and counted; a level that the learned rule does not reach counts as infinity.
    """
    ratios, total = [], 0
    for i in range(WIDE_BATCHES):
        problem = families.get(family).sample(WIDE_COUNT, TEST_SEED + i, dtype=torch.float64)
        best = solve(problem, "fista-restart", tol=1e-8, max_iter=20_000)
        kept = torch.tensor([i for i, s in enumerate(best.status) if s == Status.SOLVED])
        methods = {"fista-restart": optimizers.get("fista-restart"), name: learned}
        result = compare(problem.select(kept), methods, WIDE_ITERATIONS, best.objective[kept])
        counts = {method: _first_below(result.relative_gap(method)) for method in methods}
        solved = counts["fista-restart"][-1].isfinite()
        ratios.append((counts[name] / counts["fista-restart"])[:, solved])
        total += WIDE_COUNT
    ratio = torch.cat(ratios, 1)
    return {
        "median ratio to 1e-3": round(float(ratio[0].nanmedian()), 3),
        "median ratio to 1e-6": round(float(ratio[1].nanmedian()), 3),
        "instances": ratio.shape[1],
        "left out": total - ratio.shape[1],
        "not reached": int(ratio[1].isinf().sum()),
    }


def _first_below(gap: torch.Tensor) -> torch.Tensor:
    """The first iteration below each of `LEVELS`, (levels, B); infinity where there is none."""
    rows = []
    for eps in LEVELS:
        below = gap < eps
        first = below.to(torch.int64).argmax(0).double()
        rows.append(torch.where(below.any(0), first, torch.inf))
    return torch.stack(rows)
