"""Problems in files: what these must hold, and the arrays of a chunk of them."""

import hashlib
import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import scipy.sparse

from proxlearn import names
from proxlearn.errors import InputError, unknown
from proxlearn.files import MOSTLY_EMPTY, Array
from proxlearn.scale.chunk import AXES, WHOLE, SharedMatrix, axes_of, options_of
from proxlearn.scale.inputs import fitted, precision_of, width_of
from proxlearn.scale.stores import Header, Store, open_npy, open_npz
from proxlearn.scale.zarr_store import is_zarr, open_zarr

PARTS = ("A_data", "A_indices", "A_indptr", "A_shape")
"""One sparse A (m, n) for all problems, by rows: what SciPy's `csr_matrix` has."""


@dataclass(frozen=True)
class Source:
    """A store of `count` problems of one kind."""

    store: Store
    kind: str
    count: int
    own: frozenset[str]
    """Names of the arrays that have an entry a problem."""
    headers: dict[str, Header]
    """Arrays of the problems; that of a sparse A has the shape of the matrix."""
    numbers: dict[str, float]
    """Options that are no arrays, for all problems."""
    sparse: bool
    """True where A is one sparse matrix, stored in `PARTS`."""
    _kept: dict[str, SharedMatrix] = field(default_factory=dict, repr=False, compare=False)
    """A (m, n) that all problems share."""

    @property
    def path(self) -> Path:
        return self.store.path

    @property
    def digest(self) -> str:
        """A digest that is equal for stores of the same content."""
        whole = [self.store.content, self.kind, sorted(self.numbers.items())]
        return hashlib.sha256(json.dumps(whole).encode()).hexdigest()

    @property
    def width(self) -> int:
        """The length of x."""
        classes = self._whole("classes") if "classes" in {*self.headers, *self.numbers} else 1
        A, b = (self.headers[name].shape for name in ("A", "b"))
        return width_of(self.kind, A, b, classes)

    @property
    def entries(self) -> int:
        """Numbers in A of one problem, those that are not 0 where it is sparse."""
        if self.sparse:
            return math.prod(self.store.headers["A_data"].shape)
        return math.prod(self.headers["A"].shape[-2:])

    @property
    def precision(self) -> str:
        """The precision of A: float32 or float64."""
        return precision_of(self.headers["A"].dtype)

    def arrays(self, start: int, stop: int, dtype: str | None) -> dict[str, Any]:
        """What `solve_chunk` takes for the problems start, ..., stop - 1."""
        given: dict[str, Any] = dict(self.numbers)
        for name in self.headers.keys() - {"A"}:
            given[name] = self._slice(name, start, stop)
        given |= {name: self._whole(name) for name in WHOLE if name in given}
        return {**given, "A": self._matrix(start, stop, dtype)}

    def _whole(self, name: str) -> int:
        given = self.numbers[name] if name in self.numbers else self._slice(name, 0, 0)
        number = float(given)
        if not number.is_integer():
            raise InputError(f"{self.path}: {name} is {number:g}; expected a whole number")
        return int(number)

    def _matrix(self, start: int, stop: int, dtype: str | None) -> Any:
        if "A" in self.own:
            return self._slice("A", start, stop)
        if "A" not in self._kept:
            A = self._sparse() if self.sparse else self._slice("A", 0, 0)
            self._kept["A"] = SharedMatrix.of(A, dtype)
        return self._kept["A"]

    def _sparse(self) -> Any:
        data, indices, indptr = (self.store.read(name, 0, None) for name in PARTS[:3])
        try:
            A = scipy.sparse.csr_matrix((data, indices, indptr), self.headers["A"].shape)
            A.check_format(full_check=True)
        except ValueError as error:
            raise InputError(f"{self.path}: A is no sparse matrix in rows ({error})") from None
        return A

    def _slice(self, name: str, start: int, stop: int) -> Array:
        """The entries of some problems, or what all problems share, without the first axis."""
        if name in self.own:
            return self.store.read(name, start, stop)
        array = self.store.read(name, 0, None)
        shared: Array = array[0] if array.ndim == axes_of(self.kind)[name] else array
        return shared


def read_source(path: Path, kind: str | None, numbers: dict[str, float]) -> Source:
    """The headers of a file, checked; `kind` and `numbers` stand in for what it does not hold."""
    store = _open(path)
    held = store.kind or kind
    if held is None:
        raise InputError(f"{path} holds no 'kind'; save it as kind='lasso', or give --kind")
    if kind not in (None, held):
        raise InputError(f"{path} holds the kind {held!r}, not {kind!r}; leave it out")
    headers = dict(store.headers)
    sparse = "A_data" in headers
    if sparse:
        headers = _with_sparse(store, headers)
    held_numbers = {name: v for name, v in store.numbers.items() if AXES.get(name) == 1}
    for name, value in numbers.items():
        if name in headers or held_numbers.get(name, value) != value:
            raise InputError(f"{path} holds {name}; leave out --{name}")
    known = {**numbers, **held_numbers}
    takes = _check_names(path, held, headers, known, numbers)
    used = {name: v for name, v in known.items() if name in takes and name not in headers}
    count, own = fitted(held, {name: header.shape for name, header in headers.items()}, f"{path}: ")
    return Source(store, held, count, own, headers, used, sparse)


def _open(path: Path) -> Store:
    if is_zarr(path):
        return open_zarr(path)
    if path.is_dir():
        return open_npy(path)
    return open_npz(path)


def _with_sparse(store: Store, headers: dict[str, Header]) -> dict[str, Header]:
    """Headers in which A stands for its parts."""
    path = store.path
    missing = [name for name in PARTS if name not in headers]
    if missing or "A" in headers:
        wrong = f"no {missing[0]}" if missing else "A too"
        raise InputError(f"{path} holds A_data and {wrong}; a sparse A is {', '.join(PARTS)}")
    data, *whole = (headers.pop(name) for name in PARTS)
    if whole[2].shape != (2,) or any(header.dtype.kind not in "iu" for header in whole):
        raise InputError(f"{path}: A_indices, A_indptr and A_shape (m, n) must be whole numbers")
    m, n = (int(size) for size in store.read("A_shape", 0, None))
    if m < 1 or n < 1:
        raise InputError(f"{path}: A_shape is ({m}, {n}); expected at least one row and column")
    if m + n > MOSTLY_EMPTY + 2 * math.prod(data.shape):
        raise InputError(
            f"{path}: A_shape is ({m}, {n}) with {math.prod(data.shape)} entries: nearly all "
            f"rows or columns are empty; expected at most {MOSTLY_EMPTY} of these: leave them out"
        )
    if whole[1].shape != (m + 1,) or whole[0].shape != data.shape or len(data.shape) != 1:
        raise InputError(
            f"{path}: A_data, A_indices and A_indptr have shapes {data.shape}, {whole[0].shape} "
            f"and {whole[1].shape}; expected two of the same length and ({m + 1},)"
        )
    return {"A": replace(data, shape=(m, n)), **headers}


def _check_names(
    path: Path,
    kind: str,
    headers: dict[str, Header],
    numbers: dict[str, float],
    given: dict[str, float],
) -> tuple[str, ...]:
    """What the kind's constructor takes; refuses a file, or `given` numbers, beside it."""
    if kind not in names.KINDS:
        raise InputError(f"{path}: {unknown('kind of problem', kind, names.KINDS)}")
    needs, further = options_of(kind)
    takes = tuple(dict.fromkeys(("A", *needs, *further)))
    for name in ("A", *needs):
        if name not in headers and name not in numbers:
            held = ", ".join(headers) or "nothing"
            raise InputError(f"{path} holds {held}; '{kind}' needs {name} too")
    for name in headers:
        if name not in takes:
            raise InputError(f"{path} holds {name}; '{kind}' takes {', '.join(takes)}")
    for name in given:
        if name not in takes:
            raise InputError(f"--{name} was given; '{kind}' takes {', '.join(takes)}")
    return takes
