"""A worker: it claims shards, solves them and writes their results, until none is left.

Workers never talk to each other. A shard is settled when its result or its error is there; both
appear whole, by a rename, and depend on the input and the settings alone, so that a shard that two
workers finish is the same as one that one worker finishes.
"""

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from proxlearn.arrays import to_numpy
from proxlearn.errors import InputError
from proxlearn.files import Array, check_folder, replacing
from proxlearn.shards.claims import age, claimed
from proxlearn.shards.plan import Settings, Shard, agree
from proxlearn.shards.source import Source, find_sources, read_source
from proxlearn.shards.summary import Summary, read_result, write_result
from proxlearn.solver import solve

COUNTED = ("status", "iterations", "grad_evals")
POLL = 0.5
"""Seconds between looks at shards that others work on."""
LOOK = 2.0
"""Least seconds between two looks at what others have finished, for the progress."""
LEFTOVER = re.compile(r"\.[0-9a-f]{16}\.(npz|error|json|clock)|\.\d{10}-\d{10}\.claim(\.\d+)?")


@dataclass(frozen=True)
class Outcome:
    """What is there at the end, and what this worker did of it."""

    summary: Summary | None
    """None for all workers but the first."""
    failed: dict[str, str]
    """Files, or shards of files, that could not be solved, and the line that says why."""
    computed: int
    """Shards that this worker finished."""

    @property
    def code(self) -> int:
        """2 where something could not be solved at all, 1 where a tolerance was missed, else 0."""
        if self.summary is None:
            return 0  # the first worker reports
        return 2 if self.failed else 0 if self.summary.solved else 1


Watch = Callable[[int, int], None]
"""Called with the settled and all instances."""


def solve_batch(
    problems: str,
    out: str,
    settings: Settings | None = None,
    *,
    worker: int = 0,
    workers: int = 1,
    stale: float = 60.0,
    retry: bool = False,
    watch: Watch | None = None,
    warn: Callable[[str], None] = print,
) -> Outcome:
    """Solve the .npz file, zarr group or folder `problems` into `out`, with whoever else does.

    Returns when every shard is settled, whoever did it. `worker` of `workers` only says where to
    begin, and the first one writes the summary. A shard whose worker has not been heard of for
    `stale` seconds is taken over. `retry` tries the shards again that failed before. `warn` gets
    one line for each bad file.
    """
    settings = settings or Settings()
    settings.check()
    if not stale > 0:
        raise InputError(f"stale is {stale}; expected seconds > 0")
    folder = check_folder(out)
    paths = find_sources(problems)
    run = _Run(folder, settings, stale, watch, warn, worker == 0)
    run.plan(paths)
    shards = run.shards
    if retry:
        for shard in shards:
            shard.error.unlink(missing_ok=True)
    first = worker * len(shards) // max(workers, 1)
    run.work(shards[first:] + shards[:first])
    if worker != 0:
        return Outcome(None, run.bad, run.computed)
    summary, damaged = run.summary()
    while damaged:
        for shard in damaged:
            shard.result.unlink(missing_ok=True)
        run.work(damaged)
        summary, damaged = run.summary()
    failed = {**run.bad, **run.errors()}
    summary.save(folder / "summary.json", failed)
    run.sweep()
    return Outcome(summary, failed, run.computed)


@dataclass
class _Run:
    folder: Path
    settings: Settings
    stale: float
    watch: Watch | None
    warn: Callable[[str], None]
    first: bool
    bad: dict[str, str] = field(default_factory=dict)
    computed: int = 0
    shards: list[Shard] = field(default_factory=list)
    _told: set[str] = field(default_factory=set)
    _next_look: float = 0.0
    _current: Source | None = None

    def plan(self, paths: list[Path]) -> None:
        """Find all shards; a file that cannot be used costs a line."""
        sources = []
        for path in paths:
            with self._noting(path):
                sources.append(self._read(path))
        if sources:
            record = self.settings.record()
            agree(self.folder / "job.json", record, f"{self.folder} was begun with other settings")
        for source in sources:
            with self._noting(source.path):
                self.shards += self._shards_of(source)

    @contextmanager
    def _noting(self, path: Path) -> Iterator[None]:
        try:
            yield
        except InputError as error:
            self.bad[path.name] = str(error)
            if self.first:  # each worker finds it
                self.warn(str(error))

    def _read(self, path: Path) -> Source:
        lam = self.settings.lam
        return read_source(path, self.settings.kind, {} if lam is None else {"lam": lam})

    def _shards_of(self, source: Source) -> list[Shard]:
        size, folder = self.settings.shard_size, self.folder / source.name
        record = {
            "file": source.path.name,
            "kind": source.kind,
            "instances": source.count,
            "content": source.fingerprint,
        }
        agree(folder / "source.json", record, f"{source.path} has changed since {folder} was begun")
        starts = range(0, source.count, size)
        return [Shard(source, i, min(i + size, source.count), folder) for i in starts]

    def work(self, shards: list[Shard]) -> None:
        """Settle all shards, or wait for those who do."""
        done = self.look()
        pending = [shard for shard in shards if (shard.folder, shard.stem) not in done]
        while pending:
            left = []
            for shard in pending:
                if not shard.settled() and not self._try(shard):
                    left.append(shard)
                self.look(again=False)
            if len(left) == len(pending):
                time.sleep(min(POLL, self.stale / 4))
            pending = left
        self.look()

    def _try(self, shard: Shard) -> bool:
        """Claim a shard and settle it; False where another worker has it."""
        with claimed(shard.claim, self.stale) as mine:
            if mine and not shard.settled():
                self._settle(shard)
            return mine

    def _settle(self, shard: Shard) -> None:
        if self._current is not None and self._current is not shard.source:
            self._current.forget()
        self._current = shard.source
        try:
            arrays = _solve(shard, self.settings)
        except InputError as error:
            line = f"{shard.source.path}, instances {shard.start} to {shard.stop - 1}: {error}"
            with replacing(shard.error) as temporary:
                temporary.write_text(line + "\n", encoding="utf-8")
            if shard.source.name not in self._told:
                self._told.add(shard.source.name)
                self.warn(line)
        else:
            write_result(shard.result, arrays)
        self.computed += 1

    def look(self, again: bool = True) -> set[tuple[Path, str]]:
        """The settled shards by the folders' listings; not more often than is cheap."""
        began = time.monotonic()
        if not again and (self.watch is None or began < self._next_look):
            return set()
        listed = {folder: set(os.listdir(folder)) for folder in {s.folder for s in self.shards}}
        done = [
            s
            for s in self.shards
            if {f"{s.stem}.npz", f"{s.stem}.error"} & listed.get(s.folder, set())
        ]
        if self.watch is not None:
            total = sum(s.stop - s.start for s in self.shards)
            self.watch(sum(s.stop - s.start for s in done), total)
        now = time.monotonic()
        self._next_look = now + max(LOOK, 50 * (now - began))
        return {(s.folder, s.stem) for s in done}

    def summary(self) -> tuple[Summary, list[Shard]]:
        """The counts over all results, and the shards whose result cannot be read."""
        summary, damaged = Summary(), []
        for shard in self.shards:
            result = read_result(shard.result, COUNTED)
            if result is not None:
                summary.add(shard.source.name, shard.start, result)
            elif not shard.error.exists():
                damaged.append(shard)
        return summary, damaged

    def errors(self) -> dict[str, str]:
        """The lines of the shards that failed."""
        return {
            f"{s.source.name}/{s.stem}": s.error.read_text(encoding="utf-8").strip()
            for s in self.shards
            if s.error.exists() and not s.result.exists()
        }

    def sweep(self) -> None:
        """Remove what killed workers left: claims of settled shards, half-written files."""
        for folder in {self.folder, *(s.folder for s in self.shards)}:
            for name in os.listdir(folder):
                if LEFTOVER.fullmatch(name):
                    _remove_old(folder / name, self.stale)


def _remove_old(path: Path, stale: float) -> None:
    try:
        if age(path) > stale:
            path.unlink()
    except OSError:
        return  # another worker sweeps too


def _solve(shard: Shard, s: Settings) -> dict[str, Array]:
    problem = shard.source.problem(shard.start, shard.stop, s.dtype, s.device)
    solution = solve(problem, s.optimizer, tol=s.tol, max_iter=s.max_iter, engine=s.engine)
    names = ("x", "objective", "gap", "iterations", "grad_evals")
    arrays: dict[str, Array] = {name: to_numpy(getattr(solution, name)) for name in names}
    return {**arrays, "status": np.array([str(s) for s in solution.status], dtype="U15")}
