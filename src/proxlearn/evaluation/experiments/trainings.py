"""Every training that the experiments need, in both presets, with one command:

    python -m proxlearn.evaluation.experiments.trainings --out DIR [NAME ...]

It runs in one thread and can be stopped at any time: a finished training has left a file
DIR/NAME.safetensors and is skipped, an interrupted one goes on where it stopped. Those that
complete the most verdicts for their time come first.
Names are PRESET-PROBLEMS-RULE-SEED, such as published-lasso-pa-0. The experiments find the weights
in the folder that the environment variable PROXLEARN_WEIGHTS names (see `weights`).
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from proxlearn.errors import InputError, unknown
from proxlearn.evaluation.experiments.presets import (
    CORRECTED,
    PROBLEMS,
    PUBLISHED,
    UNROLLED,
    Preset,
)
from proxlearn.evaluation.report import verdicts
from proxlearn.training import Report, TrainConfig, train
from proxlearn.training.families import Family

COMMAND = "python -m proxlearn.evaluation.experiments.trainings"
"""How these trainings are run; every card says it."""

ABLATION = ("p", "a", "pba", "pba1", "pba2", "pba12")
"""The variants of the paper's Figure 1 beside PA."""
BLACK_BOX = tuple(verdicts.GENERIC)
SEEDS = verdicts.SEEDS
MINUTES = {
    "lasso": 20.0,
    "small-lasso": 8.0,
    "logistic": 6.0,
    "lowlambda": 6.0,
    "unrolled": 6.0,
}
"""Rough durations on one core, for the estimate until something has been measured."""


@dataclass(frozen=True)
class Planned:
    """One training."""

    preset: Preset
    problems: str
    rule: str
    seed: int = 0

    @property
    def name(self) -> str:
        """The name of the weights."""
        return f"{self.preset.name}-{self.problems}-{self.rule}-{self.seed}"

    @property
    def family(self) -> Family:
        """What it is trained on."""
        return PROBLEMS[self.problems]

    @property
    def config(self) -> TrainConfig:
        """How it is trained."""
        return self.preset.config(self.problems, self.rule, self.seed)

    @property
    def minutes(self) -> float:
        """Roughly how long it takes."""
        return MINUTES["unrolled" if self.rule in UNROLLED else self.problems]


def _all() -> Iterator[Planned]:
    """In the order of the verdicts that a core-minute completes.

    A logistic training takes a quarter of the time of one for LASSO. First the rule itself and its
    seeds, which most statements rest on; then its competitors on logistic problems (five
    statements); Ada-LISTA (one, for a short training); the competitors on LASSO (three); PBA (one);
    and the rest of the ablation (three, only when all are there). What follows shows the spread.
    """
    for problems in ("logistic", "lowlambda", "lasso"):
        yield Planned(PUBLISHED, problems, "pa")
    for seed in SEEDS[1:]:
        for problems in ("logistic", "lowlambda"):
            yield Planned(PUBLISHED, problems, "pa", seed)
    for problems in ("logistic", "lowlambda"):
        for rule in BLACK_BOX:
            yield Planned(PUBLISHED, problems, rule)
    for rule in ("ada-lista", *BLACK_BOX, *ABLATION[2:], *ABLATION[:2]):
        yield Planned(PUBLISHED, "lasso", rule)
    for seed in SEEDS[1:]:
        yield Planned(PUBLISHED, "lasso", "pa", seed)
    for seed in SEEDS[1:]:
        for problems in ("logistic", "lowlambda"):
            for rule in BLACK_BOX:
                yield Planned(PUBLISHED, problems, rule, seed)
    yield Planned(PUBLISHED, "lasso", "step-lista")
    for seed in SEEDS[1:]:
        for rule in ("pa", *ABLATION):
            yield Planned(PUBLISHED, "small-lasso", rule, seed)
        for rule in BLACK_BOX:
            yield Planned(PUBLISHED, "lasso", rule, seed)
    yield from _corrected()


def _corrected() -> Iterator[Planned]:
    """What is not among the shipped models, which are the corrected preset's first seed of PA."""
    for seed in SEEDS[1:]:
        for problems in ("logistic", "lowlambda", "lasso"):
            yield Planned(CORRECTED, problems, "pa", seed)
    for rule in ABLATION:
        yield Planned(CORRECTED, "lasso", rule)
    for seed in SEEDS:
        for problems in ("logistic", "lowlambda", "lasso"):
            for rule in BLACK_BOX:
                yield Planned(CORRECTED, problems, rule, seed)
    for seed in SEEDS[1:]:
        for rule in ("pa", *ABLATION):
            yield Planned(CORRECTED, "small-lasso", rule, seed)


TRAININGS: dict[str, Planned] = {planned.name: planned for planned in _all()}
"""All of them by name, in the order in which they are run."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the trainings that are not finished; 1 where one of them could not run."""
    parser = argparse.ArgumentParser(
        prog="python -m proxlearn.evaluation.experiments.trainings",
        description="Train every model that the experiments need, the most useful first.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="these only, in this order")
    parser.add_argument("--out", type=Path, required=True, help="folder for the weights")
    parser.add_argument("--list", action="store_true", help="say what is finished, and end")
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in TRAININGS:
            parser.error(str(unknown("training", name, TRAININGS)))
    chosen = [TRAININGS[name] for name in options.names or TRAININGS]
    if options.list:
        for planned in chosen:
            print(f"{planned.name}: {_state(planned, options.out)}")
        return 0
    import torch

    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    return run(chosen, options.out)


def run(chosen: Sequence[Planned], out: Path) -> int:
    """Each training in turn; one that cannot run is reported and does not stop the others."""
    failed = 0
    progress = Progress(chosen, out)
    for i, planned in enumerate(chosen, 1):
        title = f"{i}/{len(chosen)} {planned.name}"
        file = file_of(planned.name, out)
        if file.exists():
            print(f"{title}: finished before", flush=True)
            continue
        card = {
            "name": planned.name,
            "preset": planned.preset.name,
            "command": f"{COMMAND} --out DIR {planned.name}",
        }
        progress.begin(planned, title)
        try:
            learned = train(
                planned.family,
                planned.config,
                out=file,
                resume=True,
                card=card,
                watch=progress.told,
            )
        except InputError as error:
            print(f"{title}: {error}", file=sys.stderr, flush=True)
            failed += 1
            continue
        progress.end(planned)
        done = learned.card["training"]
        print(
            f"{title}: {learned.card['status']} in {done['minutes']} minutes, score "
            f"{done['validation_score']:.3f}, {done['skipped_minibatches']} minibatches skipped",
            flush=True,
        )
    return 1 if failed else 0


def file_of(name: str, folder: Path) -> Path:
    """The file of a training's weights."""
    return folder / f"{name}.safetensors"


def _state(planned: Planned, out: Path) -> str:
    if file_of(planned.name, out).exists():
        return "finished"
    return "begun" if (out / f"{planned.name}.resume").exists() else "not begun"


class Progress:
    """Prints a line every 10 minibatches: where a training stands, and what is left of all."""

    def __init__(self, chosen: Sequence[Planned], out: Path):
        self.left = [p for p in chosen if not file_of(p.name, out).exists()]
        self.factor = 1.0
        """How much longer a training takes than its rough duration, as last measured."""
        self.title = ""
        self.first: Report | None = None

    def begin(self, planned: Planned, title: str) -> None:
        """A training begins or goes on."""
        self.current, self.title, self.first = planned, title, None
        self.began = time.monotonic()

    def end(self, planned: Planned) -> None:
        """A training is finished."""
        self.left.remove(planned)

    def told(self, report: Report) -> None:
        """A minibatch is done."""
        first = self.first = self.first or report
        if report.step == first.step or report.step % 10:
            return
        rate = (report.seconds - first.seconds) / (report.step - first.step)
        here = rate * (report.steps - report.step)
        self.factor = rate * report.steps / 60 / self.current.minutes
        others = 60 * self.factor * sum(p.minutes for p in self.left if p is not self.current)
        print(
            f"{self.title}: {report.step}/{report.steps} loss {report.loss:.4g} score "
            f"{report.validation:.3f} best {report.best:.3f} skipped {report.skipped}, "
            f"{rate:.2f} s a minibatch, {_hours(here)} left, {_hours(here + others)} for all",
            flush=True,
        )


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"


if __name__ == "__main__":
    sys.exit(main())
