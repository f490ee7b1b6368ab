"""Calibrates every solver to the target gap, then times all of them in turns."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from contest.clock import run, warm_up
from contest.task import Task, relative_gap
from contest.variant import OURS, Peer, Variant

SLOW, SLOWER, SHORT = 30.0, 3.0, 1.0
"""A peer's calibration is given up at this many times the fastest peer's time; a further setting
of the same peer at so many times the time of its best; neither before so many seconds."""
TRIES = 5
"""Runs of a calibrated setting, of which the fastest counts."""
Say = Callable[[str], None]


@dataclass
class Entry:
    """What one solver did on one task."""

    name: str
    settings: str = ""
    tol: float = 0.0
    seconds: list[float] = field(default_factory=list)
    """Of each repeat, all included."""
    setup: list[float] = field(default_factory=list)
    worst: float = np.inf
    """Largest relative gap over instances and repeats."""
    p95: float = np.inf
    note: str = ""
    """Why there are no times, if there are none."""
    tried: dict[str, str] = field(default_factory=dict)
    """What the calibration said of each setting."""


@dataclass(frozen=True)
class Choice:
    variant: Variant
    tol: float
    seconds: float


@dataclass(frozen=True)
class Course:
    """A task with its optimal values, and the same of the calibration."""

    task: Task
    trial: Task
    target: float

    def optima(self) -> tuple[np.ndarray, np.ndarray]:
        """F* of both, certified to a thousandth of the target."""
        tol = max(1e-3 * self.target, 1e-12)
        return self.task.optimum(tol), self.trial.optimum(tol)


def calibrate(
    variant: Variant, course: Course, optimum: np.ndarray, threads: int, limit: float
) -> Choice | str:
    """The loosest tolerance that reaches the target on the trial, or why there is none.

    Decade by decade from the loosest, then the half decade before: tolerances that a method
    cannot reach, where it may run for long, are not tried.
    """
    grid = variant.grid

    def reaches(i: int) -> tuple[bool, float]:
        timing = run(variant, course.trial, grid[i], threads)
        gap = relative_gap(course.trial.objective(timing.X), optimum).max()
        return bool(gap <= course.target), timing.total

    warm_up(variant, course.trial)
    spent = 0.0
    for i in range(0, len(grid), 2):
        good, seconds = reaches(i)
        if good:
            break
        spent += seconds
        if seconds > limit or spent > 5 * limit:
            return f"given up as too slow at {grid[i]:g}"
    else:
        return f"gap not reached at {grid[-1]:g}"
    if i > 0 and reaches(i - 1)[0]:
        i -= 1
    times = [run(variant, course.trial, grid[i], threads).total]
    while len(times) < TRIES and sum(times) < limit:
        times.append(run(variant, course.trial, grid[i], threads).total)
    return Choice(variant, grid[i], min(times))


def choose(
    peer: Peer, course: Course, optimum: np.ndarray, threads: int, fastest: float, say: Say
) -> tuple[Entry, Choice | None]:
    """The setting of a peer that was fastest on the trial."""
    entry, best = Entry(peer.name, note=peer.absent), None
    for variant in peer.variants:
        say(f"calibrating {peer.name}, {variant.settings}")
        limit = max(SHORT, min(SLOW * fastest, SLOWER * best.seconds if best else np.inf))
        try:
            found = calibrate(variant, course, optimum, threads, limit)
        except Exception as error:  # a peer may raise anything: that is told, the others go on
            if entry.name in OURS:
                raise
            found = f"failed: {type(error).__name__}: {str(error).partition(chr(10))[0]}"
        if isinstance(found, str):
            entry.tried[variant.settings] = found
            continue
        per = 1e3 * found.seconds / course.trial.count
        entry.tried[variant.settings] = f"{per:.3g} ms an instance at {found.tol:g}"
        if best is None or found.seconds < best.seconds:
            best = found
    if best is None and not entry.note:
        entry.note = "; ".join(sorted({v.partition(" at ")[0] for v in entry.tried.values()}))
    return entry, best


def confirm(
    entry: Entry, choice: Choice, course: Course, optimum: np.ndarray, threads: int
) -> tuple[Choice | None, np.ndarray]:
    """The choice with a tolerance that reaches the target on all timed instances; F*, lowered."""
    grid = choice.variant.grid
    for i in range(grid.index(choice.tol), len(grid)):
        F = course.task.objective(run(choice.variant, course.task, grid[i], threads).X)
        gap = relative_gap(F, optimum)
        if gap.max() <= course.target:
            entry.settings, entry.tol = choice.variant.settings, grid[i]
            return Choice(choice.variant, grid[i], choice.seconds), np.minimum(F, optimum)
    entry.note = f"largest gap {gap.max():.1e} at its tightest tolerance, {choice.variant.settings}"
    return None, optimum


def race(
    peers: list[Peer], course: Course, threads: int, repeats: int, say: Say = lambda text: None
) -> list[Entry]:
    """An entry for each peer; the first is the one that ratios are taken to."""
    say("optimal values")
    optimum, trial_optimum = course.optima()
    entries, running, fastest = [], [], np.inf
    for peer in peers:
        entry, choice = choose(peer, course, trial_optimum, threads, fastest, say)
        entries.append(entry)
        if choice is None:
            continue
        fastest = min(fastest, choice.seconds)
        say(f"confirming {peer.name}, {choice.variant.settings}")
        choice, optimum = confirm(entry, choice, course, optimum, threads)
        if choice is not None:
            running.append((entry, choice))
    for k in range(repeats):
        turn = k % max(1, len(running))
        for entry, choice in running[turn:] + running[:turn]:
            say(f"repeat {k + 1} of {repeats}: {entry.name}")
            timing = run(choice.variant, course.task, choice.tol, threads)
            entry.seconds.append(timing.total)
            entry.setup.append(timing.setup)
            gap = relative_gap(course.task.objective(timing.X), optimum)
            entry.worst = float(max(gap.max(), entry.worst if k else -np.inf))
            entry.p95 = float(np.quantile(gap, 0.95))
    return entries
