"""The learned rule `imaging` beside FISTA on photographs behind operators, certified gaps.

    python benchmarks/imaging.py --sizes 128 --seeds 1 --count 2
    python benchmarks/imaging.py --markdown docs/benchmarks-imaging.md --json rows.json
    python benchmarks/imaging.py --harder

The photographs are the test pictures of BSDS500 (PROXLEARN_DATA or ../shared/data), which no
training has seen. Every instance is solved alone, in float64, by the loop without polish, and
recorded: the certified gap is computed at every iterate. The rule runs with its safeguard.
Iterations are counted until that gap, relative to the objective, is below 1e-2, 1e-3 and 1e-4. The
time of an iteration is the processor time of a whole solve of 30 iterations divided by 30, the
least of five, the methods in turn. `--harder` has wider blurs, fewer samples and drawn pictures
than the training. `--peers` adds an iteration of pyproximal's FISTA on the same operator, where
pyproximal is installed.
"""

import argparse
import json
import math
import os
import shlex
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import proxlearn as pl
from proxlearn.training import families

LEVELS = (1e-2, 1e-3, 1e-4)
OURS, THEIRS = "imaging", "fista-restart"
MOST = 1500
ITERATIONS, REPEATS = 30, 5
SEED = 3_000_017
BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"

PLAIN = {name: families.NAMES[name]() for name in ("deblur", "mri", "inpaint", "tomography")}
HARDER = {
    "deblur, wider": families.Deblur(least_width=3.0, most_width=5.0),
    "mri, fewer lines": families.Mri(least_speed=5.0, most_speed=8.0),
    "inpaint, fewer pixels": families.Inpaint(least_missing=0.8, most_missing=0.9),
    "tomography, fewer angles": families.Tomography(fewest_angles=8, most_angles=15),
    "deblur, drawn pictures": families.Deblur(),
    "tomography, drawn pictures": families.Tomography(),
}


def main() -> None:
    options = parsed()
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    table = HARDER if options.harder else PLAIN
    for size in options.sizes:
        for name, family in table.items():
            if options.families and not name.startswith(tuple(options.families.split(","))):
                continue
            folder = "" if "drawn" in name else "bsds500"
            family = replace(family, folder=folder, split="test", size=size, wavelet=options.basis)
            found = [
                instance(family, SEED + seed, i, options)
                for seed in range(options.seeds)
                for i in range(options.count)
            ]
            cost = per_iteration(family, options)
            row = {"family": name, "size": size, "instances": found, "ms": cost}
            rows.append(row)
            print("\n".join(lines(row)), flush=True)
            save(options, rows)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[128, 256])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--count", type=int, default=2, help="instances a seed")
    parser.add_argument("--families", default="", help="some of them, with commas")
    parser.add_argument("--basis", default="db4")
    parser.add_argument("--optimizers", default=f"{OURS},{THEIRS},fista")
    parser.add_argument("--tol", type=float, default=LEVELS[-1], help="gap at which a run ends")
    parser.add_argument("--harder", action="store_true")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    if not os.environ.get("PROXLEARN_DATA") and (BESIDE / "bsds500").is_dir():
        os.environ["PROXLEARN_DATA"] = str(BESIDE)
    return parser.parse_args()


def problem_of(family: families.Pictures, seed: int, i: int) -> pl.Problem:
    """Instance i of a seed, alone."""
    return family.sample(i + 1, seed).select(torch.tensor([i])).to(torch.float64)


def instance(
    family: families.Pictures, seed: int, i: int, options: argparse.Namespace
) -> dict[str, list[int | None]]:
    """Iterations of each method to each level; None where `MOST` were not enough."""
    problem = problem_of(family, seed, i)
    found = {}
    for name in options.optimizers.split(","):
        solution = pl.solve(
            problem, name, tol=options.tol, max_iter=MOST, polish=False, record=True
        )
        relative = (solution.history.gap / solution.history.objective.abs())[:, 0]
        found[name] = [first_below(relative, eps) for eps in LEVELS]
    return found


def first_below(gap: torch.Tensor, eps: float) -> int | None:
    below = (gap <= eps).nonzero()
    return int(below[0, 0]) if len(below) else None


def per_iteration(family: families.Pictures, options: argparse.Namespace) -> dict[str, float]:
    """Milliseconds of processor time an iteration of each method."""
    problem = problem_of(family, SEED, 0)
    problem.lipschitz()
    runs: dict[str, Callable[[], Any]] = {
        name: lambda name=name: pl.solve(
            problem, name, tol=0, max_iter=ITERATIONS, polish=False, safeguard=False
        )
        for name in options.optimizers.split(",")
    }
    if options.peers:
        runs["pyproximal"] = pyproximal_run(problem)
    best = dict.fromkeys(runs, math.inf)
    for _ in range(REPEATS):
        for name, run in runs.items():
            began = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - began)
    return {name: 1000 * seconds / ITERATIONS for name, seconds in best.items()}


def pyproximal_run(problem: pl.Problem) -> Callable[[], Any]:
    """30 iterations of FISTA as pyproximal has it, on the same operator and step."""
    import numpy as np
    import pyproximal
    from scipy.sparse.linalg import LinearOperator

    f, A = problem.f, problem.f.A
    b = f.b[0].numpy()

    def vector(product: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Any], Any]:
        return lambda x: product(torch.from_numpy(np.asarray(x, np.float64))[None])[0].numpy()

    import pylops

    linear = LinearOperator(A.shape, vector(A.forward), vector(A.adjoint), dtype=np.float64)
    op = pylops.aslinearoperator(linear)
    smooth = pyproximal.L2(Op=op, b=b)
    penalty = pyproximal.L1(sigma=float(problem.r.lam[0]))
    step = float(1 / problem.lipschitz()[0])
    zero = np.zeros(problem.n)
    return lambda: pyproximal.optimization.primal.ProximalGradient(
        smooth, penalty, x0=zero, tau=step, niter=ITERATIONS, acceleration="fista", show=False
    )


def ratios(row: dict[str, Any], level: int) -> list[float]:
    """Iterations of our rule relative to FISTA with restart, instance by instance."""
    out = []
    for found in row["instances"]:
        ours, theirs = found[OURS][level], found[THEIRS][level]
        if theirs is not None:
            out.append(math.inf if ours is None else ours / theirs)
    return out


def lines(row: dict[str, Any]) -> list[str]:
    """Markdown rows of a family and a size."""
    out = []
    for name in row["instances"][0]:
        counts = []
        for level in range(len(LEVELS)):
            values = [found[name][level] for found in row["instances"]]
            done = sorted(math.inf if v is None else v for v in values)
            middle = statistics.median(done)
            counts.append(f"over {MOST}" if middle == math.inf else f"{middle:.0f}")
        cells = [row["family"], str(row["size"]), name, *counts, f"{row['ms'][name]:.2f}"]
        cells += summary(row) if name == OURS else ["", "", ""]
        out.append(f"| {' | '.join(cells)} |")
    if "pyproximal" in row["ms"]:
        cells = [row["family"], str(row["size"]), "pyproximal", "", "", ""]
        cells += [f"{row['ms']['pyproximal']:.2f}", "", "", ""]
        out.append(f"| {' | '.join(cells)} |")
    return out


def summary(row: dict[str, Any]) -> list[str]:
    """Median and worst ratio of iterations to 1e-3, and the median ratio of times."""
    found = ratios(row, 1)
    if not found:
        return ["", "", ""]
    median = statistics.median(found)
    times = median * row["ms"][OURS] / row["ms"][THEIRS]
    return [f"{median:.2f}", f"{max(found):.2f}", f"{times:.2f}"]


HEADER = """| family | size | method | to 1e-2 | to 1e-3 | to 1e-4 | ms an iteration | iterations, \
ratio | worst | time, ratio |
|---|---|---|---|---|---|---|---|---|---|"""


def save(options: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
    command = shlex.join(["python", "benchmarks/imaging.py", *sys.argv[1:]])
    if options.json:
        options.json.write_text(json.dumps({"command": command, "rows": rows}, indent=1))
    if options.markdown:
        body = "\n".join(line for row in rows for line in lines(row))
        options.markdown.write_text(f"`{command}`\n\n{HEADER}\n{body}\n")


if __name__ == "__main__":
    main()
