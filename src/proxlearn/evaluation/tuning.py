"""Hyper-parameters of Adam and AdamHD for a family, chosen on a grid over validation problems."""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from proxlearn.checks import check_choice
from proxlearn.errors import InputError, unknown
from proxlearn.evaluation.comparison import optimum
from proxlearn.files import replacing
from proxlearn.methods.optimizers import Adam
from proxlearn.problems.problem import Problem
from proxlearn.solving.first_order import Progress
from proxlearn.solving.solver import solve
from proxlearn.training import families
from proxlearn.training.families import Family
from proxlearn.watch import Watch, portion

Grid = Mapping[str, Sequence[float]]
Record = dict[str, Any]

GRIDS: dict[str, Grid] = {
    "adam": {
        "alpha": (0.001, 0.003, 0.01, 0.03, 0.1),
        "beta1": (0.1, 0.8, 0.9, 0.95, 0.98),
        "beta2": (0.1, 0.7, 0.9, 0.99, 0.999),
    },
    "adamhd": {
        "alpha": (0.003, 0.01, 0.03, 0.1, 0.3),
        "hyper": (1e-7, 3.2e-6, 1e-5, 1e-4, 3e-4),
        "beta1": (0.001, 0.5, 0.9),
        "beta2": (0.1, 0.9, 0.999),
        "least": (1e-8,),
    },
}
"""What is tried for each optimizer: every combination. `PUBLISHED` is one of them."""
PUBLISHED: dict[str, dict[str, float]] = {
    "adam": {"alpha": 0.01, "beta1": 0.1, "beta2": 0.1},
    "adamhd": {"alpha": 0.1, "hyper": 3.2e-6, "beta1": 0.001, "beta2": 0.1, "least": 1e-8},
}
"""The values in the scripts of the paper's code, for all its problems. The hyper learning rate
there is 1e-7 and multiplies a dot product over a batch of 32 problems, which makes 32 times as much
for each of them."""
STREAM = 3_000_000_000
"""Added to the seed of the validation problems, so that none of them is in a test or a comparison.
(A generator of PyTorch looks at the lowest 32 bits of a seed only.)"""
LARGEST_SEED = 10**9
"""Largest seed of a tuning, so that seeds with `STREAM` added do not meet others."""
MOST_ITERATIONS = 10**7
"""The relative gaps of all iterations are kept until the score is known."""
LEAST, WORST = 1e-7, 1e3
"""Relative gaps are cut to this range; an instance that breaks down has the worst."""
_RECORDS = Path(__file__).parent / "tuned"


def tune(
    optimizer: str,
    family: str | Family,
    grid: Grid | None = None,
    *,
    count: int = 64,
    iterations: int = 1000,
    seed: int = 0,
    watch: Watch | None = None,
) -> Record:
    """Try every combination of `grid` on `count` validation problems; a record of all scores.

    The score is the mean over the iterations of log10 of the relative gap at x, which is averaged
    over the problems before the logarithm: smaller is better. "edge" names the values chosen at
    an end of their range, where the grid should be wider.

    >>> import proxlearn as pl
    >>> family = pl.families.GaussianLasso(m=10, n=20, nonzeros=2)
    >>> record = tune("adam", family, {"alpha": (0.001, 0.05, 10.0)}, count=4, iterations=50)
    >>> record["chosen"], record["edge"]
    ({'alpha': 0.05}, [])
    """
    check_choice("optimizer to tune", optimizer, GRIDS)
    grid = GRIDS[optimizer] if grid is None else grid
    _check(grid, iterations, seed)
    problem = families.get(family).sample(count, STREAM + seed)
    combinations = list(itertools.product(*grid.values()))
    parts = 1 + len(combinations)
    best = optimum(problem, watch=portion(watch, 0, 1, parts))
    trials = []
    for i, values in enumerate(combinations, 1):
        setting = dict(zip(grid, values, strict=True))
        score = _score(problem, best, setting, iterations, portion(watch, i, i + 1, parts))
        trials.append({**setting, "score": round(score, 4)})
    winner = min(trials, key=lambda trial: trial["score"])
    chosen = {name: winner[name] for name in grid}
    return {
        "optimizer": optimizer,
        "family": family if isinstance(family, str) else repr(family),
        "count": count,
        "iterations": iterations,
        "seed": seed,
        "score": "mean over iterations of log10 of the mean relative gap",
        "grid": {name: list(values) for name, values in grid.items()},
        "chosen": chosen,
        "edge": [n for n, v in grid.items() if len(v) > 1 and chosen[n] in (min(v), max(v))],
        "trials": trials,
    }


def record(optimizer: str, family: str) -> Record | None:
    """The shipped record of tuning this optimizer for this family; None if there is none."""
    file = _RECORDS / f"{optimizer}-{family}.json"
    if optimizer not in GRIDS or family not in families.NAMES or not file.is_file():
        return None
    found: Record = json.loads(file.read_text(encoding="utf-8"))
    return found


def tuned(optimizer: str, family: str) -> Adam:
    """Adam or AdamHD with the values that were chosen for this family.

    >>> tuned("adam", "gaussian-logistic").alpha
    0.003
    """
    found = record(optimizer, family)
    if found is None:
        known = sorted(file.stem for file in _RECORDS.glob("*.json"))
        raise unknown("record of tuning", f"{optimizer}-{family}", known)
    return Adam(**found["chosen"])


def parse_grid(options: Sequence[str]) -> Grid:
    """``["alpha=0.01,0.1"]`` as a grid."""
    grid = {}
    for option in options:
        name, _, values = option.partition("=")
        try:
            grid[name] = tuple(float(value) for value in values.split(","))
        except ValueError:
            raise InputError(
                f"--set {option} is not a list of numbers; expected NAME=VALUE,VALUE,..."
            ) from None
    return grid


def save(found: Record, path: str | Path) -> None:
    """Write a record as JSON, a line for each trial."""
    head = {name: value for name, value in found.items() if name != "trials"}
    lines = [f"  {json.dumps(name)}: {json.dumps(value)}," for name, value in head.items()]
    trials = ",\n".join(f"    {json.dumps(trial)}" for trial in found["trials"])
    text = "\n".join(["{", *lines, '  "trials": [', trials, "  ]", "}", ""])
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _check(grid: Grid, iterations: int, seed: int) -> None:
    """Refuses a grid, a number of iterations or a seed that cannot be used."""
    known = [field.name for field in fields(Adam)]
    for name in grid:
        check_choice("parameter", name, known)
    if not grid or not all(len(values) for values in grid.values()):
        raise InputError("the grid is empty; expected names with at least one value each")
    for values in itertools.product(*grid.values()):
        Adam(**dict(zip(grid, values, strict=True)))  # refuses what is out of range
    if not 1 <= iterations <= MOST_ITERATIONS:
        raise InputError(f"iterations is {iterations}; expected 1 to {MOST_ITERATIONS}")
    if not 0 <= seed <= LARGEST_SEED:
        raise InputError(f"seed is {seed}; expected 0 to {LARGEST_SEED}")


def _score(
    problem: Problem,
    best: Tensor,
    setting: Mapping[str, float],
    iterations: int,
    watch: Watch | None,
) -> float:
    """The score of one combination."""
    gaps = torch.full((iterations, problem.batch), WORST, dtype=torch.float64)
    x = torch.zeros(problem.batch, problem.n)
    name = ", ".join(f"{key} {value:g}" for key, value in setting.items())

    def look(progress: Progress) -> None:
        at = progress.index
        x[at] = progress.x
        F = problem.objective(x)[at].double()
        gaps[progress.iteration - 1, at] = (F - best[at]) / best[at].abs()
        if watch is not None:
            watch(name, progress.iteration, iterations)

    solve(problem, Adam(**setting), tol=0, max_iter=iterations, callback=look)
    gaps = gaps.nan_to_num(nan=WORST).clamp(LEAST, WORST)
    return float(gaps.mean(1).log10().mean())
