"""Iterations to a gap, read from the rows of experiments, and what may be concluded from them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from proxlearn.report import parquet


@dataclass(frozen=True)
class Count:
    """Iterations to a level: `value`, None where it was not reached in the `looked` at.

    Answers are None where the rows end too early to tell; `looked` is -1 where there are no rows.
    """

    value: int | None
    looked: int

    @property
    def measured(self) -> bool:
        """True where there are rows."""
        return self.looked >= 0

    def at_most(self, n: float) -> bool | None:
        """Whether n iterations are enough."""
        if self.value is not None:
            return self.value <= n
        return False if self.looked >= n else None

    def at_least(self, n: float) -> bool | None:
        """Whether n iterations are needed."""
        if self.value is not None:
            return self.value >= n
        return True if self.looked >= n else None

    def __str__(self) -> str:
        if not self.measured:
            return "not measured"
        return f"over {self.looked}" if self.value is None else str(self.value)


def first_below(gap: Any, level: float) -> Count:
    """The first iteration below the level; `gap` is (K+1,), or None where nothing was measured."""
    if gap is None:
        return Count(None, -1)
    below = np.flatnonzero(gap < level)
    return Count(int(below[0]) if len(below) else None, len(gap) - 1)


class Results:
    """The mean rows of a folder's experiments, read when they are asked for."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._read: dict[str, dict[tuple[str, str], Any]] = {}

    def curve(self, experiment: str, setting: str, optimizer: str) -> Any:
        """The mean gap at iterations 0, ..., K; None where it was not measured."""
        if experiment not in self._read:
            self._read[experiment] = _means(self.folder / f"{experiment}.parquet")
        return self._read[experiment].get((setting, optimizer))

    def to(self, experiment: str, setting: str, optimizer: str, level: float) -> Count:
        """The first iteration whose mean gap is below the level."""
        return first_below(self.curve(experiment, setting, optimizer), level)


def _means(file: Path) -> dict[tuple[str, str], Any]:
    if not file.is_file():
        return {}
    rows = parquet.read(file)
    mean = rows["instance"] == parquet.MEAN
    found = {}
    for setting, optimizer in set(zip(rows["setting"][mean], rows["optimizer"][mean], strict=True)):
        here = mean & (rows["setting"] == setting) & (rows["optimizer"] == optimizer)
        order = np.argsort(rows["iteration"][here])
        found[str(setting), str(optimizer)] = rows["gap"][here][order]
    return found
