"""Problems in .npz files: what a file must hold, and slices of it without reading the rest."""

import hashlib
import json
import math
import os
import struct
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from proxlearn import constructors, jobs
from proxlearn.arrays import to_operator
from proxlearn.errors import InputError, unknown
from proxlearn.files import Array, read_matrix
from proxlearn.problem import Problem

AXES = {"A": 3, "b": 2, "lam": 1, "lam2": 1, "radius": 1, "weights": 2, "groups": 2, "classes": 1}
"""Dimensions of an array that has an entry an instance; with one less it is shared by all."""

SHARED = ("groups", "classes")
"""Never one an instance."""


@dataclass(frozen=True)
class Header:
    """Shape and type of an array, and where it lies; None where it must be unpacked or turned."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int | None


@dataclass(frozen=True)
class Source:
    """A file of `count` instances of one kind."""

    path: Path
    kind: str
    count: int
    headers: dict[str, Header]
    numbers: dict[str, float]
    """Options from elsewhere, for all instances."""
    fingerprint: str
    """The same for files of the same content; from the checksums that the file carries."""
    _kept: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """What all shards share, read once: the operator of A (m, n), unpacked arrays."""

    @property
    def name(self) -> str:
        return self.path.stem

    def problem(self, start: int, stop: int, dtype: torch.dtype | None, device: str) -> Problem:
        """The instances start, ..., stop - 1. Bad numbers in them are an `InputError`."""
        given: dict[str, Any] = dict(self.numbers)
        for name in self.headers.keys() - {"A", "b"}:
            given[name] = self._slice(name, start, stop)
        if "classes" in given:
            given["classes"] = int(given["classes"])
        b = self._slice("b", start, stop)
        build = getattr(constructors, self.kind.replace("-", "_"))
        problem: Problem = build(
            self._operator(start, stop, dtype, device), b[None] if b.ndim == 1 else b, **given
        )
        return problem

    def _operator(self, start: int, stop: int, dtype: torch.dtype | None, device: str) -> Any:
        if "operator" in self._kept:
            return self._kept["operator"]
        A = to_operator("A", self._slice("A", start, stop))
        A = A.convert(A.dtype if dtype is None else dtype, device)
        if len(self.headers["A"].shape) == 2:
            self._kept["operator"] = A  # and with it its norm
        return A

    def _slice(self, name: str, start: int, stop: int) -> Array:
        header = self.headers[name]
        own = len(header.shape) == AXES[name] and header.shape[0] != 1
        if header.offset is not None:
            return self._read(name, *((start, stop) if own else (0, None)))
        if name not in self._kept:
            self._kept[name] = read_matrix(f"{self.path}:{name}")
        array: Array = self._kept[name]
        return array[start:stop] if own else array

    def _read(self, name: str, start: int, stop: int | None) -> Array:
        """Entries start, ..., stop - 1 of an array that lies in the file as it is, or all of it."""
        header = self.headers[name]
        assert header.offset is not None
        shape = header.shape if stop is None else (stop - start, *header.shape[1:])
        entry = math.prod(header.shape[1:]) * header.dtype.itemsize
        count, offset = math.prod(shape), header.offset + start * entry
        try:
            array: Array = np.fromfile(self.path, header.dtype, count, offset=offset)
        except OSError as error:
            raise InputError(f"{self.path} cannot be read: {error.strerror or error}") from None
        if len(array) < count:
            raise InputError(f"{self.path}: {name} is truncated; save the file again")
        return array.reshape(shape)

    def forget(self) -> None:
        """Free what was kept for the next shard."""
        self._kept.clear()


def read_source(path: Path, kind: str | None, numbers: dict[str, float]) -> Source:
    """The header of a file, checked; `kind` and `numbers` stand in for what it does not hold."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {
                info.filename.removesuffix(".npy"): info
                for info in archive.infolist()
                if info.filename.endswith(".npy")
            }
            sums = sorted((name, i.CRC, i.file_size) for name, i in members.items())
            held = _kind(path, archive, members.pop("kind", None)) or kind
            headers = {name: _header(path, archive, i) for name, i in members.items()}
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; check the path") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except (zipfile.BadZipFile, EOFError, RuntimeError, NotImplementedError, struct.error):
        raise InputError(f"{path} is truncated or no .npz file; save it again") from None
    if held is None:
        raise InputError(f"{path} holds no 'kind'; save it as kind='lasso', or give --kind")
    takes = _check_names(path, held, headers, numbers)
    used = {name: v for name, v in numbers.items() if name in takes and name not in headers}
    whole = [sums, held, sorted(used.items())]
    digest = hashlib.sha256(json.dumps(whole).encode()).hexdigest()
    return Source(path, held, _count(path, headers), headers, used, digest)


def _kind(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo | None) -> str | None:
    if member is None:
        return None
    if member.file_size > 4096:
        raise InputError(f"{path}: 'kind' is {member.file_size} bytes long; expected one word")
    with archive.open(member) as stream:
        try:
            value = np.lib.format.read_array(stream, allow_pickle=False)
        except ValueError:
            raise InputError(f"{path}: 'kind' cannot be read; save it as kind='lasso'") from None
    if value.ndim or value.dtype.kind != "U":
        raise InputError(f"{path}: 'kind' is {value!r}; expected one word, such as lasso")
    return str(value)


def _header(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Header:
    name = member.filename.removesuffix(".npy")
    with archive.open(member) as stream:
        try:
            version = np.lib.format.read_magic(stream)
            read = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, fortran, dtype = read(stream)
        except ValueError:
            raise InputError(f"{path}: {name} is no array; save the file again") from None
        length = stream.tell()
    if dtype.kind not in "fiub":
        raise InputError(f"{path}: {name} has dtype {dtype}; expected real numbers")
    promised = math.prod(shape) * dtype.itemsize
    if promised != member.file_size - length:
        raise InputError(f"{path}: {name} is truncated; save the file again")
    offset = None
    if member.compress_type == zipfile.ZIP_STORED and not (fortran and len(shape) > 1):
        offset = _data_offset(archive, member) + length
    return Header(shape, dtype, offset)


def _data_offset(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """Where a member's bytes begin: after its local header, a name and extra fields."""
    stream = archive.fp
    assert stream is not None
    stream.seek(member.header_offset + 26)
    name, extra = struct.unpack("<HH", stream.read(4))
    return int(member.header_offset + 30 + name + extra)


def _check_names(
    path: Path, kind: str, headers: dict[str, Header], numbers: dict[str, float]
) -> tuple[str, ...]:
    """What the kind's constructor takes; refuses a file with less or more."""
    if kind not in jobs.KINDS:
        raise InputError(f"{path}: {unknown('kind of problem', kind, jobs.KINDS)}")
    needs = ("A", "b", *jobs.KINDS[kind].needs)
    takes = (*needs, *jobs.KINDS[kind].takes)
    if kind == "softmax":
        needs = (*needs, "classes")  # a shard may lack some, and its x would be shorter
    for name in needs:
        if name not in headers and name not in numbers:
            held = ", ".join(headers) or "nothing"
            raise InputError(f"{path} holds {held}; '{kind}' needs {name} too")
    for name in headers:
        if name not in takes:
            raise InputError(f"{path} holds {name}; '{kind}' takes {', '.join(takes)}")
    return takes


def _count(path: Path, headers: dict[str, Header]) -> int:
    """B, and every array has an entry for each of the B instances, or one for all."""
    counts = {}
    for name, header in headers.items():
        most = AXES[name] - (name in SHARED)
        if len(header.shape) not in (AXES[name] - 1, most):
            hint = "as rows of a batch (B, m)" if name == "b" else "one for all or one an instance"
            raise InputError(f"{path}: {name} has shape {header.shape}; expected {hint}")
        if len(header.shape) == AXES[name]:
            counts[name] = header.shape[0]
    A, b = headers["A"].shape, headers["b"].shape
    if A[-2] != b[-1]:
        raise InputError(f"{path}: A has shape {A} and b {b}; expected (B, {A[-2]}) for b")
    several = {name: count for name, count in counts.items() if count != 1}
    if len(set(several.values())) > 1:
        given = " and ".join(f"{name} has {count}" for name, count in several.items())
        raise InputError(f"{path}: {given} instances; expected as many, or one")
    B = next(iter(several.values()), 1)
    if B == 0:
        raise InputError(f"{path} holds no instances; leave it out")
    return B


def find_sources(place: str) -> list[Path]:
    """The .npz file, or those in the folder, by name."""
    path = Path(place)
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InputError(f"{place} does not exist; expected a folder of .npz files, or one file")
    try:
        names = sorted(n for n in os.listdir(path) if n.endswith(".npz") and n[0] != ".")
    except OSError as error:
        raise InputError(f"{place} cannot be read: {error.strerror or error}") from None
    if not names:
        raise InputError(f"{place} holds no .npz file; put the problems there")
    return [path / name for name in names]
