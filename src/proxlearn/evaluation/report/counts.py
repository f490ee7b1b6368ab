"""Iterations to a gap, read from the rows of experiments, and what may be concluded from them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from proxlearn.evaluation.report import parquet


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

    def no_later(self, other: "Count") -> bool | None:
        """Whether this arrives no later than the other."""
        if self.value is not None:
            return other.at_least(self.value)
        return False if other.value is not None and self.looked >= other.value else None

    def before(self, other: "Count") -> bool | None:
        """Whether this arrives first."""
        later = other.no_later(self)
        return None if later is None else not later

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
    """The mean rows of a folder's experiments, read when they are asked for.

    `converged` is the mean gap that the paper's word stands for, where it states no level.
    """

    def __init__(self, folder: Path, converged: float = 1e-6):
        self.folder, self.converged = folder, converged
        self._read: dict[str, dict[str, Any] | None] = {}

    def at(self, converged: float) -> "Results":
        """The same rows with another level."""
        other = Results(self.folder, converged)
        other._read = self._read
        return other

    @property
    def level(self) -> str:
        """The level in words."""
        return f"{self.converged:.0e}".replace("e-0", "e-")

    def curve(self, experiment: str, setting: str, optimizer: str) -> Any:
        """The mean gap at iterations 0, ..., K; None where it was not measured."""
        found = self._rows(experiment, setting, optimizer)
        if found is None:
            return None
        iteration, gap = found["iteration"], found["gap"]
        mean = found["instance"] == parquet.MEAN
        return gap[mean][np.argsort(iteration[mean])]

    def milliseconds(self, experiment: str, setting: str, optimizer: str, iterations: int) -> float:
        """How long so many iterations took, for one instance; they must have been measured."""
        found = self._rows(experiment, setting, optimizer)
        assert found is not None
        mean = found["instance"] == parquet.MEAN
        here = mean & (found["iteration"] == iterations)
        count = len(np.unique(found["instance"][~mean]))
        return 1e3 * float(found["seconds"][here][0]) / count

    def share(self, experiment: str, setting: str, optimizer: str, level: float) -> str | None:
        """How many of the single instances end below the level, in words, where measured."""
        found = self._rows(experiment, setting, optimizer)
        if found is None:
            return None
        last = found["iteration"] == found["iteration"].max()
        ends = found["gap"][last & (found["instance"] != parquet.MEAN)]
        return f"{int((ends < level).sum())} of {len(ends)} instances"

    def _rows(self, experiment: str, setting: str, optimizer: str) -> dict[str, Any] | None:
        if experiment not in self._read:
            file = self.folder / f"{experiment}.parquet"
            self._read[experiment] = parquet.read(file) if file.is_file() else None
        rows = self._read[experiment]
        if rows is None:
            return None
        here = (rows["setting"] == setting) & (rows["optimizer"] == optimizer)
        return {name: column[here] for name, column in rows.items()} if here.any() else None

    def to(self, experiment: str, setting: str, optimizer: str, level: float) -> Count:
        """The first iteration whose mean gap is below the level."""
        return first_below(self.curve(experiment, setting, optimizer), level)
