"""Optimizers by name on fresh problems of one family: what ``proxlearn compare`` runs."""

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

LEVELS = (1e-3, 1e-6)
"""Mean relative gaps to which iterations and time are counted."""
OPTIMUM = "float64, certified to a relative gap of 1e-12"


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
