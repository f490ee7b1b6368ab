"""What the shipped models are measured to do, on problems that no training has seen.

A result is the number of iterations (one gradient each) to a mean relative gap of 1e-3 and of 1e-6
at x, with F* certified in float64 to 1e-12, beside that of FISTA with restart on the same problems.
"""

from collections.abc import Callable, Mapping

import torch

from proxlearn import datasets, optimizers
from proxlearn.comparison import compare
from proxlearn.constructors import logistic
from proxlearn.families import GaussianLasso, GaussianLogistic
from proxlearn.optimizers import Optimizer
from proxlearn.problem import Problem

LEVELS = (1e-3, 1e-6)
TEST_SEED = 1_000_003
"""Seed of the test problems; training seeds are scrambled and never small numbers."""
COUNT = 1024

Result = dict[str, list[int | None]]
"""Iterations to each of `LEVELS` by optimizer; None where it was not reached."""


def real_logistic(load: Callable[[], tuple[torch.Tensor, torch.Tensor]], lam: float) -> Problem:
    """Logistic regression on standardised features of a real data set."""
    A, b = load()
    return logistic(datasets.standardise(A), b, lam)


TESTS: dict[str, tuple[Callable[[], Problem], int]] = {
    "gaussian-lasso": (lambda: GaussianLasso().sample(COUNT, TEST_SEED), 200),
    "gaussian-logistic": (lambda: GaussianLogistic().sample(COUNT, TEST_SEED), 200),
    "spambase lam 0.1": (lambda: real_logistic(datasets.spambase, 0.1), 1000),
    "spambase lam 0.01": (lambda: real_logistic(datasets.spambase, 0.01), 1000),
    "spambase lam 0.001": (lambda: real_logistic(datasets.spambase, 0.001), 1000),
    "ionosphere lam 0.1": (lambda: real_logistic(datasets.ionosphere, 0.1), 1000),
    "ionosphere lam 0.01": (lambda: real_logistic(datasets.ionosphere, 0.01), 1000),
    "ionosphere lam 0.001": (lambda: real_logistic(datasets.ionosphere, 0.001), 1000),
}
"""Test problems by name, and the most iterations that are looked at."""


def suite_of(name: str) -> list[str]:
    """Which tests a model's card reports: those of its own loss, or all for the general one."""
    kinds = {"lasso": ("gaussian-lasso",), "logistic": ("gaussian-log", "spambase", "ionosphere")}
    wanted = kinds.get(name.split("-")[0], ("",))
    return [test for test in TESTS if test.startswith(wanted)]


def measure(named: Mapping[str, Optimizer], test: str) -> Result:
    """Iterations of each optimizer, and of FISTA with restart, on one test."""
    make, max_iter = TESTS[test]
    methods = {"fista-restart": optimizers.get("fista-restart"), **named}
    result = compare(make(), methods, max_iter)
    return {name: [result.iterations_to(name, eps) for eps in LEVELS] for name in methods}
