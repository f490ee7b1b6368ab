"""All solvers of a row, calibrated and then timed in turns."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from measure.calibration import Cache, Found, gap_of, search, warm_up
from measure.clock import in_turns
from measure.solvers import PACKAGES, variants
from measure.solvers.ours import variant as adapted
from measure.solvers.variant import Errors, Variant
from measure.task import Task

CLOSE = 2.0
"""Settings of a peer within this factor of its best one in the calibration are timed, too."""
LAGGARD, LONG = 5.0, 2.0
"""A peer that is slower than the best by this factor, and than so many seconds, runs once."""
GIVE_UP, PATIENCE = 10.0, 0.5
"""The search of a setting ends at this multiple of the best peer's time, but not before so many
seconds."""


@dataclass
class Entry:
    """One setting of one solver in one row."""

    variant: Variant
    found: Found
    repeats: int = 3
    seconds: list[float] = field(default_factory=list)
    gap: float = np.inf
    result: Any = None

    @property
    def name(self) -> str:
        return self.variant.solver

    def time(self, statistic: str = "min") -> float:
        """The fastest or the median run; without runs, infinite."""
        if not self.seconds:
            return np.inf
        return float(min(self.seconds) if statistic == "min" else np.median(self.seconds))


@dataclass(frozen=True)
class Rules:
    """How a row is measured."""

    target: float = 1e-6
    cap: float = 20.0
    """Seconds that one run of a peer may take."""
    budget: float = 0.5
    """Seconds of runs of each solver; short runs are repeated more often."""
    most: int = 300
    """Runs of one solver at most."""
    peers: tuple[str, ...] = tuple(PACKAGES)
    calibrate_only: bool = False
    cpu: bool = False
    """Whether runs are measured in CPU time, for a machine that is not quiet."""


def calibrated(task: Task, rules: Rules, cache: Cache, say: Callable[[str], None]) -> list[Entry]:
    """The peers' settings, each with its loosest tolerance."""
    entries, best = [], np.inf
    for variant in variants(task, rules.peers):
        package = PACKAGES[variant.solver]
        key = cache.key(variant, package, task, rules.target)
        limit = min(rules.cap, max(PATIENCE, GIVE_UP * best))
        found = cache.get(key, limit)
        if found is None:
            say(f"{task.name}: calibrating {variant.solver}, {variant.settings}")
            warm_up(variant, task)
            found = search(variant, task, rules.target, limit)
            cache.put(key, found)
        if found.tol is not None:
            best = min(best, found.seconds)
        entries.append(Entry(variant, found))
    return entries


def _selected(entries: list[Entry]) -> list[Entry]:
    """Of each peer the settings worth timing."""
    solved = [e for e in entries if e.found.tol is not None]
    best = min((e.found.seconds for e in solved), default=np.inf)
    chosen = []
    for name in PACKAGES:
        mine = [e for e in solved if e.name == name]
        fastest = min((e.found.seconds for e in mine), default=np.inf)
        slow = fastest > LONG and fastest > LAGGARD * best
        for e in mine:
            if e.found.seconds <= (1.0 if slow else CLOSE) * fastest:
                e.repeats = 1 if slow else 3
                chosen.append(e)
    return chosen


def row(task: Task, adapters: dict, rules: Rules, cache: Cache, say=lambda text: None):
    """All entries of a row: the adapters (ours first), then the peers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peers = calibrated(task, rules, cache, say)
        if rules.calibrate_only:
            return peers
        own = []
        for name, adapter in adapters.items():
            variant = adapted(task, adapter, name)
            warm_up(variant, task)
            say(f"{task.name}: trying {name}")
            found = search(variant, task, rules.target, rules.cap)
            own.append(Entry(variant, found))
        running = [e for e in own if e.found.tol is not None] + _selected(peers)
        say(f"{task.name}: timing {len(running)} solvers")
        _timed(task, running, rules)
        return own + peers


def apart(running: list[Entry]) -> list[Entry]:
    """The entries in an order in which settings of the same solver do not follow each other.

    The second of two finds its code and its copy of the data in the caches: 36 microseconds in
    place of 75 for SPAMS on 351 x 33. Everyone has to run after someone else.
    """
    names = [entry.name for entry in running]
    by_count = sorted(running, key=lambda e: (-names.count(e.name), names.index(e.name)))
    half = (len(running) + 1) // 2
    found: list[Entry] = [by_count[0]] * len(running) if running else []
    found[::2], found[1::2] = by_count[:half], by_count[half:]
    return found


def _timed(task: Task, running: list[Entry], rules: Rules) -> None:
    running = apart(running)
    prepared = [e.variant.prepare(task) for e in running]
    runs = [partial(e.variant.run, p, e.found.tol) for e, p in zip(running, prepared, strict=True)]
    least = [e.repeats for e in running]
    seconds, results = in_turns(runs, least, rules.budget, rules.most, rules.cpu)
    for i, entry in enumerate(running):
        entry.seconds, entry.result = seconds[i], results[i]
        if isinstance(results[i], Errors):
            entry.gap = max(entry.found.gap, results[i].gap(task))  # paths: in the calibration
        else:
            tol = entry.found.tol
            entry.gap = gap_of(entry.variant, task, prepared[i], tol, results[i])
    _compare_errors(running)


def _compare_errors(running: list[Entry]) -> None:
    """A cross-validation hides its paths: its errors must agree with those of the best gap."""
    known = [e for e in running if isinstance(e.result, Errors) and e.variant.folds is not None]
    hidden = [e for e in running if isinstance(e.result, Errors) and e.variant.folds is None]
    for e in hidden:
        e.found = replace(e.found, note="only its last fit is judged")
    if known:
        reference = min(known, key=lambda e: e.gap).result.mse
        for e in running:
            if isinstance(e.result, Errors):
                off = np.abs(np.asarray(e.result.mse) - reference) / reference
                note = f"errors differ by {off.max():.0e}"
                e.found = replace(e.found, note=note)
                if off.max() > 1e-2:
                    e.gap = np.inf
