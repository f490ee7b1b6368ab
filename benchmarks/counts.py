"""Iterations and gradients on fixed problems, compared with those of the last release.

    python benchmarks/counts.py            # exit code 1 where a count has grown
    python benchmarks/counts.py --write    # the counts of this version become the reference

Counts do not depend on the machine's speed, so that this runs in continuous integration.
Instruction sets round differently, which may move a count by one; more than that and more than a
tenth is a change.
"""

import argparse
import json
from pathlib import Path

import numpy as np

import proxlearn as pl

FILE = Path(__file__).with_name("counts.json")
SLACK = 1.1
"""A count may grow by this factor, or by one, before it is an error."""


def tall(seed, m=400, n=60):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, n)) + 0.5 * rng.standard_normal((m, 1))
    return A, A[:, :8] @ rng.standard_normal(8) + rng.standard_normal(m)


def wide(seed, m=80, n=1500):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, 40))[:, rng.integers(0, 40, n)] + rng.standard_normal((m, n))
    return A, A[:, :6] @ rng.standard_normal(6) + rng.standard_normal(m)


def scaled(A, b, level):
    return level * float(np.abs(A.T @ b).max())


def problems():
    """Name and problem: the losses and penalties of the core on tall and wide data."""
    for name, (A, b) in {"tall": tall(0), "wide": wide(1)}.items():
        for level in (0.3, 0.01):
            lam = scaled(A, b, level)
            yield f"lasso {name} {level}", pl.lasso(A, b, lam)
            yield f"elastic net {name} {level}", pl.elastic_net(A, b, lam, 0.1 * lam)
            signs = (b > 0).astype(float)
            top = scaled(A, signs - 0.5, level) / len(b)
            yield f"logistic {name} {level}", pl.logistic(A, signs, top)
            groups = np.arange(A.shape[1]) // 5
            yield f"group lasso {name} {level}", pl.group_lasso(A, b, 2 * lam, groups)
            yield f"huber {name} {level}", pl.huber(A, b, lam, delta=1.0)
        yield f"nnls {name}", pl.nnls(np.abs(A), np.abs(b))
        yield f"simplex {name}", pl.simplex_ls(A, b)


def core_counts():
    for name, problem in problems():
        solution = pl.solve(problem, tol=1e-8)
        if not solution.solved:
            raise SystemExit(f"{name} is not solved: {solution}")
        yield name, {"iterations": int(solution.iterations.sum())}


def method_counts(count=8, max_iter=400):
    """Iterations of methods to a mean relative gap, and gradients until the certificate."""
    families = {
        "lasso": (pl.families.GaussianLasso(m=100, n=200, nonzeros=20), ("lasso", "lasso-pa")),
        "logistic": (pl.families.GaussianLogistic(m=200, n=40, lam=0.01), ("logistic",)),
    }
    for family, (drawn, learned) in families.items():
        problem = drawn.sample(count, 7)
        names = ["fista", "fista-restart", *learned]
        result = pl.compare(problem, names, max_iter)
        for name in names:
            solution = pl.solve(problem, name, tol=1e-4, max_iter=5000, polish=False)
            yield (
                f"{name} on {family}",
                {
                    "iterations to 1e-3": result.iterations_to(name, 1e-3),
                    "iterations to 1e-6": result.iterations_to(name, 1e-6),
                    "gradients": int(solution.grad_evals.sum()),
                },
            )


def counts():
    return dict([*core_counts(), *method_counts()])


def grown(before, now):
    """Lines about the counts that are larger than before, or missing."""
    lines = []
    for name, numbers in before.items():
        for what, old in numbers.items():
            new = now.get(name, {}).get(what)
            if old is not None and (new is None or new > max(old + 1, SLACK * old)):
                lines.append(f"{name}: {what} {old} before, {new} now")
    return lines


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the counts of this version")
    given = parser.parse_args(arguments)
    now = counts()
    if given.write:
        record = {"version": pl.__version__, "counts": now}
        FILE.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        print(f"wrote {len(now)} rows to {FILE}")
        return 0
    record = json.loads(FILE.read_text(encoding="utf-8"))
    worse, better = grown(record["counts"], now), grown(now, record["counts"])
    print(f"{len(now)} rows, compared with version {record['version']}")
    print(*worse, sep="\n")
    print(f"{len(worse)} counts have grown, {len(better)} have fallen or are new")
    return 1 if worse else 0


if __name__ == "__main__":
    raise SystemExit(main())
