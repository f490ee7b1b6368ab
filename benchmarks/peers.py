"""proxlearn and the solvers people use today, on the same problems, cores and gap.

    python benchmarks/peers.py --rows 1,2,4 --threads 1

docs/benchmarks.md says how it is measured. Ratios above 1: proxlearn is faster.
"""

import argparse
import json
import os
import platform
import sys
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import torch
from contest import clock, growth, roofline, rows, tables
from contest.peers import NAMES, peers
from contest.race import race
from contest.variant import OURS, Peer
from rich.console import Console
from threadpoolctl import threadpool_limits

import proxlearn as pl
from proxlearn.files import replacing

PACKAGES = ("proxlearn", "torch", "numpy", "scipy", "scikit-learn", "celer", "skglm", "spams-bin")


class Report:
    """Prints tables as they come, and writes all of them after each."""

    def __init__(self, options: argparse.Namespace):
        self.options, self.console = options, Console(width=tables.WIDTH)
        self.progress = Console(stderr=True, width=tables.WIDTH)
        self.sections: list[str] = []
        self.records: list[dict] = []

    def say(self, text: str) -> None:
        """The progress: one line that changes in a terminal, lines elsewhere."""
        end = "\r" if self.progress.is_terminal else "\n"
        print(f"{text[: tables.WIDTH]:<{tables.WIDTH}}", end=end, file=sys.stderr, flush=True)

    def add(self, title: str, headers, lines, record: dict) -> None:
        self.say("")
        self.console.print(tables.rich_table(title, headers, lines))
        self.sections.append(tables.markdown(title, headers, lines))
        self.records.append(record)
        if self.options.json:
            with replacing(self.options.json) as temporary:
                temporary.write_text(json.dumps(self.facts() | {"results": self.records}, indent=1))
        if self.options.markdown:
            with replacing(self.options.markdown) as temporary:
                temporary.write_text(self.heading() + "\n" + "\n".join(self.sections))

    def facts(self) -> dict:
        return {
            "threads": self.options.threads,
            "repeats": self.options.repeats,
            "count": self.options.count,
            "engine": self.options.engine,
            "clock": self.options.clock,
            "certified": self.options.certified,
            "seeds": {"timed": rows.TIMED, "calibration": rows.TRIAL},
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            "versions": {name: _version(name) for name in PACKAGES},
        }

    def heading(self) -> str:
        facts = self.facts()
        versions = ", ".join(f"{k} {v}" for k, v in facts["versions"].items())
        few = f", a quick look: at most {facts['count']} problems" if facts["count"] else ""
        return (
            f"{facts['threads']} thread(s), {facts['repeats']} repeats{few}, {facts['clock']} "
            f"clock; {facts['machine']}; "
            f"{versions}. Times are milliseconds an instance, * marks the fastest peer.\n"
        )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def certified(field: list[Peer], target: float) -> list[Peer]:
    """Ours with tolerances no looser than the target, so that the certificate proves it."""

    def tight(peer: Peer) -> Peer:
        keep = {v.settings: tuple(t for t in v.grid if t <= target) for v in peer.variants}
        return replace(
            peer, variants=tuple(replace(v, grid=keep[v.settings]) for v in peer.variants)
        )

    return [*map(tight, field[: len(OURS)]), *field[len(OURS) :]]


def contest(case: rows.Case, options: argparse.Namespace, report: Report) -> None:
    report.say(f"row {case.row}, {case.title}: drawing the problems")
    course = case.course(options.count)
    field = peers(course.task, case.optimizer, options.threads, options.engine, options.peers)
    if options.certified:
        field = certified(field, case.target)
    entries = race(
        field,
        course,
        options.threads,
        options.repeats,
        lambda text: report.say(f"row {case.row}, {case.title}: {text}"),
    )
    title = f"{case.row}. {course.task.count:,} {case.title}, {options.threads} thread(s)"
    record = tables.as_json(case.title, case.row, course.task.count, case.target, entries)
    lines = tables.cells(entries, course.task.count)
    report.add(title, tables.HEADERS, lines, record)
    if options.verbose:
        for entry in entries:
            for settings, found in entry.tried.items():
                report.console.print(f"  {entry.name}, {settings}: {found}", highlight=False)


def iteration_cost(options: argparse.Namespace, report: Report) -> None:
    """Row 1 once more: an iteration against reading A."""
    report.say("row 1: an iteration against reading A")
    task = rows.drawn(rows.GaussianLasso(), "lasso", min(256, options.count or 256), rows.TIMED)
    problem = task.problem(np.float32)
    found = roofline.roofline(
        problem.f.A.A, roofline.ours(problem, "lasso"), repeats=max(15, options.repeats)
    )
    title = f"1. An iteration against reading A, 250x500 float32, {options.threads} thread(s)"
    lines = tables.roofline_cells(found)
    report.add(title, tables.ROOFLINE, lines, {"row": 1, "roofline": vars(found)})


def growing(options: argparse.Namespace, report: Report) -> None:
    found = growth.growth(
        options.threads,
        options.repeats,
        options.engine,
        options.peers,
        options.count,
        lambda text: report.say(f"row 5, {text}"),
    )
    title = f"5. Time against each size, others fixed, {options.threads} thread(s)"
    record = {"row": 5, "growth": [vars(g) | {"exponent": g.exponent} for g in found]}
    report.add(title, tables.GROWTH, tables.growth_cells(found), record)


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="1,2,3,4,5", help="which rows, such as 1,2,4")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="cores for everyone")
    parser.add_argument("--count", type=int, help="at most so many problems, for a quick look")
    parser.add_argument("--repeats", type=int, default=7, help="timed runs of each solver")
    parser.add_argument("--peers", default=",".join(NAMES), help=f"some of {','.join(NAMES)}")
    parser.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall", help="cpu for a busy machine"
    )
    parser.add_argument("--engine", help="auto, core or torch, passed to proxlearn.solve")
    parser.add_argument(
        "--certified", action="store_true", help="proxlearn proves the target gap (tol <= target)"
    )
    parser.add_argument("--json", type=Path, help="write all results to this file")
    parser.add_argument("--markdown", type=Path, help="write the tables to this file")
    parser.add_argument("--verbose", action="store_true", help="show what the calibration tried")
    options = parser.parse_args(arguments)
    options.rows = _subset(parser, "--rows", options.rows, "12345")
    options.peers = _subset(parser, "--peers", options.peers, NAMES)
    if options.clock == "cpu" and options.threads != 1:
        parser.error(f"--clock cpu with --threads {options.threads}; expected --threads 1")
    for name in ("threads", "repeats", "count"):
        value = getattr(options, name)
        if value is not None and value < 1:
            parser.error(f"--{name} is {value}; expected at least 1")
    return options


def _subset(parser: argparse.ArgumentParser, option: str, text: str, known) -> list[str]:
    chosen = [part.strip() for part in text.split(",") if part.strip()]
    for part in chosen:
        if part not in known:
            parser.error(f"{option} has {part!r}; expected some of {','.join(known)}")
    return chosen


def main(arguments: list[str] | None = None) -> int:
    options = parsed(arguments)
    report = Report(options)
    clock.use(options.clock)
    torch.set_num_threads(options.threads)
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # what the compiled core reads
    try:
        with threadpool_limits(options.threads):
            for case in rows.cases():
                if str(case.row) in options.rows:
                    contest(case, options, report)
                    if case.row == 1 and case.target == 1e-6:
                        iteration_cost(options, report)
            if "5" in options.rows:
                growing(options, report)
    except pl.InputError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
