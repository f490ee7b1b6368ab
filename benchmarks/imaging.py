"""What `auto` takes on photographs behind operators beside FISTA, with certified gaps.

    python benchmarks/imaging.py --rows rows.jsonl --sizes 128 256
    python benchmarks/imaging.py --rows rows.jsonl --harder
    python benchmarks/imaging.py --rows rows.jsonl --part cost --sizes 256
    python benchmarks/imaging.py --rows rows.jsonl --part pictures --sizes 128
    python benchmarks/imaging.py --rows rows.jsonl --part variation --sizes 128

The photographs are the test pictures of BSDS500 (PROXLEARN_DATA or ../shared/data), which no
training has seen, one for each seed. Every instance is solved alone, in float64, by the loop
without polish, to a certified relative gap of each level in turn; learned rules run with their
safeguard. What is counted are gradients, a product with each of A and A^T: one an iteration, and
one a step of a repair of the dual point (`proxlearn.solving.dual_repair`). Times are processor
times of whole solves, certificates included. Finished rows are read from the file, so that a run
that was ended goes on where it stopped.

`fista-scaled` is FISTA with restart whose dual points are scaled only, and not repaired, which is
how certificates are made elsewhere. The ratios are to FISTA with repairs, the last two to it.
`untrained` is the learned rule as it is before its training: Douglas-Rachford with a step by a
formula, and behind projections a step for each band of wavelets. `--harder` has wider blurs, fewer
samples and drawn pictures than the trainings. `cost` is the time of an iteration without safeguard
and certificate, alone and in batches. `pictures` follows the picture itself, with the loops of
pyproximal and deepinv beside ours where they are installed: see `imaging_peers`. `variation` solves
the same data with total variation.
"""

import argparse
import json
import math
import os
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from imaging_peers import follow
from torch import Tensor

import proxlearn as pl
from proxlearn.imaging import total_variation
from proxlearn.methods.checkpoint import Learned, build
from proxlearn.solving import dual_repair
from proxlearn.training import families

LEVELS = (1e-2, 1e-3, 1e-4)
OURS, THEIRS, SCALED = "auto", "fista-restart", "fista-scaled"
MOST = 2000
"""Iterations after which a method is given up."""
MOST_VARIED = 5000
"""The same for total variation."""
ITERATIONS, REPEATS = 30, 3
BATCHES = (1, 4, 16)
SEED = 3_000_017
BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"

PLAIN = {name: families.NAMES[name]() for name in ("deblur", "mri", "inpaint", "tomography")}
HARDER = {
    "deblur, wider": families.Deblur(least_width=3.0, most_width=5.0),
    "mri, fewer lines": families.Mri(least_speed=5.0, most_speed=8.0),
    "inpaint, fewer pixels": families.Inpaint(least_missing=0.8, most_missing=0.9),
    "tomography, fewer angles": families.Tomography(fewest_angles=8, most_angles=15),
    "deblur, drawn pictures": families.Deblur(),
    "mri, drawn pictures": families.Mri(),
    "inpaint, drawn pictures": families.Inpaint(),
    "tomography, drawn pictures": families.Tomography(),
}


@dataclass(frozen=True)
class Instance:
    """A picture of a family behind its operator."""

    name: str
    size: int
    seed: int
    basis: str

    @property
    def family(self) -> families.Pictures:
        """With its pictures, size and basis; the drawn sizes are those of the seed."""
        family = {**PLAIN, **HARDER}[self.name]
        folder = "" if "drawn" in self.name else "bsds500"
        return replace(family, folder=folder, split="test", size=self.size, wavelet=self.basis)

    def problem(self, count: int = 1) -> pl.Problem:
        """The problem, or `count` of the same seed; its Lipschitz constant is known."""
        problem = self.family.sample(count, SEED + self.seed).to(torch.float64)
        problem.lipschitz()
        return problem

    def truth(self) -> Tensor:
        """The picture itself, (size, size)."""
        generator = torch.Generator().manual_seed(SEED + self.seed)
        return self.family.fixed(generator).draw(generator)[2].double()

    def optimizer(self, name: str) -> Any:
        """The optimizer of a name, for which a file of weights will do."""
        if name != "untrained":
            return THEIRS if name == SCALED else name
        kind = "banded" if self.name.startswith("tomography") else "splitting"
        return Learned(build({"kind": kind}))


class Rows:
    """Results in a file, one a line; what is there is not measured again."""

    def __init__(self, file: Path | None):
        self.file = file
        lines = file.read_text().splitlines() if file is not None and file.exists() else []
        self.found = [json.loads(line) for line in lines]

    def get(self, make: Callable[[], dict[str, Any]], **key: Any) -> dict[str, Any]:
        """The row with this key, made where it is not there."""
        for row in self.found:
            if all(row.get(name) == value for name, value in key.items()):
                return row
        row = {**key, **make()}
        self.found.append(row)
        if self.file is not None:
            with self.file.open("a") as out:
                out.write(json.dumps(row) + "\n")
        return row


def main() -> None:
    options = parsed()
    torch.set_num_threads(1)
    rows = Rows(options.rows)
    run, header = PARTS[options.part]
    print("\n".join(header))
    for size in options.sizes:
        for name in HARDER if options.harder else PLAIN:
            if options.families and not name.startswith(tuple(options.families.split(","))):
                continue
            instances = [Instance(name, size, s, options.basis) for s in range(options.seeds)]
            for line in run(instances, options, rows):
                print(line, flush=True)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=PARTS, default="gaps")
    parser.add_argument("--sizes", type=int, nargs="+", default=[128, 256])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--families", default="", help="some of them, with commas")
    parser.add_argument("--basis", default="db4")
    parser.add_argument("--optimizers", default=f"{OURS},untrained,{THEIRS},{SCALED}")
    parser.add_argument("--levels", type=float, nargs="+", default=LEVELS)
    parser.add_argument("--harder", action="store_true")
    parser.add_argument("--rows", type=Path, help="a file of results, which is gone on with")
    if not os.environ.get("PROXLEARN_DATA") and (BESIDE / "bsds500").is_dir():
        os.environ["PROXLEARN_DATA"] = str(BESIDE)
    return parser.parse_args()


def gaps(instances: list[Instance], options: argparse.Namespace, rows: Rows) -> Iterable[str]:
    """Gradients to each certified gap, and those to 1e-3 and their time relative to FISTA's."""
    found: dict[str, dict[float, list[dict[str, Any]]]] = {}
    for name in options.optimizers.split(","):
        for i in instances:
            failed: dict[str, Any] | None = None
            for eps in sorted(options.levels, reverse=True):
                row = rows.get(
                    lambda i=i, name=name, eps=eps, failed=failed: (
                        failed or solved(i, name, eps)
                    ),
                    part="gaps", family=i.name, size=i.size, seed=i.seed,
                    method=Path(name).stem, gap=eps,
                )  # fmt: skip
                found.setdefault(name, {}).setdefault(eps, []).append(row)
                if not row["solved"]:  # nor will it be to a smaller gap
                    failed = {k: row[k] for k in ("gradients", "seconds", "solved")}
    for name, levels in found.items():
        counts = [
            middle([r["gradients"] for r in levels[eps]]) if eps in levels else "" for eps in LEVELS
        ]
        cells = [instances[0].name, str(instances[0].size), Path(name).stem, *counts]
        ours = levels.get(LEVELS[1])
        steps, worst, times = ratios(ours, found.get(THEIRS, {}).get(LEVELS[1]))
        cells += [steps, worst, times] if name not in (THEIRS, SCALED) else [""] * 3
        steps, _, times = ratios(ours, found.get(SCALED, {}).get(LEVELS[1]))
        yield f"| {' | '.join([*cells, *([steps, times] if name != SCALED else [''] * 2)])} |"


def ratios(ours: list[dict[str, Any]] | None, theirs: list[dict[str, Any]] | None) -> list[str]:
    """Gradients relative to theirs, the median and the largest, and the median of the times."""
    if ours is None or theirs is None:
        return [""] * 3
    pairs = list(zip(ours, theirs, strict=True))
    steps = [a["gradients"] / b["gradients"] for a, b in pairs]
    times = [a["seconds"] / b["seconds"] for a, b in pairs]
    worst = f"{max(steps):.2f}" if all(a["solved"] for a in ours) else "none"
    return [f"{statistics.median(steps):.2f}", worst, f"{statistics.median(times):.2f}"]


def solved(instance: Instance, name: str, eps: float) -> dict[str, Any]:
    """A solve to a certified relative gap, at most `MOST` iterations."""
    problem, optimizer = instance.problem(), instance.optimizer(name)
    first = 0.0 if name == SCALED else dual_repair.FIRST
    with mock.patch.object(dual_repair, "FIRST", first):
        began = time.process_time()
        solution = pl.solve(problem, optimizer, tol=eps, max_iter=MOST, polish=False)
        seconds = time.process_time() - began
    count = int(solution.grad_evals[0])
    return {"gradients": count, "seconds": seconds, "solved": solution.solved}


def middle(counts: list[int]) -> str:
    """The median."""
    count = statistics.median(counts)
    return f"over {MOST}" if count >= MOST else f"{count:.0f}"


def cost(instances: list[Instance], options: argparse.Namespace, rows: Rows) -> Iterable[str]:
    """Milliseconds an iteration and instance, alone and in batches; alone relative to FISTA."""
    one = instances[0]
    key = {"part": "cost", "family": one.name, "size": one.size}
    names = options.optimizers.split(",")
    found = {B: rows.get(lambda B=B: iterations(one, names, B), batch=B, **key) for B in BATCHES}
    for name in names:
        times = [found[B][name] for B in BATCHES]
        cells = [one.name, str(one.size), Path(name).stem, *(f"{t:.2f}" for t in times)]
        cells.append(f"{times[0] / found[1][THEIRS]:.2f}")
        yield f"| {' | '.join(cells)} |"


def iterations(instance: Instance, names: list[str], batch: int) -> dict[str, float]:
    """Milliseconds of processor time an iteration and instance: the least, the methods in turn."""
    problem = instance.problem(batch)
    best = dict.fromkeys(names, math.inf)
    for _ in range(REPEATS):
        for name in names:
            began = time.process_time()
            pl.solve(
                problem, instance.optimizer(name), tol=0, max_iter=ITERATIONS, polish=False,
                safeguard=False,
            )  # fmt: skip
            best[name] = min(best[name], time.process_time() - began)
    return {name: 1000 * seconds / ITERATIONS / batch for name, seconds in best.items()}


def pictures(instances: list[Instance], options: argparse.Namespace, rows: Rows) -> Iterable[str]:
    """The first instance: time to F within 1e-3 of F*, and PSNR after a time."""
    one = instances[0]
    key = {"part": "pictures", "family": one.name, "size": one.size}

    def make() -> dict[str, Any]:
        basis = one.family.fixed(torch.Generator().manual_seed(SEED + one.seed)).basis()
        basis = basis.convert(torch.float64)
        truth = one.truth()
        names = [(Path(n).stem, one.optimizer(n)) for n in options.optimizers.split(",")]
        return follow(one.problem(), dict(names), lambda x: psnr(basis.adjoint(x), truth))

    found = rows.get(make, **key)
    for name, row in found["methods"].items():
        cells = [one.name, str(one.size), name, *(str(c) for c in row)]
        yield f"| {' | '.join(cells)} |"


def variation(instances: list[Instance], options: argparse.Namespace, rows: Rows) -> Iterable[str]:
    """Total variation on the same data: iterations to each gap, and seconds to the last."""
    for one in instances:
        cells = [one.name, str(one.size), str(one.seed)]
        for isotropic in (True, False):
            for eps in LEVELS[:2]:
                row = rows.get(
                    lambda one=one, isotropic=isotropic, eps=eps: varied(one, isotropic, eps),
                    part="variation", family=one.name, size=one.size, seed=one.seed,
                    isotropic=isotropic, gap=eps,
                )  # fmt: skip
                cells.append(str(row["iterations"]) if row["solved"] else f"over {MOST_VARIED}")
            cells.append(f"{row['seconds']:.1f}")
        yield f"| {' | '.join(cells)} |"


def varied(instance: Instance, isotropic: bool, eps: float) -> dict[str, Any]:
    """A solve with total variation to a certified relative gap."""
    generator = torch.Generator().manual_seed(SEED + instance.seed)
    family = instance.family.fixed(generator)
    b, lam, _, *parts = family.draw(generator)
    A = family.operator(*(part[None] for part in parts)).convert(torch.float64)
    began = time.process_time()
    solution = total_variation(
        A, b.double(), float(lam), shape=(instance.size, instance.size), isotropic=isotropic,
        tol=eps, max_iter=MOST_VARIED,
    )  # fmt: skip
    seconds = time.process_time() - began
    count = int(solution.iterations[0])
    return {"iterations": count, "seconds": seconds, "solved": solution.solved}


def psnr(picture: Tensor, truth: Tensor) -> float:
    """Of pictures with values from 0 to 1."""
    return float(-10 * (picture.reshape(truth.shape) - truth).square().mean().log10())


PARTS = {
    "gaps": (
        gaps,
        (
            "| family | size | method | to 1e-2 | to 1e-3 | to 1e-4 | gradients, ratio | worst | "
            "time, ratio | gradients, to scaled | time, to scaled |",
            "|---|---|---|---|---|---|---|---|---|---|---|",
        ),
    ),
    "cost": (
        cost,
        (
            "| family | size | method | "
            + " | ".join(f"ms, batch of {B}" for B in BATCHES)
            + " | alone, ratio |",
            "|---|---|---|---|---|---|---|",
        ),
    ),
    "variation": (
        variation,
        (
            "| family | size | seed | isotropic, to 1e-2 | to 1e-3 | seconds | anisotropic, "
            "to 1e-2 | to 1e-3 | seconds |",
            "|---|---|---|---|---|---|---|---|---|",
        ),
    ),
    "pictures": (
        pictures,
        (
            "| family | size | method | iterations | seconds | PSNR after 0.1 s | 0.3 s | 1 s | "
            "optimum |",
            "|---|---|---|---|---|---|---|---|---|",
        ),
    ),
}


if __name__ == "__main__":
    main()
