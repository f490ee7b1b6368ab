"""Many random problems, every SOLVED checked: python -m fuzz --count 100000 --seed 1."""

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter, defaultdict
from functools import partial

os.environ.setdefault("OMP_NUM_THREADS", "1")

from fuzz.check import SOURCES, Verdict, drawn, run

COLUMNS = ("drawn", "SOLVED", "MAX_ITER", "TIME_LIMIT", "NUMERICAL_ERROR", "refused", "crashed")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="problems to draw")
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--kinds", help="only these rows of the table, by commas; all if not given")
    parser.add_argument("--source", default="all", choices=("all", *SOURCES), help="what is drawn")
    parser.add_argument("--optimizer", default="auto")
    parser.add_argument("--engine", help="passed to solve; its own default if not given")
    parser.add_argument("--max-iter", type=int, default=200)
    parser.add_argument("--minutes", type=float, help="stop after so many minutes")
    parser.add_argument("--failures", default="fuzz-failures.txt", help="file for what was wrong")
    given = parser.parse_args(arguments)
    options = {"source": given.source, "max_iter": given.max_iter}
    if given.optimizer != "auto":
        options["optimizer"] = given.optimizer
    if given.engine:
        options["engine"] = given.engine
    one = partial(_one, given.seed, options)
    numbers = range(given.first, given.first + given.count)
    if given.kinds:
        wanted = given.kinds.split(",")
        numbers = [i for i in numbers if drawn(given.seed, i, given.source)[0] in wanted]
    if given.jobs == 1:
        return _report(map(one, numbers), given)
    with multiprocessing.get_context("spawn").Pool(given.jobs) as pool:
        return _report(pool.imap(one, numbers, chunksize=20), given)


def _one(seed: int, options: dict, number: int) -> Verdict:
    import torch

    torch.set_num_threads(1)
    return run(seed, number, **options)


def _until_interrupted(verdicts):
    """All of them, or those before Ctrl-C: what was counted until then is printed all the same."""
    try:
        yield from verdicts
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)


def _report(verdicts, given) -> int:
    began = shown = time.monotonic()
    counts: dict[str, Counter] = defaultdict(Counter)
    failures, done = [], 0
    for done, verdict in enumerate(_until_interrupted(verdicts), 1):
        row = counts[verdict.kind]
        row["problems"] += 1
        row["drawn"] += len(verdict.statuses)
        row.update(verdict.notes)
        row["wrong"] += len(verdict.wrong)
        row.update(verdict.statuses)
        if "slow" in verdict.notes:
            print(f"\nslow: seed {given.seed} --first {verdict.text}")
        if verdict.wrong:
            failures.append(verdict)
            print(f"\nseed {given.seed} --first {verdict.text}\n  " + "; ".join(verdict.wrong))
            with open(given.failures, "a") as file:
                file.write(f"--seed {given.seed} --first {verdict.text}: {verdict.wrong}\n")
        now = time.monotonic()
        if now - shown > 2 or done == given.count:
            left = (now - began) / done * (given.count - done)
            wrong = sum(row["wrong"] for row in counts.values())
            print(
                f"\r{done:,} of {given.count:,}, {wrong} wrong, about {left / 60:.0f} min left ",
                end="", file=sys.stderr, flush=True,
            )  # fmt: skip
            shown = now
        if given.minutes and now - began > 60 * given.minutes:
            break
    print(file=sys.stderr)
    columns = ("problems", *COLUMNS, "wrong", "rounding", "no gap", "unproven", "slow")
    print(f"{'':24}" + "".join(f"{c:>16}" for c in columns))
    counts["all"] = sum(counts.values(), Counter())
    for kind in sorted(counts, key=lambda k: (k == "all", k)):
        print(f"{kind:24}" + "".join(f"{counts[kind][c]:16,}" for c in columns))
    print(f"{done:,} problems in {(time.monotonic() - began) / 60:.1f} min")
    return 1 if failures else 0
