"""Problems in an .npz file: its headers, and slices of its arrays without reading the rest."""

import math
import struct
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from proxlearn.errors import InputError
from proxlearn.files import Array, read_matrix
from proxlearn.scale.store import Header, read_header


@dataclass(frozen=True)
class NpzStore:
    """A file of `np.savez`, or of `np.savez_compressed`, whose arrays are unpacked whole."""

    path: Path
    kind: str | None
    headers: dict[str, Header]
    content: list[Any]
    """Checksums, which the file carries."""
    offsets: dict[str, int | None]
    """Where an array lies; None where it must be unpacked or turned."""
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
