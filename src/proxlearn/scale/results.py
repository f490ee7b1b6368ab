"""The results of many problems in a zarr group, of which each chunk is written whole or not at all.

A chunk of problems is one file in each array. It is written under another name and renamed, and it
ends with a checksum, so that a file that is there is either whole or known to be damaged. All bytes
follow from the input and the settings: chunks that two runs have written are the same.
"""

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse

from proxlearn.errors import InputError
from proxlearn.filenames import reason, replacing, shown
from proxlearn.scale.chunk import FIELDS, Array, Results

PREFIX = ".unfinished-"
"""Names of files that a writer has not finished."""

LEVEL = -5
"""Compression level of Zstandard. x of 12 MB with a fifth of non-zeros takes 9 ms and 3.3 MB with
it, and 20 ms and 2.7 MB with level 1 (2026-11, one core)."""


@dataclass(frozen=True)
class Field:
    """One array of the group."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: str
    fill: Any
    """What readers find for problems that are not solved yet."""

    @property
    def little_endian(self) -> str:
        return str(np.dtype(self.dtype).newbyteorder("<").str)

    def create(self, store: str, name: str) -> None:
        """Make the array in a zarr store: compressed, each chunk with a checksum."""
        import zarr
        from zarr.codecs import Crc32cCodec, ZstdCodec

        zarr.create_array(
            store,
            name=name,
            shape=self.shape,
            chunks=self.chunks,
            dtype=self.dtype,
            fill_value=self.fill,
            compressors=[ZstdCodec(level=LEVEL), Crc32cCodec()],
            chunk_key_encoding={"name": "v2", "separator": "."},
        )


@dataclass(frozen=True)
class ResultGroup:
    """The group at `path` with the results of `count` problems, `chunk` of them in a chunk."""

    path: str
    count: int
    width: int
    """The length of x."""
    chunk: int
    dtype: str
    """Precision of x."""
    sparse: bool = False

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return -(-self.count // self.chunk)

    def bounds(self, place: int) -> tuple[int, int]:
        """The first problem of a chunk, and the one after its last."""
        return place * self.chunk, min((place + 1) * self.chunk, self.count)

    @property
    def fields(self) -> dict[str, Field]:
        """The arrays. A sparse x is three arrays, whose row k has the non-zeros of chunk k."""
        one, each = (self.count,), (self.chunk,)
        numbers = {
            name: Field(one, each, dtype, np.nan if dtype == "float64" else -1)
            for name, dtype in FIELDS.items()
            if dtype is not None
        }
        if not self.sparse:
            x = {"x": Field((*one, self.width), (*each, self.width), self.dtype, np.nan)}
            return {**x, **numbers}
        most = self.chunk * self.width
        x = {
            "x_data": Field((self.chunks, most), (1, most), self.dtype, 0),
            "x_indices": Field((self.chunks, most), (1, most), "int32", 0),
            "x_counts": Field(one, each, "int32", -1),
        }
        return {**x, **numbers}

    def begin(self, record: dict[str, Any]) -> None:
        """Make the group, or check that the existing one was made with the same record."""
        target = Path(self.path)
        if not (target / "zarr.json").exists():
            self._create(target, record)
        found = read_attributes(target).get("proxlearn")
        if found != record:
            raise InputError(_difference(target, found, record))

    def _create(self, target: Path, record: dict[str, Any]) -> None:
        """Write all metadata and rename the folder, so that no reader sees half of it."""
        import zarr

        if target.exists() and (not target.is_dir() or os.listdir(target)):
            raise InputError(
                f"output {shown(target)} exists and is not a result of solve-batch; "
                "choose another name"
            )
        temporary = target.with_name(f"{PREFIX}{secrets.token_hex(8)}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            attributes: dict[str, Any] = {"proxlearn": record, "complete": False}
            zarr.open_group(str(temporary), mode="w-", zarr_format=3, attributes=attributes)
            for name, item in self.fields.items():
                item.create(str(temporary), name)
            with suppress(FileExistsError):  # another run has made the group meanwhile
                try:
                    temporary.rename(target)
                except OSError as error:
                    if not (target / "zarr.json").exists():
                        raise error
        except OSError as error:
            raise InputError(
                f"output {shown(target)} cannot be written: {reason(error)}; choose another name"
            ) from None
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def write(self, place: int, results: Results) -> None:
        """Write a chunk; raises OSError where that fails."""
        stored = self._to_sparse(results) if self.sparse else results
        for name, item in self.fields.items():
            _replace(self._file(name, place), _encoded(item, stored[name]))

    def read(self, place: int) -> Results | None:
        """A chunk, with x as it is stored; None where a part of it is missing or damaged."""
        stored = {}
        for name, item in self.fields.items():
            try:
                content = self._file(name, place).read_bytes()
                stored[name] = _decoded(item, content, self._rows(name, place))
            except (OSError, ValueError, RuntimeError):  # the last error is Zstandard's
                return None
        return stored

    def _rows(self, name: str, place: int) -> int:
        """The number of rows of an array that hold a chunk."""
        start, stop = self.bounds(place)
        return 1 if name in ("x_data", "x_indices") else stop - start

    def _file(self, name: str, place: int) -> Path:
        last = ".0" if len(self.fields[name].shape) == 2 else ""
        return Path(self.path) / name / f"{place}{last}"

    def _to_sparse(self, results: Results) -> Results:
        x = scipy.sparse.csr_array(results["x"])
        data = np.zeros((1, self.chunk * self.width), dtype=self.dtype)
        indices = np.zeros(data.shape, dtype=np.int32)
        data[0, : x.nnz], indices[0, : x.nnz] = x.data, x.indices
        rest = {name: value for name, value in results.items() if name != "x"}
        return {"x_data": data, "x_indices": indices, "x_counts": np.diff(x.indptr), **rest}

    def finish(self, record: dict[str, Any], summary: dict[str, Any]) -> None:
        """Mark the group as complete, and remove unfinished files of processes that were killed."""
        attributes = {"proxlearn": record, **summary, "complete": True}
        metadata = {"attributes": attributes, "zarr_format": 3, "node_type": "group"}
        with replacing(Path(self.path) / "zarr.json") as temporary:
            temporary.write_text(json.dumps(metadata, indent=2), encoding="utf-8")
        for name in self.fields:
            for left in (Path(self.path) / name).glob(f"{PREFIX}*"):
                left.unlink(missing_ok=True)


def _encoded(item: Field, values: Array) -> bytes:
    """The file of a chunk with these values, as zarr writes it: Zstandard, then CRC32C."""
    from numcodecs import Zstd

    whole = np.ascontiguousarray(values, dtype=item.little_endian)
    if whole.shape != item.chunks:  # the last chunk may be shorter
        whole = np.full(item.chunks, item.fill, dtype=item.little_endian)
        whole[: len(values)] = values
    content = bytes(Zstd(level=LEVEL).encode(whole))
    return content + _checksum(content)


def _decoded(item: Field, content: bytes, rows: int) -> Array:
    """The values in the file of a chunk; ValueError where its checksum is wrong."""
    from numcodecs import Zstd

    if _checksum(content[:-4]) != content[-4:]:
        raise ValueError("wrong checksum")
    whole = np.frombuffer(Zstd().decode(content[:-4]), dtype=item.little_endian)
    return whole.reshape(item.chunks)[:rows]


def _checksum(content: bytes) -> bytes:
    import google_crc32c

    return int(google_crc32c.value(content)).to_bytes(4, "little")


def _opened(path: Path) -> IO[bytes]:
    return path.open("xb")


def _replace(path: Path, content: bytes) -> None:
    """Write a file under a temporary name and rename it."""
    temporary = path.with_name(f"{PREFIX}{secrets.token_hex(8)}")
    try:
        with _opened(temporary) as stream:
            stream.write(content)
        try:
            os.replace(temporary, path)
        except FileNotFoundError:
            if not path.exists():  # otherwise another run has finished the chunk
                raise
    finally:
        with suppress(OSError):
            temporary.unlink()


def read_attributes(path: Path) -> dict[str, Any]:
    """The attributes of a group of results."""
    try:
        text = (path / "zarr.json").read_text(encoding="utf-8")
        attributes = json.loads(text)["attributes"]
        if not isinstance(attributes, dict):
            raise TypeError
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise InputError(
            f"output {shown(path)} is not a result of solve-batch; choose another name"
        ) from None
    return attributes


def _difference(path: Path, found: Any, record: dict[str, Any]) -> str:
    """Why a run cannot go on with an output, in one line."""
    if not isinstance(found, dict):
        return f"output {shown(path)} is not a result of solve-batch; choose another name"
    differ = [
        f"{key} {found.get(key)} (now {record.get(key)})"
        for key in sorted(record.keys() | found.keys())
        if found.get(key) != record.get(key)
    ]
    return (
        f"output {shown(path)} was begun with other settings: {', '.join(differ)}; "
        "choose another name, or remove it"
    )


def sparse_x(group: Any) -> Any:
    """x of a group that ``solve-batch --sparse`` has written, as a SciPy matrix by rows.

    Parameters
    ----------
    group : zarr.Group
        A complete group of results.

    Returns
    -------
    scipy.sparse.csr_array
        (B, n), problem by problem.

    Examples
    --------
    >>> import zarr, proxlearn as pl
    >>> x = pl.scale.sparse_x(zarr.open_group("results.zarr"))  # doctest: +SKIP
    """
    record = group.attrs["proxlearn"]
    parts = list(_sparse_parts(group, record["chunk"]))
    data, indices = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    indptr = np.concatenate([[0], np.cumsum(group["x_counts"][...], dtype=np.int64)])
    shape = (record["problems"], record["width"])
    return scipy.sparse.csr_array((data, indices, indptr), shape=shape)


def _sparse_parts(group: Any, chunk: int) -> Iterator[tuple[Array, Array]]:
    for place in range(group["x_data"].shape[0]):
        count = int(group["x_counts"][place * chunk : (place + 1) * chunk].sum())
        yield group["x_data"][place, :count], group["x_indices"][place, :count]
