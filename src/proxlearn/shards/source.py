"""Problems in .npz files and zarr groups: what these must hold, and their shards."""

import hashlib
import json
import math
import os
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import scipy.sparse

from proxlearn import constructors, names
from proxlearn.arrays import to_matrix
from proxlearn.errors import InputError, unknown
from proxlearn.files import MOSTLY_EMPTY, Array
from proxlearn.problem import Problem
from proxlearn.shards.npz_store import open_npz
from proxlearn.shards.store import Header, Store
from proxlearn.shards.zarr_store import is_zarr, open_zarr

AXES = {"A": 3, "b": 2, "lam": 1, "lam2": 1, "radius": 1, "weights": 2, "groups": 2, "classes": 1}
"""Dimensions of an array that has an entry an instance; with one less it is shared by all."""

SHARED = ("groups", "classes")
"""Never one an instance."""

PARTS = ("A_data", "A_indices", "A_indptr", "A_shape")
"""One sparse A (m, n) for all instances, by rows: what SciPy's `csr_matrix` has."""


@dataclass(frozen=True)
class Source:
    """A store of `count` instances of one kind."""

    store: Store
    kind: str
    count: int
    headers: dict[str, Header]
    """Arrays of the problems; that of a sparse A has the shape of the matrix."""
    numbers: dict[str, float]
    """Options that are no arrays, for all instances."""
    sparse: bool
    """A is one sparse matrix, in `PARTS`."""
    _kept: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """What all shards share: A (m, n), validated."""

    @property
    def path(self) -> Path:
        return self.store.path

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def fingerprint(self) -> str:
        """The same for stores of the same content."""
        whole = [self.store.content, self.kind, sorted(self.numbers.items())]
        return hashlib.sha256(json.dumps(whole).encode()).hexdigest()

    def problem(self, start: int, stop: int, dtype: str | None, device: str) -> Problem:
        """The instances start, ..., stop - 1. Bad numbers in them are an `InputError`."""
        given: dict[str, Any] = dict(self.numbers)
        for name in self.headers.keys() - {"A", "b"}:
            given[name] = self._slice(name, start, stop)
        if "classes" in given:
            given["classes"] = self._whole("classes", given["classes"])
        b = self._slice("b", start, stop)
        build = getattr(constructors, self.kind.replace("-", "_"))
        problem: Problem = build(
            self._matrix(start, stop, dtype, device), b[None] if b.ndim == 1 else b, **given
        )
        return problem

    def _whole(self, name: str, value: Any) -> int:
        number = float(value)
        if not number.is_integer():
            raise InputError(f"{self.path}: {name} is {number:g}; expected a whole number")
        return int(number)

    def _matrix(self, start: int, stop: int, dtype: str | None, device: str) -> Any:
        if "A" in self._kept:
            return self._kept["A"]
        A = to_matrix("A", self._sparse() if self.sparse else self._slice("A", start, stop))
        A = A.in_precision("A", dtype, device)
        if len(self.headers["A"].shape) == 2:
            self._kept["A"] = A  # and with it what a solve computes from A alone
        return A

    def _sparse(self) -> Any:
        data, indices, indptr = (self.store.read(name, 0, None) for name in PARTS[:3])
        try:
            A = scipy.sparse.csr_matrix((data, indices, indptr), self.headers["A"].shape)
            A.check_format(full_check=True)
        except ValueError as error:
            raise InputError(f"{self.path}: A is no sparse matrix in rows ({error})") from None
        return A

    def _slice(self, name: str, start: int, stop: int) -> Array:
        shape = self.headers[name].shape
        own = len(shape) == AXES[name] and shape[0] != 1
        return self.store.read(name, *((start, stop) if own else (0, None)))

    def forget(self) -> None:
        """Free what was kept for the next shard."""
        self._kept.clear()
        self.store.forget()


def read_source(path: Path, kind: str | None, numbers: dict[str, float]) -> Source:
    """The headers of a file, checked; `kind` and `numbers` stand in for what it does not hold."""
    store = open_zarr(path) if is_zarr(path) else open_npz(path)
    held = store.kind or kind
    if held is None:
        raise InputError(f"{path} holds no 'kind'; save it as kind='lasso', or give --kind")
    headers = dict(store.headers)
    sparse = "A_data" in headers
    if sparse:
        headers = _with_sparse(store, headers)
    numbers = {**numbers, **{name: v for name, v in store.numbers.items() if AXES.get(name) == 1}}
    takes = _check_names(path, held, headers, numbers)
    used = {name: v for name, v in numbers.items() if name in takes and name not in headers}
    return Source(store, held, _count(path, headers), headers, used, sparse)


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
    path: Path, kind: str, headers: dict[str, Header], numbers: dict[str, float]
) -> tuple[str, ...]:
    """What the kind's constructor takes; refuses a file with less or more."""
    if kind not in names.KINDS:
        raise InputError(f"{path}: {unknown('kind of problem', kind, names.KINDS)}")
    needs = ("A", "b", *names.KINDS[kind].needs)
    takes = (*needs, *names.KINDS[kind].takes)
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
    """The .npz file or zarr group, or those in the folder, by name."""
    path = Path(place)
    if path.is_file() or is_zarr(path):
        return [path]
    expected = "a folder of .npz files and zarr groups, or one of them"
    if not path.is_dir():
        raise InputError(f"{place} does not exist; expected {expected}")
    try:
        names = sorted(name for name in os.listdir(path) if name[0] != ".")
    except OSError as error:
        raise InputError(f"{place} cannot be read: {error.strerror or error}") from None
    found = [path / name for name in names if name.endswith((".npz", ".zarr"))]
    if not found:
        raise InputError(f"{place} holds no .npz file and no .zarr group; put the problems there")
    for stem, count in Counter(file.stem for file in found).items():
        if count > 1:
            raise InputError(f"{place} holds {stem}.npz and {stem}.zarr; rename one of them")
    return found
