"""Validation of what belongs to A: b, numbers such as lam, weights and starts.

It becomes rows in the library and precision of A, which `proxlearn.problems.arrays` has validated.
"""

import math
from typing import Any

import numpy as np

from proxlearn.core import kernel
from proxlearn.errors import InputError
from proxlearn.problems.arrays import Matrix, all_finite, to_array, to_matrix, to_numpy


def to_rows(name: str, value: Any, width: int, like: Any) -> Any:
    """Rows (B, width) of a vector (width,) or of rows (B, width), in A's library and precision.

    A is the matrix or the operator `like`.
    """
    like = like if type(like) is Matrix else to_matrix("A", like)
    if kernel.is_finite_vector(value, width, like.dtype):
        return value[None]
    array = to_array(name, value)
    given = tuple(array.shape)
    if array.ndim == 1:
        array = array[None]
    if array.ndim != 2 or array.shape[1] != width or not len(array):
        hint = "; is it transposed?" if array.ndim == 2 and array.shape[0] == width else ""
        raise InputError(
            f"{name} has shape {given}; expected ({width},) to match A with shape {like.shape}, "
            f"or (B, {width}) for a batch{hint}"
        )
    return _as(name, array, like)


def to_tasks(name: str, value: Any, like: Matrix) -> Any:
    """Targets (B, m, T) of a matrix (m, T) or of (B, m, T), in A's library and precision."""
    array, m = to_array(name, value), like.shape[0]
    given = tuple(array.shape)
    array = array[None] if array.ndim == 2 else array
    if array.ndim != 3 or array.shape[1] != m or 0 in array.shape:
        raise InputError(
            f"{name} has shape {given}; expected ({m}, T), a column for each of T targets, to match"
            f" A with shape {like.shape}, or (B, {m}, T) for a batch"
        )
    return _as(name, array, like)


def _as(name: str, array: Any, like: Matrix) -> Any:
    """The array in A's library, precision and place, if the precision can hold the numbers."""
    if like.in_numpy and isinstance(array, np.ndarray) and array.dtype == like.dtype:
        return array
    with np.errstate(over="ignore"):
        moved = like.cast(array)
    if moved.dtype.itemsize != array.dtype.itemsize and not all_finite(moved):
        raise InputError(
            f"{name} holds {float(abs(array).max()):g}, which is infinite in A's precision, "
            f"{like.precision}; scale the problem, or give A in float64"
        )
    return moved


def to_positive(name: str, value: Any, like: Any, at_least: float | None = None) -> Any:
    """Positive numbers (B,) of a number or one number an instance, in A's library and precision."""
    like = like if type(like) is Matrix else to_matrix("A", like)
    if isinstance(value, float) and 0.0 < value < math.inf and like.dtype == np.float64:
        return np.array([value])
    try:
        array = to_array(name, value)
    except InputError:
        array = np.array(np.nan)
    array = array[None] if array.ndim == 0 else array
    low = array <= 0 if at_least is None else array < at_least
    if array.ndim != 1 or not len(array) or bool(low.any()) or bool((array != array).any()):
        bound = "> 0" if at_least is None else f">= {at_least:g}"
        given = " ".join(str(value).split())  # the text of an array may have several lines
        given = given if len(given) <= 60 else f"{given[:57]}..."
        raise InputError(f"{name} is {given}; expected a number {bound}, or one an instance (B,)")
    moved = _as(name, array, like)
    if at_least is None and bool((moved <= 0).any()):
        raise InputError(
            f"{name} is {float(array.min()):g}, which is 0 in A's precision, {like.precision}; "
            "scale the problem, or give A in float64"
        )
    return moved


def to_weights(name: str, value: Any, width: int, like: Any) -> Any:
    """Non-negative weights (B, width) or (1, width), or None."""
    if value is None:
        return None
    weights = to_rows(name, value, width, like)
    if bool((weights < 0).any()):
        raise InputError(f"{name} has negative entries; expected weights >= 0")
    return weights


def to_start(x0: Any, batch: int, n: int, precision: str) -> Any:
    """A start (n,), (1, n) or (B, n) in a NumPy array of this precision, validated."""
    start = to_array("x0", x0)
    if tuple(start.shape) not in [(n,), (1, n), (batch, n)]:
        raise InputError(f"x0 has shape {tuple(start.shape)}; expected ({n},) or ({batch}, {n})")
    with np.errstate(over="ignore"):
        start = to_numpy(start).astype(precision, copy=False)
    if not all_finite(start):
        raise InputError(
            f"x0 holds numbers that are infinite in the problem's precision, {precision}; "
            "scale it, or solve the problem in float64"
        )
    return start
