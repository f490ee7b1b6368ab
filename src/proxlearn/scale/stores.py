"""Files that hold arrays of problems: an .npz file, or a folder of .npy files.

Headers are read and checked at once, and arrays slice by slice. `zarr_store` is the third way.
"""

import math
import os
import struct
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np

from proxlearn import files
from proxlearn.errors import InputError
from proxlearn.filenames import reason
from proxlearn.files import LONGEST, Array, read_matrix


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
        shape, fortran, dtype = files.read_header(stream)
    except Exception:  # NumPy does not catch the errors of Python's parser
        raise InputError(f"{path}: {name} is no array; save the file again") from None
    length = stream.tell()
    if dtype.kind not in "fiub":
        raise InputError(f"{path}: {name} has dtype {dtype}; expected real numbers")
    promised = math.prod(shape) * dtype.itemsize
    negative = min(shape, default=0) < 0
    if negative or promised != size - length or max(shape, default=0) > LONGEST:
        raise InputError(f"{path}: {name} is truncated; save the file again")
    return Header(shape, dtype), fortran, length


class Store(Protocol):
    """Named arrays of real numbers; nothing but headers is read before `read`."""

    @property
    def path(self) -> Path:
        """The path."""

    @property
    def kind(self) -> str | None:
        """The kind of problem that it says it holds."""

    @property
    def headers(self) -> dict[str, Header]:
        """The shapes and types of the arrays."""

    @property
    def numbers(self) -> dict[str, float]:
        """Numbers that it holds beside the arrays."""

    @property
    def content(self) -> Any:
        """For JSON: what changes when the arrays do."""

    def read(self, name: str, start: int, stop: int | None) -> Array:
        """Entries start, ..., stop - 1 of an array, or all of it where `stop` is None."""


@dataclass(frozen=True)
class NpyStore:
    """The files NAME.npy of a folder, which are mapped into memory.

    Workers of one machine share the memory of such a file, which is the way for a large A.
    """

    path: Path
    headers: dict[str, Header]
    content: list[tuple[str, int, int]]
    """Name, size and time of each file."""
    kind: str | None = None
    numbers: dict[str, float] = field(default_factory=dict)

    def read(self, name: str, start: int, stop: int | None) -> Array:
        """Entries start, ..., stop - 1 of an array, or all of it where `stop` is None."""
        try:
            array: Array = np.load(self.path / f"{name}.npy", mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise InputError(f"{self.path}: {name} cannot be read: {reason(error)}") from None
        if (array.shape, array.dtype) != (self.headers[name].shape, self.headers[name].dtype):
            raise InputError(f"{self.path}: {name} has changed; start again with another output")
        return array if stop is None else np.ascontiguousarray(array[start:stop])


def open_npy(path: Path) -> NpyStore:
    """The headers of the files in a folder, checked."""
    headers, content = {}, []
    try:
        for file in sorted(path.glob("*.npy")):
            size = file.stat().st_size
            with file.open("rb") as stream:
                headers[file.stem], _, _ = read_header(path, file.stem, stream, size)
            content.append((file.stem, size, file.stat().st_mtime_ns))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason(error)}") from None
    if not headers:
        held = sorted(name for name in os.listdir(path) if not name.startswith("."))[:3]
        raise InputError(
            f"{path} is a folder with {', '.join(held) or 'nothing'} in it; expected A.npy and "
            "b.npy in it, or in its place one .npz file or zarr group"
        )
    return NpyStore(path, headers, content)


@dataclass(frozen=True)
class NpzStore:
    """A file of `np.savez`, or of `np.savez_compressed`, whose arrays are unpacked whole."""

    path: Path
    kind: str | None
    headers: dict[str, Header]
    content: list[Any]
    """The checksums that the file holds."""
    offsets: dict[str, int | None]
    """Where an array begins; None where it is compressed or in Fortran order, and read whole."""
    numbers: dict[str, float] = field(default_factory=dict)
    _unpacked: dict[str, Array] = field(default_factory=dict, repr=False, compare=False)

    def read(self, name: str, start: int, stop: int | None) -> Array:
        offset = self.offsets[name]
        if offset is not None:
            return self._read_at(offset, name, start, stop)
        if name not in self._unpacked:
            self._unpacked[name] = read_matrix(f"{self.path}:{name}")
        array = self._unpacked[name]
        return array if stop is None else array[start:stop]

    def _read_at(self, offset: int, name: str, start: int, stop: int | None) -> Array:
        """Entries of an array that is stored as it is, read from its place in the file."""
        header = self.headers[name]
        shape = header.shape if stop is None else (stop - start, *header.shape[1:])
        entry = math.prod(header.shape[1:]) * header.dtype.itemsize
        count = math.prod(shape)
        try:
            array: Array = np.fromfile(
                self.path, header.dtype, count, offset=offset + start * entry
            )
        except OSError as error:
            raise InputError(f"{self.path} cannot be read: {error.strerror or error}") from None
        if len(array) < count:
            raise InputError(f"{self.path}: {name} is truncated; save the file again")
        return array.reshape(shape)


def open_npz(path: Path) -> NpzStore:
    """The headers of a file, checked."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {
                info.filename.removesuffix(".npy"): info
                for info in archive.infolist()
                if info.filename.endswith(".npy")
            }
            sums = sorted((name, i.CRC, i.file_size) for name, i in members.items())
            kind = _kind(path, archive, members.pop("kind", None))
            found = {name: _header(path, archive, i) for name, i in members.items()}
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; check the path") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except (zipfile.BadZipFile, EOFError, RuntimeError, NotImplementedError, struct.error):
        raise InputError(f"{path} is truncated or no .npz file; save it again") from None
    headers = {name: header for name, (header, _) in found.items()}
    return NpzStore(path, kind, headers, sums, {name: at for name, (_, at) in found.items()})


def _kind(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo | None) -> str | None:
    """The word in the array `kind`; None where there is none."""
    if member is None:
        return None
    if member.file_size > 4096:
        raise InputError(f"{path}: 'kind' is {member.file_size} bytes long; expected one word")
    with archive.open(member) as stream:
        try:
            value = np.lib.format.read_array(stream, allow_pickle=False)
        except Exception:  # NumPy lets through whatever Python's parser raises
            raise InputError(f"{path}: 'kind' cannot be read; save it as kind='lasso'") from None
    if value.ndim or value.dtype.kind != "U":
        raise InputError(f"{path}: 'kind' is {value!r}; expected one word, such as lasso")
    return str(value)


def _header(
    path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo
) -> tuple[Header, int | None]:
    name = member.filename.removesuffix(".npy")
    with archive.open(member) as stream:
        header, fortran, length = read_header(path, name, stream, member.file_size)
    offset = None
    if member.compress_type == zipfile.ZIP_STORED and not (fortran and len(header.shape) > 1):
        offset = _data_offset(archive, member) + length
    return header, offset


def _data_offset(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """Where a member's bytes begin: after its local header, a name and extra fields."""
    stream = archive.fp
    assert stream is not None
    stream.seek(member.header_offset + 26)
    name, extra = struct.unpack("<HH", stream.read(4))
    return int(member.header_offset + 30 + name + extra)
