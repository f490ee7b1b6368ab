"""Arrays of problems: which of them all problems share, and whether their shapes fit together."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from proxlearn import names
from proxlearn.errors import InputError
from proxlearn.scale.chunk import AXES, SHARED, Settings
from proxlearn.scale.sizes import Size


@dataclass(frozen=True)
class Problems:
    """Arrays of problems, whose shapes fit together; their numbers are checked chunk by chunk."""

    settings: Settings
    arrays: dict[str, Any]
    own: frozenset[str]
    """Names of the arrays that have an entry a problem."""
    count: int
    lazy: bool
    """Some arrays are Dask arrays."""

    @classmethod
    def of(cls, settings: Settings, A: Any, b: Any, options: dict[str, Any]) -> "Problems":
        """Refuses arrays whose number or shapes are wrong."""
        kind = names.KINDS[settings.kind]
        needs = ("b", *kind.needs, *(["classes"] if settings.kind == "softmax" else []))
        given = {"A": A, **options, **({} if b is None else {"b": b})}
        for name in needs:
            if name not in given:
                raise InputError(f"{name} is missing; {settings.kind!r} problems need it")
        for name in options:
            if name not in kind.needs + kind.takes:
                raise InputError(f"{settings.kind!r} problems were given {name}; leave it out")
        lazy = any(is_dask(value) for value in given.values())
        arrays = {k: v if is_dask(v) or _is_sparse(v) else np.asarray(v) for k, v in given.items()}
        counts = {k: v.shape[0] for k, v in arrays.items() if _has_problems(k, v)}
        if len(set(counts.values()) - {1}) > 1:
            said = " and ".join(f"{k} has {v}" for k, v in counts.items())
            raise InputError(f"{said} problems; expected as many, or one")
        count = max(counts.values(), default=1)
        if count != count:
            raise InputError("b has chunks of unknown size; call b.compute_chunk_sizes() first")
        if 0 in counts.values():
            raise InputError("the arrays hold no problems; give at least one")
        own = frozenset(k for k, v in counts.items() if v == count and count > 1)
        arrays = {k: v[0] if k in counts and k not in own else v for k, v in arrays.items()}
        shape, rows = arrays["A"].shape, arrays["b"].shape
        if 0 in shape[-2:]:
            raise InputError(f"A has shape {shape}; expected at least one row and one column")
        if shape[-2] != rows[-1]:
            raise InputError(f"A has shape {shape} and b {rows}; expected (B, {shape[-2]}) for b")
        return cls(settings, arrays, own, count, lazy)

    @property
    def width(self) -> int:
        """The length of x."""
        return int(self.arrays["A"].shape[-1]) * int(self.arrays.get("classes", 1))

    @property
    def precision(self) -> str:
        """That of x."""
        dtype = np.dtype(self.arrays["A"].dtype)
        own = "float32" if dtype.kind == "f" and dtype.itemsize <= 4 else "float64"
        return self.settings.dtype or own

    @property
    def size(self) -> Size:
        """For estimates of time and memory."""
        A = self.arrays["A"]
        entries = A.nnz if _is_sparse(A) else A.shape[-2] * A.shape[-1]
        return Size(int(entries), int(A.shape[-2]), self.width, "A" in self.own)

    def part(self, start: int, stop: int) -> dict[str, Any]:
        """The arrays of some problems, without A where all share it."""
        return {
            name: value[start:stop] if name in self.own else _plain(name, value)
            for name, value in self.arrays.items()
            if name != "A" or "A" in self.own
        }

    def chunks(self, size: int) -> Iterator[tuple[int, int]]:
        """The first problem of every chunk, and the one after its last."""
        for start in range(0, self.count, size):
            yield start, min(start + size, self.count)


def _plain(name: str, value: Any) -> Any:
    return int(value) if name == "classes" else value


def _has_problems(name: str, value: Any) -> bool:
    """Whether an array has an axis for problems; refuses one with a wrong number of axes."""
    if _is_sparse(value):
        return False
    allowed = {AXES[name] - 1} if name in SHARED else {AXES[name] - 1, AXES[name]}
    if value.ndim not in allowed:
        hint = "(m, n) or (B, m, n)" if name == "A" else "one for all, or one a problem"
        raise InputError(f"{name} has shape {value.shape}; expected {hint}")
    return bool(value.ndim == AXES[name])


def is_dask(value: Any) -> bool:
    """True for a collection of Dask."""
    return hasattr(value, "__dask_graph__")


def _is_sparse(value: Any) -> bool:
    return bool(scipy.sparse.issparse(value))
