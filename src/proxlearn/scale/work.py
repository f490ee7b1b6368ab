"""What a worker does with one chunk of a file: read it, solve it, write its results."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from proxlearn import __version__
from proxlearn.core.glm import STATUSES
from proxlearn.errors import InputError
from proxlearn.filenames import reason
from proxlearn.scale.chunk import Array, Settings, solve_chunk
from proxlearn.scale.results import ResultGroup
from proxlearn.scale.source import Source, read_source

LISTED = 100
"""Problems without a certificate that are named; all are counted."""


@dataclass(frozen=True)
class Job:
    """All that a worker has to know; the arrays stay in the files."""

    problems: str
    kind: str | None
    numbers: tuple[tuple[str, float], ...]
    digest: str
    """The digest of the input, as the client sees it."""
    settings: Settings
    results: ResultGroup
    versions: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Report:
    """How the work on a chunk ended."""

    place: int
    counts: tuple[int, ...] = ()
    """Number of problems with each of `STATUSES`."""
    unsolved: tuple[tuple[int, str], ...] = ()
    """The first problems without a certificate, with their status."""
    computed: bool = False
    """False where the chunk was there already."""
    error: str | None = None
    """Why it could not be solved."""
    fatal: bool = False
    """The error concerns every chunk."""


def versions() -> tuple[tuple[str, str], ...]:
    """The versions of libraries that decide the last bits of a result."""
    found = {"numpy": np.__version__, "proxlearn": __version__, "scipy": scipy.__version__}
    return tuple(sorted(found.items()))


def do_chunk(job: Job, place: int) -> Report:
    """Solve a chunk and write it, unless it is there and whole."""
    start, stop = job.results.bounds(place)
    found = job.results.read(place)
    if found is not None:
        return _report(place, start, found["status"], computed=False)
    if versions() != job.versions:
        theirs, ours = (", ".join(" ".join(v) for v in w) for w in (job.versions, versions()))
        line = f"a worker has {ours}, and the output was begun with {theirs}; install the same"
        return Report(place, error=line, fatal=True)
    try:
        source = opened(job)
        arrays = source.arrays(start, stop, job.settings.dtype)
        results = solve_chunk(job.settings, arrays, source.own, stop - start, source.count)
    except (InputError, MemoryError) as error:
        why = (
            error if isinstance(error, InputError) else "not enough memory; choose a smaller chunk"
        )
        return Report(place, error=f"{job.problems}, problems {start} to {stop - 1}: {why}")
    try:
        job.results.write(place, results)
    except OSError as error:
        line = (
            f"output {job.results.path} cannot be written: {reason(error)}; "
            "make room or check the permissions, then run the same command again"
        )
        return Report(place, error=line, fatal=True)
    return _report(place, start, results["status"], computed=True)


def _report(place: int, start: int, status: Array, computed: bool) -> Report:
    counts = tuple(int(n) for n in np.bincount(status, minlength=len(STATUSES)))
    missed = np.flatnonzero(status != 0)[:LISTED]
    unsolved = tuple((start + int(i), STATUSES[status[i]]) for i in missed)
    return Report(place, counts, unsolved, computed)


def opened(job: Job) -> Source:
    """The input of a job, opened once in a process: what is kept with A depends on the settings."""
    source = _opened(job.problems, job.kind, job.numbers, job.digest, job.settings)
    if source.digest != job.digest:
        raise InputError(
            "this worker finds another input under that name, or it has changed; "
            "let all workers see the same files"
        )
    return source


@lru_cache(maxsize=2)
def _opened(
    problems: str, kind: str | None, numbers: Any, digest: str, settings: Settings
) -> Source:
    return read_source(Path(problems), kind, dict(numbers))
