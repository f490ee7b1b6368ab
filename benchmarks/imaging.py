"""What `auto` takes on photographs behind operators beside FISTA, with certified gaps.

    python benchmarks/imaging.py --sizes 128 --seeds 1 --count 2
    python benchmarks/imaging.py --markdown docs/benchmarks-imaging.md --json rows.json
    python benchmarks/imaging.py --harder

The photographs are the test pictures of BSDS500 (PROXLEARN_DATA or ../shared/data), which no
training has seen. Every instance is solved alone, in float64, by the loop without polish, and
recorded: the certified gap is computed at every iterate. Learned rules run with their safeguard.
Iterations are counted until that gap, relative to the objective, is below 1e-2, 1e-3 and 1e-4.
Then every instance is solved again to 1e-3 without recording, the methods in turn, and the
processor time of the whole solve is taken, its certificate included. The time of an iteration is
the processor time of 30 iterations without safeguard and certificate divided by 30, the least of
five, the methods in turn.

`formula` is the rule `imaging-splitting` before its training: Douglas-Rachford with a gamma by
hand. `--harder` has wider blurs, fewer samples and drawn pictures than the training. `--peers` adds
an iteration of FISTA as pyproximal has it on the same operator; it needs pyproximal and pylops.
Optimizers may be files of weights, such as an L2O-PA of `proxlearn train imaging --rule pa`.
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
from proxlearn.methods.checkpoint import Learned, build
from proxlearn.training import families

LEVELS = (1e-2, 1e-3, 1e-4)
OURS, THEIRS = "auto", "fista-restart"
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
    parser.add_argument("--optimizers", default=f"{OURS},formula,imaging,{THEIRS}")
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


def optimizer(name: str) -> Any:
    """The optimizer of a name; the rule `splitting` before any training under "formula"."""
    return Learned(build({"kind": "splitting"})) if name == "formula" else name


def instance(
    family: families.Pictures, seed: int, i: int, options: argparse.Namespace
) -> dict[str, dict[str, Any]]:
    """Iterations of each method to each level, None where `MOST` were not enough; its seconds."""
    problem = problem_of(family, seed, i)
    problem.lipschitz()
    found = {}
    for name in methods(family, options):
        solution = pl.solve(
            problem, optimizer(name), tol=options.tol, max_iter=MOST, polish=False, record=True
        )
        relative = (solution.history.gap / solution.history.objective.abs())[:, 0]
        steps = [first_below(relative, eps) for eps in LEVELS]
        began = time.process_time()
        timed = pl.solve(problem, optimizer(name), tol=LEVELS[1], max_iter=MOST, polish=False)
        seconds = time.process_time() - began
        found[name] = {"steps": steps, "seconds": seconds, "solved": timed.solved}
    return found


def methods(family: families.Pictures, options: argparse.Namespace) -> list[str]:
    """The optimizers of a family: `formula` only where f has a proximal operator."""
    chosen = options.optimizers.split(",")
    closed = not isinstance(family, families.Tomography)
    return [name for name in chosen if name != "formula" or closed]


def first_below(gap: torch.Tensor, eps: float) -> int | None:
    below = (gap <= eps).nonzero()
    return int(below[0, 0]) if len(below) else None


def per_iteration(family: families.Pictures, options: argparse.Namespace) -> dict[str, float]:
    """Milliseconds of processor time an iteration of each method."""
    problem = problem_of(family, SEED, 0)
    problem.lipschitz()
    runs: dict[str, Callable[[], Any]] = {
        name: lambda name=name: pl.solve(
            problem, optimizer(name), tol=0, max_iter=ITERATIONS, polish=False, safeguard=False
        )
        for name in methods(family, options)
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


def ratios(row: dict[str, Any], name: str) -> tuple[list[float], list[float]]:
    """Iterations and seconds to 1e-3 relative to FISTA with restart, instance by instance.

    Where FISTA did not get there, `MOST` iterations and what they took are in its place: the ratio
    is then too large.
    """
    steps, seconds = [], []
    for found in row["instances"]:
        ours, theirs = found[name], found[THEIRS]
        if ours["steps"][1] is None:
            steps.append(math.inf)
            seconds.append(math.inf)
            continue
        steps.append(ours["steps"][1] / (theirs["steps"][1] or MOST))
        seconds.append(ours["seconds"] / theirs["seconds"])
    return steps, seconds


def lines(row: dict[str, Any]) -> list[str]:
    """Markdown rows of a family and a size."""
    out = []
    for name in row["instances"][0]:
        counts = []
        for level in range(len(LEVELS)):
            values = [found[name]["steps"][level] for found in row["instances"]]
            middle = statistics.median(math.inf if v is None else v for v in values)
            counts.append(f"over {MOST}" if middle == math.inf else f"{middle:.0f}")
        cells = [row["family"], str(row["size"]), Path(name).stem, *counts]
        cells += [f"{row['ms'][name]:.2f}", *summary(row, name)]
        out.append(f"| {' | '.join(cells)} |")
    if "pyproximal" in row["ms"]:
        cells = [row["family"], str(row["size"]), "pyproximal", "", "", ""]
        cells += [f"{row['ms']['pyproximal']:.2f}", "", "", ""]
        out.append(f"| {' | '.join(cells)} |")
    return out


def summary(row: dict[str, Any], name: str) -> list[str]:
    """Median and worst ratio of iterations to 1e-3, and the median ratio of times."""
    if name == THEIRS or THEIRS not in row["instances"][0]:
        return ["", "", ""]
    steps, seconds = ratios(row, name)
    values = (statistics.median(steps), max(steps), statistics.median(seconds))
    return ["none" if v == math.inf else f"{v:.2f}" for v in values]


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
