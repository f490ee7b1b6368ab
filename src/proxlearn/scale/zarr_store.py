"""Problems in a zarr group: a folder in which every array is a grid of compressed chunks.

A missing chunk stands for the fill value. An interrupted copy would then be a problem of zeros, so
a group that lacks chunks is refused. Codecs that are not in `CODECS` are refused as well, since
some of them unpickle.
"""

import hashlib
import math
import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from proxlearn.errors import InputError
from proxlearn.files import LIMIT, Array, one_line
from proxlearn.scale.stores import Header

CODECS = (
    *("bytes", "transpose", "sharding_indexed", "shuffle", "delta"),
    *("blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd"),
    *("adler32", "crc32", "crc32c", "fletcher32"),
)
"""What may pack the chunks, by their names in zarr and, after a prefix, in numcodecs."""
METADATA = ("zarr.json", ".zgroup", ".zarray")
CHUNK = re.compile(r"(c|\d+)([./]\d+)*")
"""The name of a chunk in the folder of its array, in both formats of zarr."""


@dataclass(frozen=True)
class ZarrStore:
    """The arrays of a group, without those of its subgroups."""

    path: Path
    kind: str | None
    headers: dict[str, Header]
    numbers: dict[str, float]
    content: str
    """A digest of the metadata, and of names, sizes and times of the chunks."""
    arrays: dict[str, Any]

    def read(self, name: str, start: int, stop: int | None) -> Array:
        array = self.arrays[name]
        try:
            return np.asarray(array[...] if stop is None else array[start:stop])
        except Exception as error:  # each codec has its own
            raise InputError(f"{self.path}: {name} cannot be read ({one_line(error)})") from None


def is_zarr(path: Path) -> bool:
    """Whether a folder is a group or an array of zarr, by its name or its metadata."""
    return path.is_dir() and (
        path.suffix == ".zarr" or any((path / name).is_file() for name in METADATA)
    )


def open_zarr(path: Path) -> ZarrStore:
    """The headers of a group, checked."""
    try:
        import zarr
    except ImportError:
        raise InputError(
            f"{path} is read with zarr, which is not installed; "
            "install the extra 'scale' (Python 3.11 or newer)"
        ) from None
    try:
        with warnings.catch_warnings():  # warnings about other files in the folder
            warnings.simplefilter("ignore")
            # Without consolidated metadata, which may be older than the arrays.
            group = zarr.open_group(str(path), mode="r", use_consolidated=False)
            arrays = dict(sorted(group.arrays()))
            attributes = dict(group.attrs)
    except Exception as error:  # zarr raises many types of errors for invalid metadata
        raise InputError(f"{path} is no zarr group ({one_line(error)}); write it again") from None
    headers = {name: _header(path, name, array) for name, array in arrays.items()}
    kind = attributes.get("kind")
    if kind is not None and not isinstance(kind, str):
        raise InputError(f"{path}: 'kind' is {kind!r}; expected one word, such as lasso")
    numbers = {
        name: value
        for name, value in attributes.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    return ZarrStore(path, kind, headers, numbers, _content(path, arrays), arrays)


def _header(path: Path, name: str, array: Any) -> Header:
    """Shape and type of an array, whose codecs and chunks are checked."""
    if array.dtype.kind not in "fiub":
        raise InputError(f"{path}: {name} has dtype {array.dtype}; expected real numbers")
    for codec in _codecs(array.metadata.to_dict()):
        if codec.removeprefix("numcodecs.") not in CODECS:
            known = ", ".join(CODECS)
            raise InputError(f"{path}: {name} is packed with '{codec}'; expected one of {known}")
    chunk = math.prod(_outer(array)) * array.dtype.itemsize
    if chunk > LIMIT:
        raise InputError(
            f"{path}: {name} has chunks of {chunk / 2**30:.1f} GiB, more than the limit of "
            f"{LIMIT // 2**30} GiB; write smaller ones"
        )
    return Header(tuple(array.shape), np.dtype(array.dtype))


def _codecs(metadata: Any) -> Iterator[str]:
    """The names of all codecs, those inside of others too."""
    if metadata.get("zarr_format") == 2:
        for codec in (metadata.get("compressor"), *(metadata.get("filters") or ())):
            if codec is not None:
                yield str(codec["id"] if isinstance(codec, dict) else codec.codec_id)
        return
    configuration = metadata.get("configuration") or metadata
    for key in ("codecs", "index_codecs"):
        for codec in configuration.get(key, ()):
            yield str(codec["name"])
            yield from _codecs(codec)


def _outer(array: Any) -> tuple[int, ...]:
    """The shape of what is one file: a chunk, or a shard of chunks."""
    return tuple(array.shards or array.chunks)


def _content(path: Path, arrays: dict[str, Any]) -> str:
    """A digest of the arrays; refuses arrays that lack chunks."""
    digest = hashlib.sha256()
    try:
        for name, array in arrays.items():
            folder = path / array.path
            digest.update(f"{name}\n".encode())
            for metadata in METADATA:
                if (folder / metadata).is_file():
                    digest.update((folder / metadata).read_bytes())
            found = 0
            for chunk, stat in _chunks(folder):
                found += 1
                digest.update(f"{chunk} {stat.st_size} {stat.st_mtime_ns}\n".encode())
            sizes = zip(array.shape, _outer(array), strict=True)
            expected = math.prod(-(-size // max(one, 1)) for size, one in sizes)
            if found < expected:
                raise InputError(
                    f"{path}: {name} lacks {expected - found} of {expected} chunks; copy or write "
                    "it again, with the setting array.write_empty_chunks if they hold only zeros"
                )
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    return digest.hexdigest()


def _chunks(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """The chunks in the folder of an array, in order."""
    pending = [(folder, "")]
    while pending:
        place, prefix = pending.pop()
        for entry in sorted(os.scandir(place), key=lambda e: e.name):
            name = f"{prefix}{entry.name}"
            if CHUNK.fullmatch(name):
                if entry.is_dir():
                    pending.append((Path(entry.path), f"{name}/"))
                else:
                    yield name, entry.stat()
