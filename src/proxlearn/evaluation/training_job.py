"""Training from names and texts: what ``proxlearn train`` does."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import torch

from proxlearn.checks import check_pairs
from proxlearn.errors import InputError
from proxlearn.evaluation.comparison import Comparison, compare
from proxlearn.methods import optimizers
from proxlearn.methods.checkpoint import Learned
from proxlearn.solving.solver import solve
from proxlearn.training import families
from proxlearn.training.config import TrainConfig
from proxlearn.training.families import Family
from proxlearn.training.training_loop import Report, train
from proxlearn.watch import Watch

MANY, FEW = 64, 8
"""Problems in the comparison at the end, and pictures, which have thousands of coordinates each."""
FRESH_SEED = 2**40
"""Seed of the problems on which a trained rule is compared: no training draws from it."""


def train_from_options(
    family: str,
    sizes: Sequence[str],
    options: Mapping[str, Any],
    settings: Sequence[str],
    *,
    out: str,
    data: str | None = None,
    resume: bool = False,
    device: str = "cpu",
    watch: Callable[[Report], None] | None = None,
) -> tuple[Learned | None, Family]:
    """Train as the texts say; options that are None keep their defaults.

    The defaults are those of `TrainConfig` for the compact rule and the paper's for other rules;
    for pictures they are those of `TrainConfig.pictures` whatever the rule. `checks.check_train`
    refuses wrong arguments beforehand, without importing PyTorch.

    Returns the optimizer, or None on a rank that does not report, and the family.
    """
    chosen = sized(families.get(family), sizes)
    if data is not None:
        chosen = replace(chosen, folder=data)  # type: ignore[call-arg]
    given = {name: value for name, value in options.items() if value is not None}
    given["settings"] = dict(_pair(text) for text in settings)
    rule = given.get("rule", "compact")
    if rule == "banded" or _has_pictures(chosen):
        config = TrainConfig.pictures(**given)
    elif rule == "compact":
        config = TrainConfig(**given)
    else:
        config = TrainConfig.paper(**given)
    learned = train(chosen, config, out=out, resume=resume, device=device, watch=watch)
    reports = os.environ.get("RANK", "0") == "0"
    return (learned if reports else None), chosen


def compare_trained(
    name: str, learned: Learned, family: Family, watch: Watch | None = None
) -> Comparison:
    """The trained rule beside FISTA with restart on fresh problems of its family."""
    count = FEW if _has_pictures(family) else MANY
    problem = family.of_split("test").sample(count, FRESH_SEED)
    named = {"fista-restart": optimizers.get("fista-restart"), Path(name).stem: learned}
    # Some members of wide families are not certified to the digits that `optimum` insists on.
    best = solve(problem.to(torch.float64), "fista-restart", tol=1e-9, max_iter=3000).objective
    return compare(problem, named, 100, best, watch=watch)


def _has_pictures(family: Family) -> bool:
    return hasattr(family, "folder")


def sized(family: Family, texts: Sequence[str]) -> Family:
    """The family with some of its parameters changed, each given as NAME=VALUE."""
    known = [f.name for f in fields(family)]
    changes = dict(_pair(text) for text in texts)
    for name in changes:
        if name not in known:
            raise InputError(
                f"{type(family).__name__} has no parameter {name!r}; it has {', '.join(known)}"
            )
        if not isinstance(changes[name], (int, float)):
            raise InputError(f"parameter {name} is {changes[name]!r}; expected a number")
    return replace(family, **changes) if changes else family


def _pair(text: str) -> tuple[str, Any]:
    """NAME=VALUE, the value a whole number, a number or else a word."""
    check_pairs([text])
    name, _, value = text.partition("=")
    for number in (int, float):
        try:
            return name, number(value)
        except ValueError:
            continue
    return name, value
