"""A line of the table of claims: what the paper says, what we measured, and a verdict by code."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Table

from proxlearn.evaluation.report.counts import Count, Results
from proxlearn.files import replacing

FILE = "claims.json"
YES = "reproduced"
NO = "not reproduced"
ONLY = "reproduced only as published"
"""With the published step or the published preset, and not with the right one."""
OPEN = "not measured"
SLACK = 1.1
"""Numbers within ten percent of each other count as equal."""
SEEDS = (0, 1, 2)
"""Seeds of the trainings of a preset."""
RIGHT, PUBLISHED = "right step", "published step"
STEPS = (RIGHT, PUBLISHED)
GENERIC = {"l2o-dm": "L2O-DM", "rnnprop": "RNNprop"}
"""Learned optimizers that are not made for this kind of problem."""
BASELINES = {"ista": "ISTA", "fista": "FISTA", "adam": "Adam", "adamhd": "AdamHD"}
"""Methods without weights that the paper compares with."""
LESS = "L2O-DM and RNNprop were trained on less than the paper's"
"""A note where their training is not the paper's, so that a verdict is on our weights."""


@dataclass(frozen=True)
class Verdict:
    """One line of the table."""

    claim: str
    experiment: str
    paper: str
    ours: str
    restarted_fista: str
    """The same quantity for FISTA with restart and the right step."""
    verdict: str
    note: str = ""
    weights: str = ""
    """Preset, number of seeds and spread of the learned method that is judged."""
    tight: str = ""
    """The verdict where converged means 1e-8; empty where the level makes no difference."""


def verdict(holds: bool | None) -> str:
    """In words; None is where the rows do not tell."""
    return OPEN if holds is None else YES if holds else NO


def verdict_by_step(holds: Mapping[str, bool | None]) -> str:
    """The verdict on a comparison with FISTA, from whether it holds in each step convention."""
    right, published = holds[RIGHT], holds[PUBLISHED]
    if right is False and published is not None:
        return ONLY if published else NO
    return verdict(right or None)


def both(first: bool | None, second: bool | None) -> bool | None:
    """And, for answers that may be unknown."""
    if first is False or second is False:
        return False
    return None if first is None or second is None else True


def against(ours: Count, other: Count) -> str:
    """Says so where L2O-PA needs as many iterations as FISTA with restart, or more."""
    if not ours.measured or other.value is None:
        return ""
    if ours.value == other.value:
        return "no faster than FISTA with restart and the right step"
    slower = ours.at_least(other.value)
    return "slower than FISTA with restart and the right step" if slower else ""


def joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))


@dataclass(frozen=True)
class Trained:
    """Iterations of a learned method to a level, for every seed of either preset that was run."""

    corrected: tuple[Count, ...]
    published: tuple[Count, ...]

    @property
    def by_preset(self) -> dict[str, Count]:
        """The median of each preset; the other one stands in where a preset was not run."""
        right = median(self.corrected or self.published or (Count(None, -1),))
        return {RIGHT: right, PUBLISHED: median(self.published) if self.published else right}

    def __str__(self) -> str:
        parts = {"corrected": self.corrected, "published": self.published}
        return "; ".join(f"{name}: {_spread(c)}" for name, c in parts.items() if c)


def _spread(counts: Sequence[Count]) -> str:
    """Number of seeds, and the range of what they need where there are several."""
    if len(counts) == 1:
        return "1 seed"
    ordered = sorted(counts, key=lambda c: (c.value is None, c.value))
    return f"{len(counts)} seeds, {ordered[0]} to {ordered[-1]}"


def trained(
    results: Results, experiment: str, model: str, level: float, settings: Sequence[str] = STEPS
) -> Trained:
    """A model such as 'lasso-pa' with the weights of either preset.

    The package ships the first seed of the corrected preset. `settings` are those in which the
    corrected and the published preset are run: the steps, where they differ.
    """
    right, as_published = settings
    names = (model, *(f"corrected-{model}-{seed}" for seed in SEEDS[1:]))
    corrected = [results.to(experiment, right, name, level) for name in names]
    names = tuple(f"published-{model}-{seed}" for seed in SEEDS)
    published = [results.to(experiment, as_published, name, level) for name in names]
    measured = [tuple(c for c in counts if c.measured) for counts in (corrected, published)]
    return Trained(*measured)


def runs(results: Results, experiment: str, model: str) -> dict[str, list[tuple[str, str]]]:
    """Setting and name of the runs that stand for a learned rule, with either step.

    With p in units of 1/L these are the seeds of the corrected preset. With p in units of 1/||A||
    they are the seeds of the published one; where none was run, our own weights in that unit;
    where those were not run, the first stand for both.
    """

    def there(setting: str, *names: str) -> list[tuple[str, str]]:
        found = [results.curve(experiment, setting, name) for name in names]
        return [(setting, name) for name, c in zip(names, found, strict=True) if c is not None]

    corrected = there(RIGHT, model, *(f"corrected-{model}-{seed}" for seed in SEEDS[1:]))
    published = there(PUBLISHED, *(f"published-{model}-{seed}" for seed in SEEDS))
    published = published or there(PUBLISHED, f"{model}-rescaled", model)[:1]
    return {RIGHT: corrected or published, PUBLISHED: published or corrected}


def in_each_unit(
    results: Results, experiment: str, optimizer: str, level: float
) -> dict[str, Count]:
    """Iterations of a learned rule with its p in either unit, the median of its `runs`."""
    unknown = [Count(None, -1)]
    return {
        step: median([results.to(experiment, *run, level) for run in found] or unknown)
        for step, found in runs(results, experiment, optimizer).items()
    }


def ablated(results: Results, variants: Sequence[str]) -> tuple[dict[str, Count], str]:
    """Iterations of the ablation's variants to convergence, and the preset that trained them.

    That is the published one, once all of these variants were run with it; else the shipped
    weights.
    """
    level = results.converged
    counts = {v: results.to("ablation", "", f"published-lasso-{v}-0", level) for v in variants}
    if all(count.measured for count in counts.values()):
        return counts, "published"
    return {v: results.to("ablation", "", f"lasso-{v}", level) for v in variants}, "shipped"


def median(counts: Sequence[Count]) -> Count:
    """The median of some counts, the later of two; what did not arrive comes last."""
    ordered = sorted(counts, key=lambda c: (c.value is None, c.value))
    return ordered[len(ordered) // 2]


def each(ours: Mapping[str, Count]) -> str:
    """A count in words, or both where the unit of p makes a difference."""
    if len(set(ours.values())) == 1:
        return str(ours[RIGHT])
    return f"{ours[RIGHT]}; p in the published unit: {ours[PUBLISHED]}"


def by_preset(ours: Mapping[str, Count]) -> str:
    """A count in words, or both where one preset differs from the other."""
    if len(set(ours.values())) == 1:
        return str(ours[RIGHT])
    return f"{ours[RIGHT]}; published preset: {ours[PUBLISHED]}"


def beside_fista(ours: Mapping[str, Count], fista: Mapping[str, Count]) -> str:
    """The counts of L2O-PA and of FISTA with each step, in words."""
    counts = "; ".join(f"FISTA, {step}: {count}" for step, count in fista.items())
    return f"L2O-PA {each(ours)}; {counts}"


def save(verdicts: list[Verdict], folder: Path) -> None:
    """Write the table as JSON, whole or not at all."""
    with replacing(folder / FILE) as temporary:
        text = json.dumps([asdict(v) for v in verdicts], indent=2, ensure_ascii=False)
        temporary.write_text(text + "\n", encoding="utf-8")


def table(verdicts: list[Verdict]) -> Table:
    """The table for a terminal."""
    made = Table(title="the paper's figures beside ours", show_lines=True)
    for column in ("claim", "paper", "ours", "FISTA with restart", "verdict"):
        made.add_column(column)
    for v in verdicts:
        tight = f"at 1e-8 {v.tight}" if v.tight not in ("", v.verdict) else ""
        words = joined(v.verdict, tight, v.weights, v.note)
        made.add_row(v.claim, v.paper, v.ours, v.restarted_fista, words)
    return made
