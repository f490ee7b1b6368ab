"""Solves a chunk of problems, to the same bits however the problems are divided into chunks.

This module runs on the workers. The compiled core covers all kinds of problems, so that no worker
imports PyTorch.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from proxlearn import names
from proxlearn.checks import check_choice, check_limits
from proxlearn.core.glm import STATUSES, Part
from proxlearn.errors import InputError
from proxlearn.problems import constructors
from proxlearn.problems.arrays import Matrix, to_matrix
from proxlearn.problems.problem import Problem
from proxlearn.solving.exact import solve_exactly
from proxlearn.solving.solution import Solution

Array = npt.NDArray[Any]
Results = dict[str, Array]
"""The arrays of `FIELDS` by name."""

FIELDS: dict[str, str | None] = {
    "x": None, "objective": "float64", "gap": "float64", "status": "int8", "iterations": "int32"
}  # fmt: skip
"""What a solve of many problems returns, with its type; x has the precision of A."""

MULTITASK = "multitask-lasso"
"""The kind whose problems have several targets each: b (B, m, T), and x (B, n T) row by row."""

KINDS = {
    ("squares", "l1"): "lasso",
    ("squares", "elastic-net"): "elastic-net",
    ("squares", "non-negative"): "nnls",
    ("squares", "simplex"): "simplex-ls",
    ("squares", "group-l1"): "group-lasso",
    ("squares", "row-l1"): MULTITASK,
    ("squares", "sparse-group-l1"): "sparse-group-lasso",
    ("huber", "l1"): "huber",
    ("logistic", "l1"): "logistic",
    ("poisson", "l1"): "poisson",
    ("softmax", "l1"): "softmax",
}
"""The kind of problem, by its loss and its penalty."""

AXES = {"A": 3, "b": 2, "weights": 2, "groups": 2, "l1_weights": 2}
AXES |= dict.fromkeys(["lam", "lam2", "delta", "radius", "l1_ratio", "classes", "at_most"], 1)
"""Dimensions of an array that has an entry a problem; with one less it is shared by all."""


def axes_of(kind: str) -> dict[str, int]:
    """`AXES` for a kind of problem."""
    return {**AXES, "b": 3} if kind == MULTITASK else AXES


WHOLE = ("classes", "at_most")
"""Whole numbers of the constructors."""

SHARED = ("groups", *WHOLE)
"""Never one a problem."""


def options_of(kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What problems of this kind need beside A, and what they may have too."""
    needs, takes = ("b", *names.KINDS[kind].needs), names.KINDS[kind].takes
    if kind == "softmax":
        needs = (*needs, "classes")  # a chunk may lack some, and its x would be shorter
    if kind == "simplex-ls":
        takes = (*takes, "at_most")
    return needs, takes


@dataclass(frozen=True)
class Settings:
    """What the answers depend on beside the arrays."""

    kind: str
    tol: float = 1e-6
    max_iter: int = 1000
    dtype: str | None = None

    def check(self) -> None:
        """Refuse settings that are wrong whatever the arrays hold."""
        check_choice("kind of problem", self.kind, names.KINDS)
        if self.dtype is not None:
            check_choice("dtype", self.dtype, names.DTYPES)
        check_limits(self.tol, self.max_iter)
        if self.tol == 0 or self.max_iter == 0:
            raise InputError(
                f"tol is {self.tol:g} and max_iter {self.max_iter}; expected both to be > 0"
            )


@dataclass
class SharedMatrix:
    """One A for all problems, validated, with what was computed from it alone.

    A copy that Dask sends to another worker carries A only: the rest is computed there, once.
    """

    matrix: Matrix
    kept: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, A: Any, dtype: str | None) -> "SharedMatrix":
        """A (m, n), dense or sparse, in the precision asked for."""
        return cls(to_matrix("A", _in_order(A)).in_precision("A", dtype))

    def __reduce__(self) -> Any:
        return _arrived, (self.matrix,)

    def __sizeof__(self) -> int:
        """For Dask, which weighs what a worker holds."""
        values = self.matrix.values
        return int(values.data.nbytes if hasattr(values, "indptr") else values.nbytes)


def _in_order(value: Any) -> Any:
    """An array in C order at an aligned address, where BLAS gives the same bits everywhere."""
    if scipy.sparse.issparse(value):
        if not hasattr(value, "indptr"):
            return value
        parts = (value.data, value.indices, value.indptr)
        return type(value)(tuple(map(_in_order, parts)), shape=value.shape)
    if isinstance(value, np.ndarray) and value.ndim:
        return np.require(value, requirements=["C_CONTIGUOUS", "ALIGNED"])
    return value


def _arrived(matrix: Matrix) -> SharedMatrix:
    """A that Dask has sent, copied to an aligned address, which a message need not have."""
    return SharedMatrix(replace(matrix, values=_in_order(matrix.values)))


def solve_chunk(
    settings: Settings, arrays: dict[str, Any], own: frozenset[str], count: int, total: int
) -> Results:
    """Solve a chunk of problems.

    Parameters
    ----------
    settings : Settings
    arrays : dict
        A, b and what else the kind's constructor takes. A that all problems share is a
        `SharedMatrix`.
    own : frozenset of str
        The names of the arrays that have an entry for each problem of the chunk.
    count : int
        Number of problems in the chunk.
    total : int
        Number of all problems, of which these are a part.

    Returns
    -------
    dict
        The arrays of `FIELDS`.
    """
    with one_blas_thread():
        arrays = {name: _in_order(value) for name, value in arrays.items()}
        given = arrays
        if count == 1 and total > 1:  # the core treats a single problem in another way
            given = {k: np.repeat(v, 2, axis=0) if k in own else v for k, v in arrays.items()}
        problem, A = _problem(settings, given), arrays["A"]
        part = Part(total, A.kept if isinstance(A, SharedMatrix) else {})
        found = solve_exactly(problem, None, settings.tol, settings.max_iter, None, 1, part)
        return _results(found, count)


def _problem(settings: Settings, arrays: dict[str, Any]) -> Problem:
    options = {name: value for name, value in arrays.items() if name not in ("A", "b")}
    A = arrays["A"]
    shared = A if isinstance(A, SharedMatrix) else SharedMatrix.of(A, settings.dtype)
    build = getattr(constructors, settings.kind.replace("-", "_"))
    b = np.asarray(arrays["b"])
    many = b if b.ndim == axes_of(settings.kind)["b"] else b[None]
    problem: Problem = build(shared.matrix, many, **options)
    return problem


def _results(found: Solution, count: int) -> Results:
    """The arrays of the first `count` problems."""
    status = [STATUSES.index(str(s)) for s in found.status]
    arrays: Results = {"status": np.array(status[:count], dtype=FIELDS["status"])}
    for name, dtype in FIELDS.items():
        if name != "status":
            values = np.asarray(getattr(found, name))[:count]
            arrays[name] = values.astype(dtype or values.dtype, copy=False)
    return {name: arrays[name] for name in FIELDS}


class _Limit:
    """How many solves are under way, and the limit on BLAS that the first of them has set."""

    lock = threading.Lock()
    users = 0
    limiter: Any = None

    @classmethod
    def begin(cls) -> None:
        cls.limiter = _controller().limit(limits=1, user_api="blas")

    @classmethod
    def end(cls) -> None:
        cls.limiter.restore_original_limits()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS compute with one thread while any solve of this process is under way.

    With several threads its sums end in other bits, and the chunks themselves keep all cores busy.
    """
    with _Limit.lock:
        if _Limit.users == 0:
            _in_new_thread(_Limit.begin)
        _Limit.users += 1
    try:
        yield
    finally:
        with _Limit.lock:
            _Limit.users -= 1
            if _Limit.users == 0:
                _in_new_thread(_Limit.end)


def _in_new_thread(function: Callable[[], None]) -> None:
    """Run a function in a thread of its own.

    threadpoolctl lets one thread alone change the limit until that thread ends, and the solve that
    ends last need not run in the thread of the first.
    """
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def kind_of(loss: str, penalty: str) -> str:
    """The kind of problem with this loss and penalty."""
    if (loss, penalty) not in KINDS:
        known = ", ".join(f"{one} with {other}" for one, other in KINDS)
        raise InputError(f"loss {loss!r} with penalty {penalty!r}; expected one of: {known}")
    return KINDS[loss, penalty]
