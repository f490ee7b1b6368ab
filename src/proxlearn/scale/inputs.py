"""Arrays of problems: which of them all problems share, and whether their shapes fit together."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from proxlearn.errors import InputError
from proxlearn.scale.chunk import MULTITASK, SHARED, WHOLE, Settings, axes_of, options_of
from proxlearn.scale.sizes import Size

HINTS = {("A", 3): "(m, n) or (B, m, n)", ("b", 2): "rows of a batch, (B, m)"}
HINTS |= {("b", 3): "a column for each target, (B, m, T)"}
"""What is expected of an array with so many axes."""


@dataclass(frozen=True)
class Problems:
    """Arrays of problems, whose shapes fit together; their numbers are checked chunk by chunk."""

    settings: Settings
    arrays: dict[str, Any]
    own: frozenset[str]
    """Names of the arrays that have an entry a problem."""
    count: int
    lazy: bool
    """True where some arrays are Dask arrays."""

    @classmethod
    def of(cls, settings: Settings, A: Any, b: Any, options: dict[str, Any]) -> "Problems":
        """Make problems of arrays; refuses arrays whose number or shapes are wrong."""
        needs, takes = options_of(settings.kind)
        given = {"A": A, **options, **({} if b is None else {"b": b})}
        for name in needs:
            if name not in given:
                raise InputError(f"{name} is missing; {settings.kind!r} problems need it")
        for name in options:
            if name not in needs + takes:
                raise InputError(f"{settings.kind!r} problems were given {name}; leave it out")
        lazy = any(is_dask(value) for value in given.values())
        arrays = {k: v if is_dask(v) or _is_sparse(v) else np.asarray(v) for k, v in given.items()}
        count, own = fitted(
            settings.kind, {name: value.shape for name, value in arrays.items()}
        )  # fmt: skip
        axes = axes_of(settings.kind)
        for name, value in arrays.items():
            if value.ndim == axes[name] and name not in own:
                arrays[name] = value[0]
        return cls(settings, arrays, own, count, lazy)

    @property
    def width(self) -> int:
        """The length of x."""
        classes = int(self.arrays.get("classes", 1))
        return width_of(self.settings.kind, self.arrays["A"].shape, self.arrays["b"].shape, classes)

    @property
    def precision(self) -> str:
        """The precision of x."""
        return self.settings.dtype or precision_of(np.dtype(self.arrays["A"].dtype))

    @property
    def size(self) -> Size:
        """The size of the problems, for estimates of time and memory."""
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


def width_of(kind: str, A: tuple[int, ...], b: tuple[int, ...], classes: int = 1) -> int:
    """The length of x, from the shapes of A and b and the number of classes."""
    return int(A[-1]) * classes * (int(b[-1]) if kind == MULTITASK else 1)


def _plain(name: str, value: Any) -> Any:
    return int(value) if name in WHOLE else value


def fitted(
    kind: str, shapes: dict[str, tuple[int, ...]], where: str = ""
) -> tuple[int, frozenset[str]]:
    """The number of problems, and the names of the arrays that have an entry for each of them.

    Refuses shapes that do not fit together, with a line that begins with `where`.
    """
    counts, axes = {}, axes_of(kind)
    for name, shape in shapes.items():
        if len(shape) not in (axes[name] - 1, axes[name] - (name in SHARED)):
            hint = HINTS.get((name, axes[name]), "one for all, or one a problem")
            raise InputError(f"{where}{name} has shape {shape}; expected {hint}")
        if len(shape) == axes[name]:
            counts[name] = shape[0]
    if any(count != count for count in counts.values()):
        raise InputError("b has chunks of unknown size; call b.compute_chunk_sizes() first")
    A, b = shapes["A"], shapes["b"]
    if 0 in A[-2:] or b[-1] == 0:
        name, empty = ("A", A) if 0 in A[-2:] else ("b", b)
        raise InputError(f"{where}{name} has shape {empty}; expected at least one row and column")
    if A[-2] != b[1 - axes["b"]]:
        expected = f"(B, {A[-2]}, {b[-1]})" if kind == MULTITASK else f"(B, {A[-2]})"
        raise InputError(f"{where}A has shape {A} and b {b}; expected {expected} for b")
    several = {name: count for name, count in counts.items() if count != 1}
    if len(set(several.values())) > 1:
        given = " and ".join(f"{name} has {count}" for name, count in several.items())
        raise InputError(f"{where}{given} problems; expected as many, or one")
    count = next(iter(several.values()), 1)
    if count == 0:
        raise InputError(f"{where}the arrays hold no problems; give at least one")
    return count, frozenset(several)


def precision_of(dtype: np.dtype[Any]) -> str:
    """The precision of the answers, which is that of A."""
    return "float32" if dtype.kind == "f" and dtype.itemsize <= 4 else "float64"


def is_dask(value: Any) -> bool:
    """True for a collection of Dask."""
    return hasattr(value, "__dask_graph__")


def _is_sparse(value: Any) -> bool:
    return bool(scipy.sparse.issparse(value))
