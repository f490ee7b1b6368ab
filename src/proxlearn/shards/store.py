"""What holds arrays of problems: an .npz file or a zarr group."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from proxlearn.files import Array


@dataclass(frozen=True)
class Header:
    """Shape and type of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Store(Protocol):
    """Named arrays of real numbers; nothing but headers is read before `read`."""

    @property
    def path(self) -> Path:
        """Where it is."""

    @property
    def kind(self) -> str | None:
        """The kind of problem that it says it holds."""

    @property
    def headers(self) -> dict[str, Header]:
        """Its arrays."""

    @property
    def numbers(self) -> dict[str, float]:
        """Numbers that it holds beside the arrays."""

    @property
    def content(self) -> Any:
        """For JSON: what changes when the arrays do."""

    def read(self, name: str, start: int, stop: int | None) -> Array:
        """Entries start, ..., stop - 1 of an array, or all of it where `stop` is None."""

    def forget(self) -> None:
        """Free what was kept for the next `read`."""
