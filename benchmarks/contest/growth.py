"""Time against m, n and the number of problems, each doubled four times."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from contest.peers import peers
from contest.race import Course, Entry, Say, race
from contest.rows import TIMED, TRIAL, drawn
from contest.variant import Peer
from proxlearn.training.families import GaussianLasso

BASE = GaussianLasso(m=125, n=250, nonzeros=12)
COUNT, TRIALS, TARGET, DOUBLINGS = 32, 8, 1e-6, 4


@dataclass(frozen=True)
class Growth:
    """Median seconds of one solver while one size is doubled."""

    name: str
    grows: str
    sizes: list[int]
    seconds: list[float]

    @property
    def exponent(self) -> float:
        """The slope of log(seconds) over log(size), by least squares."""
        if not np.isfinite(self.seconds).all():
            return float("nan")
        return float(np.polyfit(np.log(self.sizes), np.log(self.seconds), 1)[0])


def growth(
    threads: int, repeats: int, engine: str | None, names, count: int | None, say: Say
) -> list[Growth]:
    """All solvers, for m, n and then B."""
    small = min(COUNT, count or COUNT)
    found, settings = [], {}
    for grows, start in (("m", BASE.m), ("n", BASE.n), ("B", small)):
        sizes = [start * 2**k for k in range(DOUBLINGS + 1)]
        runs: list[list[Entry]] = []
        for size in sizes:
            family = BASE if grows == "B" else replace(BASE, **{grows: size})
            timed = drawn(family, "lasso", size if grows == "B" else small, TIMED)
            course = Course(timed, drawn(family, "lasso", min(TRIALS, small), TRIAL), TARGET)
            field = peers(course.task, "lasso", threads, engine, names)
            field = [_with(peer, settings.get(peer.name)) for peer in field]
            told = partial(_told, say, f"{grows}={size}: ")
            runs.append(race(field, course, threads, repeats, told))
            settings = settings or {e.name: e.settings for e in runs[0] if e.settings}
        for entries in zip(*runs, strict=True):
            seconds = [float(np.median(e.seconds)) if e.seconds else np.nan for e in entries]
            if np.isfinite(seconds).any():
                found.append(Growth(entries[0].name, grows, sizes, seconds))
    return found


def _with(peer: Peer, settings: str | None) -> Peer:
    """A peer with the settings that were best at the smallest size: one method, many sizes."""
    chosen = tuple(v for v in peer.variants if v.settings == settings)
    return replace(peer, variants=chosen) if chosen else peer


def _told(say: Say, where: str, text: str) -> None:
    say(where + text)
