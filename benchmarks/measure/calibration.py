"""The loosest tolerance with which a solver reaches the gap, searched once and kept in a file."""

import contextlib
import json
import multiprocessing
import os
import signal
import warnings
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from measure.clock import timed
from measure.data import simulated
from measure.further import FurtherTask
from measure.rows import make
from measure.solvers.variant import Variant
from measure.task import Task

REPEATS = 5
"""Runs of the tolerance that was found, of which the fastest counts."""
SHORT = 1.0
"""Runs longer than so many seconds are not repeated."""


@dataclass(frozen=True)
class Found:
    """The result of a search; without a tolerance, `note` says why there is none."""

    tol: float | None
    seconds: float
    """Of the fastest run at this tolerance, or of the last run where there is none."""
    gap: float
    note: str = ""
    limit: float = np.inf
    """Seconds that one run was allowed."""


def search(variant: Variant, task: Task, target: float, limit: float) -> Found:
    """Try tolerances in a child process, which is ended when a run exceeds the limit of CPU time.

    Decade by decade from the loosest, then the half decade before the first that reaches the
    target. Compiled code cannot be interrupted from Python, so the runs need their own process.
    """
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe(duplex=False)
    child = fork.Process(target=_attempts, args=(variant, task, target, limit, theirs))
    child.start()
    theirs.close()
    try:
        return replace(ours.recv(), limit=limit)
    except EOFError:
        child.join()
        note = f"over {limit:.3g} s" if child.exitcode == -signal.SIGPROF else "crashed"
        return Found(None, limit, np.inf, note, limit)
    finally:
        child.kill()
        child.join()
        ours.close()


def _attempts(variant: Variant, task: Task, target: float, limit: float, pipe) -> None:
    """The child: sends what was found."""
    warnings.filterwarnings("ignore")
    try:
        pipe.send(_found(variant, task, target, limit))
    except NotImplementedError:
        pipe.send(Found(None, 0.0, np.inf, "not supported"))
    except Exception as error:  # a peer may raise anything: the row tells it, others go on
        text = str(error).partition("\n")[0]
        pipe.send(Found(None, 0.0, np.inf, f"{type(error).__name__}: {text}"[:200]))
    pipe.close()


def _found(variant: Variant, task: Task, target: float, limit: float) -> Found:
    prepared = variant.prepare(task)
    spent = 0.0

    def attempt(tol: float) -> Found:
        nonlocal spent
        signal.setitimer(signal.ITIMER_PROF, 1.1 * limit)  # its signal ends the process
        seconds, result = timed(partial(variant.run, prepared, tol), cpu=True)
        signal.setitimer(signal.ITIMER_PROF, 0)
        spent += seconds
        return Found(tol, seconds, gap_of(variant, task, prepared, tol, result))

    grid = variant.grid or (target,)
    for i in range(0, len(grid), 2):
        best = attempt(grid[i])
        if best.gap <= target:
            break
        if best.seconds > limit or spent > 4 * limit:
            return replace(best, tol=None, note=f"gap {best.gap:.0e} after {spent:.3g} s")
    else:
        return replace(best, tol=None, note=f"gap {best.gap:.0e} at its tightest tolerance")
    if i > 0 and (looser := attempt(grid[i - 1])).gap <= target:
        best = looser
    for _ in range(REPEATS - 1 if best.seconds < SHORT else 0):
        best = min(best, attempt(best.tol), key=lambda found: found.seconds)
    return best


def gap_of(variant: Variant, task: Task, prepared, tol: float, result) -> float:
    """The gap, infinite where it is not a number."""
    gap = variant.gap(task, prepared, tol, result)
    return float(gap) if gap == gap else np.inf


@cache
def _tiny(kind: str, sparse: bool) -> Task:
    data = simulated("tiny", 40, 12)
    if sparse:
        data = replace(data, X=sp.csc_matrix(data.X))
    return make("tiny", kind, data, 0.1, points=3)


_warm: set[tuple] = set()


def warm_up(variant: Variant, task: Task) -> None:
    """Run on a tiny problem of the same kind, so that the child inherits compiled functions."""
    key = (variant.solver, variant.settings, task.kind, task.sparse)
    if key in _warm:
        return
    _warm.add(key)
    small = task.tiny() if isinstance(task, FurtherTask) else _tiny(task.kind, task.sparse)
    with contextlib.suppress(Exception):  # the search on the task itself reports what is raised
        variant.run(variant.prepare(small), 1e-2)


class Cache:
    """Results of searches, by row, solver, version and target."""

    def __init__(self, file: Path | None):
        self.file = file
        self.held: dict[str, dict] = {}
        if file is not None and file.exists():
            self.held = json.loads(file.read_text())

    def key(self, variant: Variant, package: str, task: Task, target: float) -> str:
        parts = (task.name, task.fingerprint(), f"{target:g}", package, installed(package))
        return "|".join((*parts, variant.settings))

    def get(self, key: str, limit: float) -> Found | None:
        """What is known; a search that was given up with a smaller limit counts as unknown."""
        record = self.held.get(key)
        if record is None:
            return None
        found = Found(**{k: np.inf if v is None and k != "tol" else v for k, v in record.items()})
        return None if found.tol is None and found.limit < 0.99 * limit else found

    def put(self, key: str, found: Found) -> None:
        record = asdict(found)
        self.held[key] = {
            k: None if isinstance(v, float) and not np.isfinite(v) else v for k, v in record.items()
        }
        if self.file is not None:
            write(self.file, json.dumps(self.held, indent=0))


def write(file: Path, text: str) -> None:
    """Replace a file in one step, so that a reader never sees half of it."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(file)


@cache
def installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
