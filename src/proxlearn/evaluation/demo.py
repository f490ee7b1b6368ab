"""The demonstration: fresh LASSO problems, solved by classic methods and by a learned rule."""

import shlex
from collections.abc import Sequence
from typing import Any

from proxlearn import __version__
from proxlearn.errors import InputError
from proxlearn.evaluation.comparison import Comparison
from proxlearn.evaluation.competitors import compare_named, notes
from proxlearn.evaluation.training_job import sized
from proxlearn.training import families
from proxlearn.watch import Watch

OPTIMIZERS = ("ista", "fista", "fista-restart", "lasso")
MAX_ITER = 250
LEVELS = (1e-3, 1e-6)
"""Mean relative gaps to which iterations and time are counted."""


def run(count: int = 128, seed: int = 0, watch: Watch | None = None) -> Comparison:
    """`count` problems of the paper's LASSO family, float32, by each of `OPTIMIZERS`.

    The optima are certified in float64 to 1e-12, and objectives are measured in float64 too:
    in float32 the iterates themselves come closer to the optimum than 1e-6.
    """
    return compare_family("gaussian-lasso", OPTIMIZERS, count, MAX_ITER, seed, watch)


def compare_family(
    family: str,
    optimizers: tuple[str, ...],
    count: int,
    max_iter: int,
    seed: int,
    watch: Watch | None = None,
    sizes: Sequence[str] = (),
) -> Comparison:
    """`compare_named` on `count` problems sampled from the family of that name.

    `sizes` are parameters of the family that differ from its defaults, each as NAME=VALUE.
    """
    if count < 1:
        raise InputError(f"count is {count}; expected at least one problem")
    problem = sized(families.get(family), sizes).sample(count, seed)
    return compare_named(problem, optimizers, family, max_iter, watch)


def titled(family: str, sizes: Sequence[str]) -> str:
    """The family's name, and the parameters that differ from its defaults."""
    return f"{family} with {', '.join(sizes)}" if sizes else family


OPTIMUM = "float64, certified to a relative gap of 1e-12"


def card(count: int, seed: int) -> dict[str, Any]:
    """What the page says of the demonstration; see `report.results.read`."""
    about = family_card("gaussian-lasso", OPTIMIZERS, count, MAX_ITER, seed)
    title = f"{count} LASSO problems, 250 × 500, 50 non-zeros, λ = 0.1"
    return about | {"title": title, "command": f"proxlearn demo --count {count} --seed {seed}"}


def family_card(
    family: str,
    optimizers: tuple[str, ...],
    count: int,
    max_iter: int,
    seed: int,
    sizes: Sequence[str] = (),
) -> dict[str, Any]:
    """What the page says of `compare_family` with these arguments."""
    words = ["proxlearn", "compare", family, "--optimizers", ",".join(optimizers)]
    words += [word for size in sizes for word in ("--set", size)]
    numbers = f"--count {count} --max-iter {max_iter} --seed {seed}"
    return {
        "title": f"{count} problems of {titled(family, sizes)}",
        "command": f"{shlex.join(words)} {numbers}",
        "count": count,
        "iterations": max_iter,
        "seed": seed,
        "version": __version__,
        "optimum": OPTIMUM,
        "notes": notes(optimizers, family),
    }
