"""What holds arrays of problems: an .npz file, a folder of .npy files or a zarr group."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np

from proxlearn.errors import InputError
from proxlearn.files import LONGEST, Array


@dataclass(frozen=True)
class Header:
    """Shape and type of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def read_header(path: Path, name: str, stream: IO[bytes], size: int) -> tuple[Header, bool, int]:
    """The header of an array in NumPy's format, whether it is in Fortran order, and its length.

    `size` is that of the whole array with its header.
    """
    try:
        version = np.lib.format.read_magic(stream)
        first = version == (1, 0)
        read = np.lib.format
        shape, fortran, dtype = (
            read.read_array_header_1_0(stream) if first else read.read_array_header_2_0(stream)
        )
    except Exception:  # NumPy lets through whatever Python's parser raises
        raise InputError(f"{path}: {name} is no array; save the file again") from None
    length = stream.tell()
    if dtype.kind not in "fiub":
        raise InputError(f"{path}: {name} has dtype {dtype}; expected real numbers")
    promised = math.prod(shape) * dtype.itemsize
    negative = min(shape, default=0) < 0
    if negative or promised != size - length or max(shape, default=0) > LONGEST:
        raise InputError(f"{path}: {name} is truncated; save the file again")
    return Header(shape, dtype), bool(fortran), length


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
