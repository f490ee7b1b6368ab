"""Problems in a folder of .npy files, one an array, which are mapped into memory.

Workers of one machine share the memory of such a file, which is the way for a large A.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from proxlearn.errors import InputError
from proxlearn.filenames import reason
from proxlearn.files import Array
from proxlearn.scale.store import Header, read_header


@dataclass(frozen=True)
class NpyStore:
    """The files NAME.npy of a folder."""

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
