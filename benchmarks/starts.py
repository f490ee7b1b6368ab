"""Where a first-order start makes the core faster, and where it does not.

    python benchmarks/starts.py

Prints, for logistic regressions and LASSO problems, the milliseconds of the core alone and the
times of `auto`, the learned start and the FISTA start relative to it: below 1 a start is faster.
CPU time, the fastest of several runs in turns, to a certified relative gap of 1e-6.
"""

import argparse
import time

import numpy as np

import proxlearn as pl
from proxlearn.core.glm import Limits, solve_one
from proxlearn.solving.named_starts import automatic_start, find_start

PARTS = (0.1, 0.01, 0.001)
"""lambda / lambda_max."""


def simulated(m: int, n: int, correlation: float, nonzeros: int, seed: int = 0):
    """A, scores A x + noise and labels with correlated columns."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, n))
    for j in range(1, n):
        A[:, j] = correlation * A[:, j - 1] + np.sqrt(1 - correlation**2) * A[:, j]
    x = np.zeros(n)
    x[rng.choice(n, nonzeros, replace=False)] = rng.normal(size=nonzeros)
    scores = A @ x
    labels = rng.random(m) < 1 / (1 + np.exp(-scores))
    return A, scores + 0.1 * rng.normal(size=m), labels.astype(float)


SHAPES = [
    (1000, 50, 0.5, 10),
    (5000, 30, 0.3, 10),
    (2000, 200, 0.0, 200),
    (2600, 500, 0.0, 20),
    (2600, 500, 0.6, 20),
    (20000, 50, 0.5, 20),
    (250, 500, 0.0, 50),
]


def fastest(calls, repeats: int) -> list[float]:
    best = [np.inf] * len(calls)
    for _ in range(repeats):
        for i, call in enumerate(calls):
            began = time.process_time()
            call()
            best[i] = min(best[i], time.process_time() - began)
    return best


def line(kind: str, A, b, part: float, repeats: int) -> str:
    logistic = kind == "logistic"
    top = np.abs(A.T @ (b - 0.5)).max() / len(A) if logistic else np.abs(A.T @ b).max()
    problem = (pl.logistic if logistic else pl.lasso)(A, b, part * top)
    glm, limits = problem.model.glm(), Limits(1e-6)
    starts = [None, automatic_start(glm), find_start(kind), find_start("fista-restart")]
    answers = [solve_one(glm, None, limits, start) for start in starts]
    assert all(answer[4] == 0 for answer in answers)
    calls = [lambda start=start: solve_one(glm, None, limits, start) for start in starts]
    alone, *others = fastest(calls, repeats)
    share = np.count_nonzero(answers[0][0]) / A.shape[1]
    ratios = " | ".join(f"{seconds / alone:.2f}" for seconds in others)
    shape = f"{A.shape[0]}x{A.shape[1]}"
    return f"| {kind} {shape} | {part:g} | {share:.2f} | {1e3 * alone:.3g} | {ratios} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="runs of each, in turns")
    repeats = parser.parse_args().repeats
    print("| problem | lambda | non-zeros | core alone, ms | auto | learned | FISTA |")
    print("|---|---|---|---|---|---|---|")
    for shape in SHAPES:
        A, scores, labels = simulated(*shape)
        for part in PARTS:
            print(line("logistic", A, labels, part, repeats), flush=True)
    for shape in SHAPES[-1:] + SHAPES[:1]:
        A, scores, labels = simulated(*shape)
        for part in PARTS:
            print(line("lasso", A, scores, part, repeats), flush=True)


if __name__ == "__main__":
    main()
