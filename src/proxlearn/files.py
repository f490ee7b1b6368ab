"""Arrays from files and back: .npy, .npz, .csv, .mtx in; .npy, .csv out, whole or not at all.

Nothing is unpickled, and a file cannot claim more than `LIMIT` bytes of memory beyond its own size.
"""

import math
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import scipy.io
import scipy.sparse

from proxlearn.errors import InputError
from proxlearn.filenames import check_folder, check_input, check_output, reason, replacing, split

__all__ = [
    "Array",
    "check_folder",
    "check_input",
    "check_output",
    "one_line",
    "read_matrix",
    "read_vector",
    "replacing",
    "write_array",
]

LIMIT = 4 * 2**30
"""Largest array, in bytes, that is unpacked from a compressed or a text file."""

LONGEST = 2**48
"""Longest axis that an array without entries may have; NumPy fails on some longer ones."""

MOSTLY_EMPTY = 20_000_000
"""Rows and columns of a sparse .mtx file that may be empty. Each takes time and memory in every
iteration, and a file of one line can claim any number of them."""

Array = npt.NDArray[Any]


def read_matrix(source: str) -> Any:
    """The array in a file: of NumPy, or a scipy sparse matrix where an .mtx file is sparse.

    `source` is a path, or ``file.npz:name`` for one of several arrays. A CSV file holds
    comma-separated numbers and becomes (rows, columns); a first line without any number is
    taken for a header.
    """
    check_input(source)
    path, key = split(source)
    try:
        array = _READERS[path.suffix.lower()](path, key)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason(error)}; check the file") from None
    except MemoryError:
        raise InputError(f"{path} does not fit into memory; give a smaller array") from None
    require_real(source, array.dtype)
    return array


def require_real(name: str, dtype: np.dtype[Any]) -> None:
    """Refuses values that are not real numbers."""
    if dtype.kind not in "fiub":
        raise InputError(
            f"{name} holds values of type {dtype}; expected real numbers (float or integer)"
        )


def read_vector(source: str) -> Array:
    """The same for a vector, or a batch of them in rows: dense, a row or column of text is 1-D."""
    array = read_matrix(source)
    if scipy.sparse.issparse(array):
        if array.shape[0] * array.shape[1] * 8 > LIMIT:
            raise InputError(f"{source} has shape {array.shape}; expected a vector")
        array = array.toarray()
    text = split(source)[0].suffix.lower() in (".csv", ".mtx")
    dense: Array = array.reshape(-1) if text and 1 in array.shape else array
    return dense


def _read_npy(path: Path, key: str | None) -> Array:
    with path.open("rb") as stream:
        return _npy(stream, str(path), path.stat().st_size)


def _read_npz(path: Path, key: str | None) -> Array:
    """One array of an .npz file."""
    try:
        with zipfile.ZipFile(path) as archive:
            member = _member(path, archive.namelist(), key)
            size = archive.getinfo(member).file_size
            if size > LIMIT:
                raise InputError(
                    f"{path} unpacks to {size / 2**30:.1f} GiB, more than the limit of "
                    f"{LIMIT // 2**30} GiB; save the array as .npy"
                )
            with archive.open(member) as stream:
                return _npy(stream, f"{path}:{member.removesuffix('.npy')}", size)
    except (zipfile.BadZipFile, EOFError, RuntimeError, NotImplementedError) as error:
        raise InputError(f"{path} is truncated or no .npz file ({one_line(error)})") from None
    except zlib.error as error:
        raise InputError(f"{path} is damaged ({one_line(error)}); save it again") from None


def _member(path: Path, names: list[str], key: str | None) -> str:
    arrays = [name.removesuffix(".npy") for name in names if name.endswith(".npy")]
    if key is None and len(arrays) == 1:
        return arrays[0] + ".npy"
    if key in arrays:
        return f"{key}.npy"
    asked = f"no array '{key}' but" if key is not None else f"{len(arrays)} arrays"
    raise InputError(
        f"{path} holds {asked}: {', '.join(arrays) or 'nothing'}; name one, as in {path}:NAME"
    )


def _npy(stream: IO[bytes], name: str, size: int) -> Array:
    """An .npy file of `size` bytes, whose header is believed only as far as the size allows."""
    try:
        shape, _, dtype = read_header(stream)
    except Exception as error:  # NumPy lets through whatever Python's parser raises
        raise InputError(f"{name} is truncated or no .npy file ({one_line(error)})") from None
    if dtype.hasobject:
        raise InputError(
            f"{name} holds Python objects, which are never unpickled; save a numeric array"
        )
    require_real(name, dtype)
    promised, left = math.prod(shape) * dtype.itemsize, size - stream.tell()
    if promised > left or min(shape, default=0) < 0 or max(shape, default=0) > LONGEST:
        raise InputError(
            f"{name} is truncated: its header promises shape {shape}, {promised} bytes, "
            f"and {left} follow"
        )
    stream.seek(0)
    array: Array = np.lib.format.read_array(stream, allow_pickle=False)
    return array


def read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """The shape, whether it is in Fortran order, and the type of an array in NumPy's format."""
    if np.lib.format.read_magic(stream) == (1, 0):
        return np.lib.format.read_array_header_1_0(stream)
    return np.lib.format.read_array_header_2_0(stream)


def _read_csv(path: Path, key: str | None) -> Array:
    """A table of comma-separated numbers, with or without a header."""
    try:
        with path.open(encoding="utf-8-sig") as stream:
            first = next((line for line in stream if line.strip()), "")
        if not first:
            raise InputError(f"{path} has no numbers in it; expected comma-separated numbers")
        header = not any(_is_number(field) for field in first.split(","))
        with path.open(encoding="utf-8-sig") as stream:
            lines = (line for line in stream if line.strip())
            if header:
                next(lines)
            return _numbers(path, lines)
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a text file; expected comma-separated numbers") from None


def _numbers(path: Path, lines: Iterator[str]) -> Array:
    """The numbers of these lines, (rows, columns)."""
    if path.stat().st_size * 4 > LIMIT:  # two characters of text can become eight bytes
        raise InputError(
            f"{path} is larger than {LIMIT // 2**32} GiB of text; save the array as .npy"
        )
    rows = list(lines)
    if not rows:
        raise InputError(
            f"{path} has a header and no numbers, or its only line has none; "
            "expected comma-separated numbers"
        )
    try:
        return np.loadtxt(rows, delimiter=",", comments=None, ndmin=2)
    except ValueError as error:
        raise InputError(f"{path} {_fault(rows, path) or one_line(error)}") from None


def _fault(rows: list[str], path: Path) -> str | None:
    """Where the text is not a table of numbers, in words; rows are numbered as in the file."""
    with path.open(encoding="utf-8-sig") as stream:
        numbers = [i for i, line in enumerate(stream, 1) if line.strip()][-len(rows) :]
    width = len(rows[0].split(","))
    for number, row in zip(numbers, rows, strict=True):
        fields = row.split(",")
        for column, field in enumerate(fields, 1):
            if not _is_number(field):
                return (
                    f"has {field.strip()[:40]!r} in row {number}, column {column}; expected "
                    "comma-separated numbers (a first line without any number is a header)"
                )
        if len(fields) != width:
            return (
                f"has {len(fields)} columns in row {number} and {width} before; "
                "expected the same number in every row"
            )
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _read_mtx(path: Path, key: str | None) -> Any:
    """A MatrixMarket file, whose claimed size is checked first."""
    try:
        rows, columns, entries, layout, *_ = scipy.io.mminfo(path)
        dense = layout == "array"
        claimed = rows * columns * 8 if dense else 16 * entries + 8 * (rows + columns)
        if claimed > LIMIT or entries > path.stat().st_size:
            raise InputError(
                f"{path} claims {rows} x {columns} with {entries} entries; expected as many as the "
                f"file holds, and at most {LIMIT // 2**30} GiB: check its size line"
            )
        if not dense and rows + columns > MOSTLY_EMPTY + 2 * entries:
            raise InputError(
                f"{path} claims {rows} x {columns} with {entries} entries, so that nearly all rows "
                f"or columns are empty; expected at most {MOSTLY_EMPTY} of these: leave them out"
            )
        return _read_market(path)
    except (ValueError, OverflowError, UnicodeDecodeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is not a MatrixMarket file ({one_line(error)})") from None


def _read_market(path: Any) -> Any:
    try:
        return scipy.io.mmread(path, spmatrix=True)  # SciPy 1.18 warns where this is not said
    except TypeError:  # SciPy before 1.15 does not know it
        return scipy.io.mmread(path)


_READERS: dict[str, Callable[[Path, str | None], Any]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".csv": _read_csv,
    ".mtx": _read_mtx,
}


def one_line(error: BaseException) -> str:
    """What an error says, in one line."""
    return " ".join(str(error).split()) or type(error).__name__


def write_array(path: str, array: Array) -> None:
    """Write an array as .npy, or as .csv with a vector as one column; whole or not at all."""
    check_output(path)
    with replacing(path) as temporary, temporary.open("xb") as stream:
        if path.lower().endswith(".npy"):
            np.save(stream, array, allow_pickle=False)
        else:
            np.savetxt(stream, array, delimiter=",", fmt="%.17g")
