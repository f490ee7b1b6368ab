"""What an iteration costs, against reading A once."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

import proxlearn as pl
from proxlearn.core.single import Single
from proxlearn.solving.named_starts import find_start


@dataclass(frozen=True)
class Roofline:
    """Microseconds for one instance: medians, and our iteration over a sum from memory."""

    read_memory: float
    """The sum of every A of the batch, one after the other."""
    read_cache: float
    """The sum of one A again and again."""
    matvec_memory: float
    matvec_cache: float
    iteration: float

    @property
    def ratio(self) -> float:
        return self.iteration / self.read_memory


def roofline(A: Tensor, iterate: Callable[[int], object], k: int = 10, repeats: int = 7):
    """Times an iteration of `iterate(k)`, which does k iterations on all instances of A (B, m, n).

    An iteration is what 2k iterations take more than k, so that set-up and certificates at the
    end do not count. Measured in turns with the reading.
    """
    B, _, n = A.shape
    y = torch.ones(n, dtype=A.dtype)
    tasks: dict[str, Callable[[], object]] = {
        "read_memory": lambda: [M.sum() for M in A],
        "read_cache": lambda: [A[0].sum() for _ in range(B)],
        "matvec_memory": lambda: [torch.mv(M, y) for M in A],
        "matvec_cache": lambda: [torch.mv(A[0], y) for _ in range(B)],
        "short": lambda: iterate(k),
        "long": lambda: iterate(2 * k),
    }
    times: dict[str, list[float]] = {key: [] for key in tasks}
    for turn in range(repeats + 1):
        for key, task in tasks.items():
            began = time.perf_counter()
            task()
            if turn:  # the first warms up
                times[key].append(1e6 * (time.perf_counter() - began) / B)
    middle = {key: statistics.median(values) for key, values in times.items()}
    per = [(b - a) / k for a, b in zip(times["short"], times["long"], strict=True)]
    reading = {key: middle[key] for key in tasks if key not in ("short", "long")}
    return Roofline(**reading, iteration=statistics.median(per))


def ours(problem: pl.Problem, rule: str) -> Callable[[int], object]:
    """Iterations of a compact rule as the core runs them for a start."""
    glm, start = problem.model.glm(), find_start(rule)
    solvers = [Single(glm, i, None).solver for i in range(problem.batch)]
    methods = [start.compiled(solver, 1.0, 1.0) for solver in solvers]
    zero = np.zeros(problem.n)
    return lambda k: [method.iterates(zero, k) for method in methods]
