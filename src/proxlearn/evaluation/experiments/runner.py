"""Runs an experiment: blocks of instances, each part cached, then rows and a card."""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from proxlearn import __version__
from proxlearn.errors import InputError, unknown
from proxlearn.evaluation.comparison import optimum as certified_optimum
from proxlearn.evaluation.experiments import NAMES, compared_methods, kept
from proxlearn.evaluation.experiments.cache import Cache, core_digest, fingerprint
from proxlearn.evaluation.experiments.experiment import Experiment, Setting
from proxlearn.evaluation.experiments.record import Arrays, record_bias, record_gap
from proxlearn.evaluation.experiments.steps import published_step, stepped
from proxlearn.evaluation.experiments.trainings import TRAININGS
from proxlearn.evaluation.report import parquet
from proxlearn.files import check_folder, replacing
from proxlearn.methods.optimizers import Optimizer
from proxlearn.names import SCALES
from proxlearn.problems.problem import Problem
from proxlearn.watch import Watch, portion

MOST = 100_000
"""Iterations that F* may take."""


@dataclass(frozen=True)
class Outcome:
    """What a run left behind."""

    rows: Path
    card: Path
    computed: int
    """Parts that were computed; the others came from the cache."""
    reused: int


def run(
    experiment: Experiment,
    scale: str,
    out: str | Path,
    *,
    seed: int = 0,
    optimizers: Sequence[str] | None = None,
    count: int | None = None,
    iterations: int | None = None,
    keep: bool = False,
    watch: Watch | None = None,
) -> Outcome:
    """Write `<name>.parquet` and `<name>.json` to `out`; finished parts are kept in `out/.cache`.

    `optimizers` replaces the experiment's own, `count` and `iterations` the numbers of the scale.
    With `keep`, the rows that `out` has of other optimizers stay.
    """
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    if count is not None and count < 1:
        raise InputError(f"count is {count}; expected at least one instance")
    if iterations is not None and iterations < 1:
        raise InputError(f"iterations is {iterations}; expected at least one")
    parquet.require_pyarrow()
    asked = {"count": count, "iterations": iterations}
    chosen = compared_methods.chosen(experiment, optimizers, scale)
    folder = check_folder(out)
    cache = Cache(folder / ".cache")
    before = kept.earlier(folder, experiment) if keep else None
    job = _Job(experiment, scale, seed, chosen, asked, cache, watch)
    parts = [columns for setting in job.settings for columns in job.rows(setting)]
    said = job.card(optimizers)
    if before is not None:
        parts += kept.parts(before[0], said)
        order = [setting.name for setting in experiment.settings]
        parts.sort(key=lambda columns: order.index(columns["setting"][0]))
        said = kept.joined(before[1], said, experiment)
    rows, card = folder / f"{experiment.name}.parquet", folder / f"{experiment.name}.json"
    parquet.save(parts, rows)
    with replacing(card) as temporary:
        text = json.dumps(said, indent=2, ensure_ascii=False)
        temporary.write_text(text + "\n", encoding="utf-8")
    return Outcome(rows, card, cache.made, cache.found)


class _Job:
    """An experiment at one scale with one seed."""

    def __init__(
        self,
        experiment: Experiment,
        scale: str,
        seed: int,
        chosen: tuple[str, ...],
        asked: dict[str, int | None],
        cache: Cache,
        watch: Watch | None,
    ):
        self.experiment, self.scale, self.seed, self.watch = experiment, scale, seed, watch
        self.chosen, self.cache = chosen, cache
        self.asked = {name: n for name, n in asked.items() if n is not None}
        self.size = replace(experiment.scale(scale), **self.asked)
        self.own = set(experiment.optimizers())
        self.settings = [s for s in experiment.settings if self.names(s) and not self.idle(s)]
        self.counts: dict[str, int] = {}

    def names(self, setting: Setting) -> list[str]:
        """The optimizers of a setting; others than the experiment's own run wherever they fit."""
        fits = setting.step == "right"
        return [
            name
            for name in self.chosen
            if name in setting.optimizers or (name not in self.own and (fits or stepped(name)))
        ]

    def idle(self, setting: Setting) -> bool:
        """Whether the setting exists for trainings of the presets, and none of them is run."""
        baseline = ["fista-restart"]
        needed = [name for name in setting.optimizers if name not in baseline]
        trained = needed and all(name in TRAININGS for name in needed)
        return bool(trained) and self.names(setting) == baseline

    def count(self, setting: Setting) -> int:
        """The number of instances in a setting."""
        return min(self.size.count, setting.at(self.scale).limit() or self.size.count)

    @cached_property
    def parts(self) -> int:
        """How many parts there are in all: an optimizer, or the optimum, on a block."""
        optimum, block = self.experiment.measure == "gap", self.experiment.block
        return sum(
            math.ceil(self.count(s) / block) * (len(self.names(s)) + optimum) for s in self.settings
        )

    def part(self) -> Watch | None:
        """A watch of the part that comes next. Those found in the cache are not counted."""
        if self.watch is None:
            return None
        made = self.cache.made
        return portion(self.watch, made, made + 1, self.parts - self.cache.found)

    def rows(self, setting: Setting) -> Iterator[Any]:
        """The rows of each optimizer."""
        cache, names = self.cache, self.names(setting)
        optimizers = compared_methods.made(names, setting.problems)
        done: dict[str, list[Arrays]] = {name: [] for name in names}
        best: list[Arrays] = []
        count = self.counts[setting.name] = self.count(setting)
        for first in range(0, count, self.experiment.block):
            last = min(first + self.experiment.block, count)
            block = _Block(self, setting, optimizers, first, last)
            for name in names:
                done[name].append(cache.get(*block.run(name)))
            if self.experiment.measure == "gap":
                best.append(cache.get(*block.optimum()))
        if self.experiment.measure == "bias":
            yield from self._bias_rows(setting, optimizers, done)
        else:
            yield from self._gap_rows(setting, done, best)

    def _gap_rows(
        self, setting: Setting, done: dict[str, list[Arrays]], best: list[Arrays]
    ) -> Iterator[Any]:
        """The rows of each optimizer, with gaps relative to the best value that is known."""
        objective = {n: _join(parts, "objective") for n, parts in done.items()}
        F = np.concatenate([b["value"] for b in best])
        for values in objective.values():  # no gap is negative
            F = np.minimum(F, values.min(0))
        for name, parts in done.items():
            gap = (objective[name] - F) / np.maximum(np.abs(F), np.finfo(np.float64).tiny)
            spent, seconds = _join(parts, "gradients"), _total(parts)
            labels = self._labels(setting, name)
            yield parquet.columns_of(labels, objective[name], gap, spent, seconds)

    def _bias_rows(
        self,
        setting: Setting,
        optimizers: dict[str, Optimizer],
        done: dict[str, list[Arrays]],
    ) -> Iterator[Any]:
        """The rows of the norms of b1 and b2."""
        for model, parts in done.items():
            for which in ("b1", "b2"):
                norms = _join(parts, which)
                k = np.arange(len(norms))[:, None] + np.zeros_like(norms)
                spent, none = optimizers[model].gradients * k, np.full_like(norms, np.nan)
                labels = self._labels(setting, which)
                yield parquet.columns_of(labels, none, norms, spent, _total(parts))

    def _labels(self, setting: Setting, name: str) -> dict[str, Any]:
        return {
            "experiment": self.experiment.name,
            "setting": setting.name,
            "optimizer": name,
            "seed": self.seed,
            "version": __version__,
        }

    def card(self, given: Sequence[str] | None) -> dict[str, Any]:
        """What was run, for readers of the rows."""
        e = self.experiment
        gaps, tol = e.measure == "gap", e.optimum_gap
        shown = list(self.chosen) if gaps else ["b1", "b2"]
        command = f"proxlearn reproduce {e.name} --scale {self.scale}"
        command += f" --seed {self.seed}" if self.seed else ""
        command += "".join(f" --{name} {n}" for name, n in self.asked.items())
        command += f" --optimizers {','.join(given)}" if given is not None else ""
        problems = {s.name: s.at(self.scale).text for s in self.settings}
        return {
            "name": e.name,
            "title": e.title,
            "paper": e.paper_figure,
            "order": NAMES.index(e.name) if e.name in NAMES else len(NAMES),
            "data": "; ".join(dict.fromkeys(problems.values())),
            "settings": {**e.facts, "scale": self.scale, "threads": torch.get_num_threads()},
            "panels": [
                {"setting": s.name, "data": problems[s.name], "step": s.step,
                 "count": self.counts[s.name], "optimizers": self.names(s)}
                for s in self.settings
            ],
            "command": f"{command} --out DIR",
            "scale": self.scale,
            "seed": self.seed,
            "version": __version__,
            "count": max(self.counts.values()),
            "iterations": self.size.iterations,
            "optimizers": [{"name": n, "label": e.label(n)} for n in shown],
            "levels": list(e.levels),
            "notes": [
                *self._size_notes(),
                *e.notes,
                *self._value_notes(),
                *compared_methods.left_out(e, given, self.scale),
            ],
            "optimum": f"float64, certified to a relative gap of {tol:g}" if gaps else None,
            "y": e.y,
        }  # fmt: skip

    def _size_notes(self) -> list[str]:
        full, here = self.experiment.paper, self.size
        sizes = {"instances": (here.count, full.count)}
        sizes["iterations"] = (here.iterations, full.iterations)
        fewer = [f"{n} of {most} {what}" for what, (n, most) in sizes.items() if n < most]
        return [f"Smaller than the full size: {', '.join(fewer)}."] if fewer else []

    def _value_notes(self) -> list[str]:
        found = [compared_methods.notes(self.names(s), s.problems) for s in self.settings]
        return list(dict.fromkeys(line for lines in found for line in lines))


@dataclass(frozen=True)
class _Block:
    """Instances first, ..., last - 1 of a setting; the problem is made when a part needs it."""

    job: _Job
    setting: Setting
    optimizers: dict[str, Optimizer]
    first: int
    last: int

    @cached_property
    def problem(self) -> Problem:
        """As it is, with the right step."""
        return self.setting.at(self.job.scale).block(self.first, self.last, self.job.seed)

    def key(self, **more: Any) -> dict[str, Any]:
        problems = self.setting.at(self.job.scale)
        instances = [self.first, self.last, self.job.seed]
        return {"problems": problems.key(), "instances": instances, "core": core_digest(), **more}

    def run(self, name: str) -> tuple[dict[str, Any], Callable[[], Arrays]]:
        """Key and computation of one optimizer."""
        job, optimizer = self.job, self.optimizers[name]
        measure, K = job.experiment.measure, job.size.iterations
        more: dict[str, Any] = {"measure": measure, "iterations": K, "step": self.setting.step}
        more |= {"timed": job.experiment.name} if job.experiment.timed else {}
        record = record_bias if measure == "bias" else record_gap

        def make() -> Arrays:
            published = self.setting.step == "published"
            problem = published_step(self.problem) if published else self.problem
            return record(problem, optimizer, K, self._told(name, K))

        return self.key(**more, **fingerprint(optimizer)), make

    def optimum(self) -> tuple[dict[str, Any], Callable[[], Arrays]]:
        """Key and computation of F*, whatever the step: a value for each instance, (B,)."""
        tol = self.job.experiment.optimum_gap

        def make() -> Arrays:
            problem = self.problem.to(torch.float64)
            value = certified_optimum(problem, tol, MOST, watch=self.job.part())
            return {"value": value.cpu().numpy()}

        return self.key(measure="optimum", tol=tol, most=MOST), make

    def _told(self, name: str, most: int) -> Callable[[int], None] | None:
        watch = self.job.part()
        text = f"{self.job.experiment.name}, instances {self.first} to {self.last - 1}, {name}"
        return None if watch is None else lambda k: watch(text, min(k, most), most)


def _total(parts: list[Arrays]) -> Any:
    """Seconds for all blocks together, (K+1,)."""
    return np.sum([part["seconds"] for part in parts], 0)


def _join(parts: list[Arrays], name: str) -> Any:
    return np.concatenate([part[name] for part in parts], 1)
