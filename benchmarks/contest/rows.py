"""The rows of the table: which problems, how many, and the gap to reach."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch

from contest.race import Course
from contest.task import Task
from proxlearn.problems import datasets
from proxlearn.problems.ksvd import ksvd
from proxlearn.training.families import Family, GaussianLasso, GaussianLogistic

TIMED, TRIAL = 0, 1
"""Seeds of the timed problems and of those of the calibration."""
POINTS = 50
"""Values of lam on the path, from lam_max to a thousandth of it."""


@dataclass(frozen=True)
class Case:
    """One line of the list: `make(count, seed)` draws the problems."""

    row: int
    title: str
    make: Callable[[int, int], Task]
    count: int
    trial: int
    """Problems of the calibration."""
    target: float
    optimizer: str
    """The shipped rule for these problems."""

    def course(self, count: int | None = None) -> Course:
        timed = min(self.count, count or self.count)
        return Course(
            self.make(timed, TIMED), self.make(min(self.trial, timed), TRIAL), self.target
        )


def drawn(family: Family, loss: str, count: int, seed: int) -> Task:
    """`count` problems of a family, the same as its `sample` gives."""
    generator = torch.Generator().manual_seed(seed)
    A = np.empty((count, family.m, family.n))
    b = np.empty((count, family.m))
    for i in range(count):
        A[i], b[i] = (part.numpy() for part in family.draw(generator))
    return Task(loss, A, b, np.full(count, family.lam))


@cache
def dictionary() -> np.ndarray:
    """The 64x128 dictionary of the experiment with photographs."""
    signals = datasets.bsds_patches(count=1000, size=8, seed=0)
    return ksvd(signals, atoms=128, sparsity=6, rounds=10, seed=0).atoms.numpy()


def patches(lam: float) -> Callable[[int, int], Task]:
    def make(count: int, seed: int) -> Task:
        # Seed 0 is what the dictionary was made from.
        signals = datasets.bsds_patches(count=count, size=8, seed=seed + 1).numpy()
        return Task("lasso", np.ascontiguousarray(dictionary()), signals, np.full(count, lam))

    return make


def spambase(count: int, seed: int) -> Task:
    """The path on all of Spambase, or for the calibration on a random half of its rows."""
    A, b = (part.numpy() for part in datasets.spambase())
    if seed == TRIAL:
        half = np.random.default_rng(seed).permutation(len(A))[: len(A) // 2]
        A, b = A[half], b[half]
    A = datasets.standardise(torch.from_numpy(A)).numpy()
    top = np.abs(A.T @ (0.5 - b)).max() / len(A)
    return Task("logistic", A, b[None], top * 1e-3 ** np.linspace(0, 1, count), path=True)


def cases() -> Iterator[Case]:
    small = GaussianLasso()
    large = GaussianLasso(m=2500, n=5000, nonzeros=500)

    def lasso(family: Family) -> Callable[[int, int], Task]:
        return lambda count, seed: drawn(family, "lasso", count, seed)

    for gap in (1e-3, 1e-6):
        yield Case(1, f"LASSO 250x500, gap {gap:g}", lasso(small), 1024, 16, gap, "lasso")
    for lam in (0.5, 0.1):
        title = f"patches on one 64x128 dictionary, lambda {lam:g}"
        yield Case(2, title, patches(lam), 10_000, 512, 1e-6, "lasso")
    yield Case(3, "LASSO 2500x5000", lasso(large), 64, 2, 1e-6, "lasso")
    for lam in (0.1, 1e-3):
        family = GaussianLogistic(lam=lam)
        yield Case(
            4,
            f"logistic 1000x50, lambda {lam:g}",
            lambda count, seed, family=family: drawn(family, "logistic", count, seed),
            1024,
            16,
            1e-6,
            "logistic",
        )
    yield Case(4, "Spambase, path of lambdas", spambase, POINTS, POINTS, 1e-6, "logistic")
