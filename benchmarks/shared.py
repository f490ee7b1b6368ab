"""Least squares problems that share A, and single constrained ones, beside the solvers of today.

    python benchmarks/shared.py --rows nnls,simplex,lasso,patches,single

One core, the processor's clock, everyone in turn, the fastest of several runs. Every answer of
proxlearn is certified at a relative gap of 1e-6; a peer counts if its F is within that of the
certified bound. Loops of single solves run on the first problems and count by their average. The
patches need the photographs of BSDS500 in PROXLEARN_DATA. Ratios above 1: proxlearn is faster.
"""

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import scipy.optimize
from sklearn.linear_model import Lasso
from threadpoolctl import threadpool_limits

import proxlearn as pl

TOL = 1e-6
KINDS = ("nnls", "simplex", "lasso", "patches", "single")
LOOP = 500
"""Problems that a loop of single solves is timed on."""
Solver = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass
class Row:
    """B problems that share A: b is (B, m)."""

    name: str
    A: np.ndarray
    b: np.ndarray
    problem: Callable[[np.ndarray, np.ndarray], pl.Problem]
    lam: float = 0.0
    peers: dict[str, Solver] = field(default_factory=dict)
    loops: tuple[str, ...] = ("scipy nnls", "scikit-learn")

    def objective(self, x: np.ndarray, b: np.ndarray) -> np.ndarray:
        return 0.5 * np.square(x @ self.A.T - b).sum(1) + self.lam * np.abs(x).sum(1)


def scipy_nnls(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.array([scipy.optimize.nnls(A, row)[0] for row in b])


def scipy_simplex(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """NNLS with the sum as one more row, of large weight; the answer is scaled to the sum 1."""
    weight = 1e3 * np.abs(A).max()
    tall = np.vstack([A, np.full(A.shape[1], weight)])
    x = np.array([scipy.optimize.nnls(tall, np.append(row, weight))[0] for row in b])
    return x / x.sum(1, keepdims=True)


def lasso_peers(lam: float) -> dict[str, Solver]:
    def scikit(A: np.ndarray, b: np.ndarray) -> np.ndarray:
        model = Lasso(
            lam / len(A), fit_intercept=False, precompute=True, tol=1e-6, max_iter=100_000
        )
        return np.atleast_2d(model.fit(A, b.T).coef_)

    found: dict[str, Solver] = {"scikit-learn": scikit}
    try:
        import spams
    except ImportError:
        return found

    def lars(A: np.ndarray, b: np.ndarray) -> np.ndarray:
        options = {"mode": 2, "numThreads": 1, "cholesky": False}
        codes = spams.lasso(np.asfortranarray(b.T), D=np.asfortranarray(A), lambda1=lam, **options)
        return codes  # sparse: its conversion is not timed

    return found | {"SPAMS": lars}


def nnls_row(m: int, n: int, B: int, kind: str) -> Row:
    rng = np.random.default_rng(0)
    A, b = rng.random((m, n)), rng.random((B, m))
    if kind == "mixtures":
        x = np.abs(rng.standard_normal((B, n))) * (rng.random((B, n)) < max(0.05, 10 / n))
        b = x @ A.T + 0.1 * rng.standard_normal((B, m))
    return Row(f"nnls {m}x{n} {kind}", A, b, pl.nnls, peers={"scipy nnls": scipy_nnls})


def simplex_row(m: int, n: int, B: int) -> Row:
    """Spectra that are smooth, mixtures with few large parts, noise of 2%."""
    rng = np.random.default_rng(0)
    A = rng.random((m, n))
    A = np.abs(np.cumsum(A - 0.5, 0) / 8 + A)
    b = rng.dirichlet(np.full(n, 0.3), B) @ A.T + 0.02 * rng.standard_normal((B, m))
    return Row(f"simplex {m}x{n}", A, b, pl.simplex_ls, peers={"scipy nnls": scipy_simplex})


def lasso_row(name: str, A: np.ndarray, b: np.ndarray, lam: float) -> Row:
    return Row(name, A, b, lambda A, b: pl.lasso(A, b, lam), lam, lasso_peers(lam))


def rows(kinds: list[str]) -> Iterator[Row]:
    if "nnls" in kinds:
        yield nnls_row(200, 50, 10_000, "mixtures")
        yield nnls_row(100, 200, 10_000, "mixtures")
        yield nnls_row(100, 200, 10_000, "uniform")
    if "simplex" in kinds:
        yield simplex_row(200, 10, 100_000)
    if "lasso" in kinds:
        rng = np.random.default_rng(0)
        A, x = rng.standard_normal((500, 300)), rng.standard_normal((2000, 300))
        b = (x * (rng.random(x.shape) < 0.05)) @ A.T + rng.standard_normal((2000, 500))
        top = float(np.abs(b @ A).max(1).mean())
        for share in (0.3, 0.1, 0.03):
            yield lasso_row(f"lasso 500x300 {share:g}", A, b, share * top)
    if "patches" in kinds:
        from contest.rows import patches

        for lam in (0.5, 0.1):
            task = patches(lam)(10_000, 0)
            yield lasso_row(f"patches 64x128 {lam:g}", task.A, task.b, lam)
    if "single" in kinds:
        for m, n, kind in ((200, 50, "mixtures"), (1000, 200, "mixtures"), (100, 200, "uniform")):
            yield nnls_row(m, n, 1, kind)
        for m, n in ((200, 10), (200, 50), (500, 300)):
            yield simplex_row(m, n, 1)


def timed(solve: Callable[[], object]) -> tuple[float, object]:
    began = time.process_time()
    answer = solve()
    return time.process_time() - began, answer


def race(row: Row, repeats: int) -> str:
    """One line: microseconds a problem of everyone, and the ratio to the best peer."""
    alone = len(row.b) == 1
    inner = 20 if alone else 1
    best: dict[str, float] = {}
    for turn in range(repeats):
        for name in ("proxlearn", *row.peers):
            b = row.b[:LOOP] if name in row.loops else row.b
            if name == "proxlearn":
                given = b[0] if alone else b
                run = lambda: [pl.solve(row.problem(row.A, given), tol=TOL) for _ in range(inner)]  # noqa: E731, B023
            else:
                run = lambda: [row.peers[name](row.A, b) for _ in range(inner)]  # noqa: E731, B023
            seconds, answers = timed(run)
            seconds /= inner * len(b)
            best[name] = min(best.get(name, np.inf), seconds)
            answer = answers[0]
            if turn == 0 and name == "proxlearn":
                if not answer.solved:
                    raise SystemExit(f"{row.name}: proxlearn did not solve every problem")
                bound = answer.objective - answer.gap
            elif turn == 0:
                x = answer.toarray().T if hasattr(answer, "toarray") else answer
                F = row.objective(x, b)
                if ((F - bound[: len(b)]) > 2 * TOL * F).any():
                    best[name] = np.inf
                    print(f"{row.name}: {name} misses the gap", file=sys.stderr)
    fastest = min(row.peers, key=lambda name: best[name])
    cells = ", ".join(f"{name} {1e6 * seconds:.3g}" for name, seconds in best.items())
    ratio = best[fastest] / best["proxlearn"]
    return f"{row.name:<26} {len(row.b):>7,} problems, us each: {cells}; ratio {ratio:.2f}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default=",".join(KINDS), help=f"some of {','.join(KINDS)}")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--count", type=int, help="at most so many problems, for a quick look")
    options = parser.parse_args(arguments)
    kinds = [part.strip() for part in options.rows.split(",")]
    for kind in kinds:
        if kind not in KINDS:
            parser.error(f"--rows has {kind!r}; expected some of {','.join(KINDS)}")
    warnings.simplefilter("ignore")
    os.environ["OMP_NUM_THREADS"] = "1"  # what the compiled core reads
    with threadpool_limits(1):
        for row in rows(kinds):
            row.b = row.b[: options.count] if options.count else row.b
            print(race(row, options.repeats), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
