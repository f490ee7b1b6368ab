"""proxlearn and the solvers people use today on everyday problems: one core, one certified gap.

    python benchmarks/everyday.py --quick
    python benchmarks/everyday.py --kind lasso,path --only 'gravier|shipp' --markdown table.md
    python benchmarks/everyday.py --kind multinomial,group,sparse-group,multitask,huber,poisson
    python benchmarks/everyday.py defaults | startup | memory | growth

docs/benchmarks.md says how it is measured. Ratios above 1: proxlearn is faster.
"""

import argparse
import importlib
import json
import os
import platform
import re
import shlex
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path

from measure import tables
from measure.calibration import Cache, installed, write
from measure.data import FOLDER
from measure.race import Rules, row
from measure.rows import ALL_KINDS, KINDS, rows
from measure.solvers import PACKAGES as OF_PEERS
from threadpoolctl import threadpool_limits

PACKAGES = tuple(dict.fromkeys(("proxlearn", "numpy", "scipy", *OF_PEERS.values())))
WHAT = ("rows", "defaults", "startup", "memory", "growth")
DEFAULT_OURS = "measure.solvers.ours:Proxlearn"


class Report:
    """Prints a line for each row as it comes, and keeps the files up to date."""

    def __init__(self, options: argparse.Namespace, arguments: list[str]):
        self.options, self.records = options, []
        self.place, self.cpu = "", options.clock == "cpu"
        command = shlex.join(["python", "benchmarks/everyday.py", *arguments])
        self.facts = facts(command, options.clock)

    def say(self, text: str) -> None:
        if sys.stderr.isatty():
            print(f"\r{f'{self.place} {text}'[:79]:<79}", end="", file=sys.stderr, flush=True)

    def add(self, record: dict) -> None:
        self.records.append(record)
        self.say("")
        best = record["best_peer"]
        cells = tables.line(record, ())
        against = f"{best} {cells[-1]}" if best else "no peer"
        note = next(e["note"] for e in record["entries"] if e["solver"] == record["ours"])
        print(f"{record['row']:<32} {cells[2]:>8} ms, {against} {note}".rstrip(), flush=True)
        self.save()

    def adapters(self) -> dict:
        return adapters(self.options)

    def finish(self, what: str, title: str, head, lines, results, left: int = 1) -> None:
        """Print and save the only table of a command other than the rows."""
        self.say("")
        print(tables.plain(title, head, lines, left))
        if self.options.json:
            held = self.facts | {"what": what, "results": results}
            write(self.options.json, json.dumps(held, indent=1))
        if self.options.markdown:
            write(self.options.markdown, tables.markdown(title, head, lines, left))

    def save(self) -> None:
        held = self.facts | {"results": self.records}
        if self.options.json:
            write(self.options.json, json.dumps(held, indent=1))
        if self.options.markdown:
            heading = ", ".join(f"{k} {v}" for k, v in self.facts["versions"].items())
            text = tables.report(self.records, tables.markdown)
            write(self.options.markdown, f"{self.facts['date']}; {heading}.\n\n{text}")


def facts(command: str, clock: str) -> dict:
    """What a reader needs to repeat the measurement."""
    return {
        "command": command,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "clock": clock,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, one used",
        "python": platform.python_version(),
        "versions": {name: installed(name) for name in PACKAGES},
    }


def adapters(options: argparse.Namespace) -> dict:
    """Ours, and the prototype if its file is given."""
    module, _, name = options.ours.partition(":")
    ours = importlib.import_module(module)
    if name:
        ours = getattr(ours, name)
        ours = ours() if callable(ours) else ours
    held = {"proxlearn": ours}
    if options.prototype:
        from measure.solvers.prototype import Prototype

        held["prototype"] = Prototype(options.prototype)
    return held


def race(options: argparse.Namespace, report: Report) -> int:
    rules = Rules(
        target=options.target, cap=options.cap, budget=0.1 if options.quick else 0.5,
        peers=options.peers, calibrate_only=options.calibrate, cpu=options.clock == "cpu",
    )  # fmt: skip
    cache = Cache(options.cache)
    own = {} if options.calibrate else adapters(options)
    chosen = list(rows(options.kind, options.only, options.quick))
    for place, each in enumerate(chosen, 1):
        task = each.task(options.data)
        report.place = f"{place}/{len(chosen)}"
        entries = row(task, own, rules, cache, report.say)
        if options.calibrate:
            print(calibration_line(place, len(chosen), each.name, entries), flush=True)
        else:
            report.add(
                tables.record(each, task, entries, "proxlearn", options.statistic, options.target)
            )
    if report.records:
        print("\n" + tables.report(report.records))
    return 0


def calibration_line(place: int, count: int, name: str, entries: list) -> str:
    """The fastest setting of each peer."""
    parts = []
    for peer in OF_PEERS:
        mine = [e.found for e in entries if e.name == peer]
        solved = [f.seconds for f in mine if f.tol is not None]
        note = f"{1e3 * min(solved):.3g} ms" if solved else "; ".join(f.note for f in mine)
        parts.append(f"{peer} {note}" if mine else f"{peer} -")
    return f"{place}/{count} {name}: " + ", ".join(parts)


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("what", nargs="?", default="rows", choices=WHAT, help="the rows by default")
    add("--kind", default=",".join(KINDS), help=f"some of {','.join(ALL_KINDS)}")
    add("--only", default="", help="a regular expression that names of rows match")
    add("--quick", action="store_true", help="four data sets, one lambda, fewer repeats")
    add("--peers", default=",".join(OF_PEERS), help=f"some of {','.join(OF_PEERS)}, or none")
    add("--ours", default=DEFAULT_OURS, help="MODULE:NAME with the methods of measure/solvers/ours")
    add("--prototype", type=Path, help="a file with lasso, logistic and path, to race as well")
    add("--target", type=float, default=1e-6, help="the relative duality gap")
    add("--cap", type=float, default=20.0, help="seconds that one run may take")
    add("--statistic", choices=("min", "median"), default="min", help="of the repeats")
    add(
        "--clock",
        choices=("wall", "cpu"),
        default="wall",
        help="cpu where the machine is not quiet",
    )
    add("--calibrate", action="store_true", help="only search the peers' tolerances")
    temporary = Path(tempfile.gettempdir()) / "everyday-cache.json"
    add("--cache", type=Path, default=temporary, help="where tolerances are kept")
    add("--data", type=Path, default=Path(os.environ.get("PROXLEARN_DATA", FOLDER)),
        help="the folder with spambase.csv, ionosphere.csv and wide/")  # fmt: skip
    add("--json", type=Path, help="write all results to this file")
    add("--markdown", type=Path, help="write the tables to this file")
    options = parser.parse_args(arguments)
    options.kind = _subset(parser, "--kind", options.kind, ALL_KINDS)
    options.peers = _subset(parser, "--peers", options.peers, (*OF_PEERS, "none"))
    try:
        re.compile(options.only)
    except re.error as error:
        parser.error(f"--only has {options.only!r}, which is no regular expression: {error}")
    return options


def _subset(parser: argparse.ArgumentParser, option: str, text: str, known) -> tuple[str, ...]:
    chosen = tuple(part.strip() for part in text.split(",") if part.strip())
    for part in chosen:
        if part not in known:
            parser.error(f"{option} has {part!r}; expected some of {','.join(known)}")
    return chosen


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parsed(arguments)
    with threadpool_limits(1):
        report = Report(options, arguments)
        if options.what == "rows":
            return race(options, report)
        return importlib.import_module(f"measure.{options.what}").main(options, report)


if __name__ == "__main__":
    sys.exit(main())
