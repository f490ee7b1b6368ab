"""Problems in files, solved chunk by chunk on a cluster, with results in a zarr group."""

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from proxlearn.core.glm import STATUSES
from proxlearn.errors import InputError
from proxlearn.filenames import check_not_input, shown
from proxlearn.scale.chunk import Settings
from proxlearn.scale.cluster import Lost, run_each
from proxlearn.scale.results import ResultGroup, read_attributes
from proxlearn.scale.sizes import Size, memory_of_thread
from proxlearn.scale.source import Source, read_source
from proxlearn.scale.work import LISTED, Job, Report, do_chunk, versions

TOLD = 10
"""Chunks that failed about which a line is printed at once; all are counted."""


@dataclass
class Outcome:
    """What is in the output at the end of a run."""

    problems: int
    chunks: int
    computed: int = 0
    """Chunks that this run has solved; the others were there."""
    status: Counter[str] = field(default_factory=Counter)
    """Number of problems with each status."""
    unsolved: list[tuple[int, str]] = field(default_factory=list)
    """The first hundred problems without a certificate, with their status."""
    failed: list[str] = field(default_factory=list)
    """A line for each chunk that could not be solved."""

    @property
    def code(self) -> int:
        """2 where chunks could not be solved, 1 where a tolerance was missed, else 0."""
        if self.failed:
            return 2
        return 0 if self.status["SOLVED"] == self.problems else 1

    def add(self, report: Report) -> None:
        """Count a chunk."""
        self.computed += report.computed
        self.status.update(dict(zip(STATUSES, report.counts, strict=True)))
        self.unsolved = sorted([*self.unsolved, *report.unsolved])[:LISTED]

    def summary(self) -> dict[str, Any]:
        """For the attributes of the group."""
        counts = {name: count for name, count in sorted(self.status.items()) if count}
        return {"status_counts": counts, "unsolved": [list(entry) for entry in self.unsolved]}


@dataclass(frozen=True)
class Batches:
    """Problems in files, whose headers have been checked, and the place of their results."""

    problems: str
    out: str
    kind: str | None
    numbers: dict[str, float]
    source: Source
    settings: Settings
    chunk: int | None
    sparse: bool

    @classmethod
    def of(
        cls,
        problems: str,
        out: str,
        *,
        kind: str | None = None,
        numbers: dict[str, float] | None = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
        dtype: str | None = None,
        chunk: int | None = None,
        sparse: bool = False,
    ) -> "Batches":
        """Refuses an input or an output that cannot be right, before a cluster is asked for.

        Parameters
        ----------
        problems : str
            An .npz file, a zarr group or a folder of .npy files (docs/scale.md), which all workers
            see under this name.
        out : str
            Folder of the group of results, which all workers see under this name.
        kind, numbers : str, dict
            The kind of problem, and lam and such numbers, where the input does not hold them.
        tol, max_iter, dtype
            As in `solve`.
        chunk : int, optional
            Problems in a chunk: by default that of an output that is there, or about two seconds
            of work.
        sparse : bool
            Whether x is written as its non-zeros.
        """
        check_not_input(out, [problems], force=False)
        given = dict(numbers or {})
        source = read_source(Path(problems), kind, given)
        settings = Settings(source.kind, tol, max_iter, dtype)
        settings.check()
        found = _chunk_of(Path(out), source)
        return cls(problems, out, kind, given, source, settings, chunk or found, sparse)

    def run(
        self,
        client: Any,
        watch: Callable[[int, int], None] = lambda done, total: None,
        warn: Callable[[str], None] = lambda line: None,
        advise: Callable[[str], None] = lambda line: None,
    ) -> Outcome:
        """Solve what is not there yet, on the cluster of a client of Dask.

        `watch` is called with the number of problems that are done, and of all; `warn` with a line
        about a chunk that failed; `advise` with a line about chunks that are too small.
        """
        source = self.source
        group = self._group(client, advise)
        record = self._record(group)
        group.begin(record)
        place = str(Path(self.problems).resolve())
        numbers = tuple(sorted(self.numbers.items()))
        job = Job(place, self.kind, numbers, source.digest, self.settings, group, versions())
        outcome, done = Outcome(source.count, group.chunks), 0
        watch(0, source.count)
        for where, report in run_each(client, do_chunk, ((job, k) for k in range(group.chunks))):
            start, stop = group.bounds(where)
            line = _failure(report, start, stop)
            if line is None:
                outcome.add(report)
            else:
                outcome.failed.append(line)
                if len(outcome.failed) <= TOLD:
                    warn(line)
            done += stop - start
            watch(done, source.count)
        if outcome.failed:
            return outcome
        again = read_source(Path(self.problems), self.kind, self.numbers)
        if again.digest != source.digest:
            raise InputError(f"{self.problems} changed meanwhile; solve it into another output")
        group.finish(record, outcome.summary())
        return outcome

    def _group(self, client: Any, advise: Callable[[str], None]) -> ResultGroup:
        """The group of results, with the size of its chunks."""
        source = self.source
        rows = source.headers["A"].shape[-2]
        size = Size(source.entries, rows, source.width, "A" in source.own)
        chunk = self.chunk or size.choose(source.count, sum(client.nthreads().values()))
        chunk = min(chunk, source.count)
        line = size.check(chunk, source.count, memory_of_thread(client))
        if line is not None:
            advise(line)
        dtype = self.settings.dtype or source.precision
        path = str(Path(self.out).resolve())
        return ResultGroup(path, source.count, source.width, chunk, dtype, self.sparse)

    def _record(self, group: ResultGroup) -> dict[str, Any]:
        """What the results are of: for the attributes of the group, to be compared by a rerun."""
        return {
            **asdict(self.settings),
            "problems": group.count,
            "width": group.width,
            "chunk": group.chunk,
            "sparse": group.sparse,
            "input": self.source.digest,
            "statuses": list(STATUSES),
            "versions": dict(versions()),
        }


def _failure(report: Report | Lost, start: int, stop: int) -> str | None:
    """The line about a chunk that failed; an error where no chunk can succeed."""
    if isinstance(report, Lost):
        return (
            f"problems {start} to {stop - 1}: {report.reason}, perhaps for want of memory; choose "
            "a smaller --chunk in another output, or give the workers more memory"
        )
    if report.fatal:
        raise InputError(report.error)
    return report.error


def _chunk_of(out: Path, source: Source) -> int | None:
    """The chunk size of an output that is there; refuses one of another input."""
    if not out.exists() or (out.is_dir() and not os.listdir(out)):
        return None
    record = read_attributes(out).get("proxlearn")
    if not isinstance(record, dict) or record.get("input") != source.digest:
        raise InputError(
            f"output {shown(out)} exists, and holds no results of this input; choose another name, "
            "or remove it"
        )
    chunk = record.get("chunk")
    return chunk if isinstance(chunk, int) and chunk > 0 else None
