"""How many problems make a chunk: long enough for Dask, small enough for a worker's memory."""

import math
import warnings
from dataclasses import dataclass
from typing import Any

from proxlearn.errors import InputError

PER_PROBLEM, PER_ENTRY = 1e-5, 8e-9
"""Seconds that a problem takes, and those for each entry of its A: LASSO problems of 20x40 to
100x300 with supports of a tenth took 13 to 250 microseconds (2026-11, one core, tol 1e-6)."""

AIM = 2.0
"""Seconds of work in a chunk that is chosen automatically."""

LEAST = 0.02
"""Seconds of work below which a chunk is too small: Dask spends about a millisecond on it."""

SHARE = 0.25
"""Part of the memory of a worker's thread that the arrays of a chunk may take."""

MOST_BYTES = 2**28
"""Largest arrays of a chunk that is chosen automatically, 256 MiB."""


@dataclass(frozen=True)
class Size:
    """The sizes of the problems, from which their cost is estimated."""

    entries: int
    """Numbers in A, those that are not 0 where it is sparse."""
    m: int
    width: int
    own_matrix: bool
    """Each problem has its own A."""

    @property
    def seconds(self) -> float:
        """A rough guess of what one problem takes."""
        return PER_PROBLEM + PER_ENTRY * self.entries

    @property
    def bytes(self) -> int:
        """Bytes of one problem in a chunk: its own A if it has one, b, and x twice."""
        return 8 * ((self.entries if self.own_matrix else 0) + self.m + 2 * self.width + 4)

    def choose(self, count: int, threads: int) -> int:
        """A number of problems for a chunk: about two seconds of work, and four for each thread."""
        by_time = AIM / self.seconds
        by_memory = MOST_BYTES / self.bytes
        by_threads = max(count / (4 * max(threads, 1)), LEAST / self.seconds)
        return max(1, min(count, math.ceil(min(by_time, by_memory, by_threads))))

    def check(self, chunk: int, count: int, memory: float | None) -> str | None:
        """Refuses a chunk that a thread's memory does not hold; a line where one is too small."""
        if memory is not None and chunk * self.bytes > SHARE * memory:
            most = max(1, int(SHARE * memory / self.bytes))
            raise InputError(
                f"chunks of {chunk} problems take {_shown(chunk * self.bytes)} each, and a worker "
                f"has {_shown(memory)} for each of its threads; choose at most {most} problems a "
                "chunk, or give the workers more memory"
            )
        least = math.ceil(LEAST / self.seconds)
        if chunk < min(count, least):
            return (
                f"chunks of {chunk} problems take about {1e3 * chunk * self.seconds:.2g} ms each, "
                f"and Dask about 1 ms more; choose {min(count, self.choose(count, 1))} problems "
                "a chunk"
            )
        return None


def memory_of_thread(client: Any = None, threads: int = 1) -> float | None:
    """Bytes that each thread of a worker may use: of the cluster's smallest, or of this machine."""
    if client is None:
        from distributed.system import MEMORY_LIMIT

        return float(MEMORY_LIMIT) / max(threads, 1)
    found = client.scheduler_info(n_workers=-1)["workers"].values()
    shares = [w["memory_limit"] / w["nthreads"] for w in found if w["memory_limit"]]
    return float(min(shares)) if shares else None


def advise(line: str | None) -> None:
    """Warn of chunks that are too small."""
    if line is not None:
        warnings.warn(line, stacklevel=3)


def _shown(size: float) -> str:
    return f"{size / 2**30:.2g} GiB" if size >= 2**29 else f"{size / 2**20:.2g} MiB"
