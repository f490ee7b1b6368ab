"""Validation of the arrays that users give, above all A. They keep their library and their type.

NumPy arrays and SciPy matrices are checked without PyTorch; tensors stay tensors. What goes with A,
such as b and lam, is validated in `proxlearn.problems.vectors`. Conversions from one library to the
other are in `proxlearn.problems.tensors`.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from proxlearn.core import kernel
from proxlearn.errors import InputError, needing_torch

if TYPE_CHECKING:
    from proxlearn.problems.operators import Operator

PRECISIONS = (np.dtype(np.float32), np.dtype(np.float64))

LONGEST = 2**31
"""Most rows and columns of a sparse matrix; a vector of that length has 16 GiB in float64."""


def is_tensor(value: Any) -> bool:
    """True for a tensor of PyTorch, which is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def to_numpy(value: Any) -> Any:
    """A tensor as a NumPy array, which shares the memory of the CPU; other values unchanged."""
    return value.detach().cpu().numpy() if is_tensor(value) else value


def to_array(name: str, value: Any) -> Any:
    """Convert anything array-like to a finite floating-point array, a tensor only if it was one.

    Integers and booleans become float64, half precision becomes float32.
    """
    return require_finite(name, to_floats(name, value))


def to_floats(name: str, value: Any) -> Any:
    """Convert as `to_array` does, without refusing numbers that are not finite."""
    if type(value) is np.ndarray and value.dtype in PRECISIONS:
        return value
    if is_tensor(value):
        from proxlearn.problems.tensors import floating

        return floating(name, value)
    if isinstance(value, np.ma.MaskedArray) and value.mask.any():
        raise InputError(f"{name} has masked entries; expected a number everywhere: fill them")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InputError(f"{name} is not a rectangular array of numbers ({error})") from None
    if array.dtype.kind not in "fiub":
        raise InputError(
            f"{name} has dtype {array.dtype}; expected real numbers (float or integer)"
        )
    return array.astype(_precision(array.dtype), copy=False)


def _precision(dtype: Any) -> Any:
    """The precision in which numbers are kept: float32 for short floats, else float64."""
    return PRECISIONS[0 if dtype.kind == "f" and dtype.itemsize <= 4 else 1]


def require_finite(name: str, value: Any) -> Any:
    """The array itself, if it holds neither NaN nor infinity. One pass, and no copy."""
    if not all_finite(value):
        bad = int((~np.isfinite(to_numpy(value))).sum())
        raise InputError(
            f"{name} holds {bad} values that are NaN or infinite; "
            "expected finite numbers: remove or impute them"
        )
    return value


def all_finite(value: Any) -> bool:
    """True where an array or tensor holds neither NaN nor infinity."""
    if 0 in value.shape:
        return True
    if is_tensor(value):
        from proxlearn.problems import tensors

        return tensors.all_finite(value)
    if math.isfinite(kernel.largest_magnitude(value)):
        return True
    return bool(np.isfinite(value.min()) and np.isfinite(value.max()))


@dataclass(eq=False)
class Matrix:
    """The validated matrix A as the user gave it, for one problem or for many."""

    values: Any
    """NumPy array or tensor (m, n) or (B, m, n), SciPy matrix by columns, or an `Operator`."""
    shape: tuple[int, int]
    """(m, n)"""
    batch: int
    """Number of instances, 1 where all instances of a problem share A."""
    from_tensors: bool
    """True where A came as a tensor or an `Operator`: then answers are tensors."""
    largest: float | None = None
    """The largest magnitude of its entries, where the validation has found it."""
    products: Any = None
    """A^T b (n,) for the b that `to_matrix` was given, where the same pass has found it."""

    @property
    def dtype(self) -> Any:
        """A dtype of NumPy, or of PyTorch where tensors hold the numbers."""
        return self.values.dtype

    @property
    def precision(self) -> str:
        """float32 or float64."""
        return "float32" if self.dtype.itemsize == 4 else "float64"

    @property
    def in_numpy(self) -> bool:
        """True where NumPy or SciPy arrays hold the numbers."""
        return isinstance(self.values, np.ndarray) or scipy.sparse.issparse(self.values)

    @cached_property
    def operator(self) -> "Operator":
        """A for PyTorch, made when it is first needed; shares the memory of a dense array."""
        from proxlearn.problems.tensors import operator_of

        return operator_of(self.values)

    @property
    def array(self) -> Any:
        """A as a NumPy array or SciPy matrix by columns; None where its entries are elsewhere."""
        return self.values if self.in_numpy else self._array_of_operator

    @cached_property
    def _array_of_operator(self) -> Any:
        return self.operator.array()

    def cast(self, value: Any) -> Any:
        """An array or tensor in the library, precision and place of A."""
        if self.in_numpy:
            return np.asarray(to_numpy(value), dtype=self.dtype)
        from proxlearn.problems.tensors import as_tensor

        return as_tensor(value).to(dtype=self.dtype, device=self.values.device)

    def in_precision(self, name: str, dtype: str | None, device: str = "cpu") -> "Matrix":
        """A in another precision and on a device, if the precision can hold its numbers."""
        if device != "cpu":
            with needing_torch(f"device {device!r}"):
                from proxlearn.problems.tensors import in_precision

            moved = in_precision(name, self.operator, dtype, device)
            return Matrix(moved, self.shape, self.batch, self.from_tensors)
        if dtype is None or dtype == self.precision:
            return self
        if not self.in_numpy:
            from proxlearn.problems.tensors import in_precision

            moved = in_precision(name, self.operator, dtype, device)
            return Matrix(moved, self.shape, self.batch, self.from_tensors)
        with np.errstate(over="ignore"):
            values = self.values.astype(dtype)
        entries = values.data if scipy.sparse.issparse(values) else values
        if not all_finite(entries):
            raise InputError(
                f"{name} holds numbers that are infinite in {dtype}; "
                "scale the problem, or solve it in float64"
            )
        return Matrix(values, self.shape, self.batch, self.from_tensors)


def to_matrix(name: str, value: Any, b: Any = None) -> Matrix:
    """A dense array (m, n) or (B, m, n), a sparse matrix, or an object with matvec, validated.

    With a b (m,) the pass over a dense A that looks for NaN computes A^T b as well.
    """
    if type(value) is Matrix:
        return value
    if type(value) is np.ndarray:
        found = None if b is None else kernel.largest_and_products(value, b)
        if found is not None:
            return Matrix(value, value.shape, 1, False, *found)
        return _dense(name, value)
    if scipy.sparse.issparse(value):
        return _nonempty(name, Matrix(_sparse(name, value), tuple(value.shape), 1, False))
    operators = sys.modules.get("proxlearn.problems.operators")
    if operators is not None and isinstance(value, operators.Operator):
        return Matrix(value, value.shape, value.batch, True)
    if is_tensor(value) and str(value.layout) != "torch.strided":
        from proxlearn.problems.tensors import sparse_operator

        _require_matrix(name, value.shape)
        return _nonempty(name, Matrix(sparse_operator(name, value), tuple(value.shape), 1, True))
    if hasattr(value, "matvec") and hasattr(value, "rmatvec"):
        if len(getattr(value, "shape", ())) != 2:
            raise InputError(f"{name} has matvec and rmatvec but no shape (m, n); give it one")
        with needing_torch("an A that is given by its products"):
            from proxlearn.problems.tensors import matrix_free

        shape = (int(value.shape[0]), int(value.shape[1]))
        _require_nonempty(name, shape)
        return Matrix(matrix_free(name, value), shape, 1, False)
    return _dense(name, value)


def _dense(name: str, value: Any) -> Matrix:
    """A dense array (m, n) or (B, m, n), validated."""
    if isinstance(value, np.ndarray) and type(value) is not np.ndarray:
        value = to_floats(name, value)  # masked arrays hide entries, `matrix` has other products
    largest = kernel.largest_magnitude(value) if type(value) is np.ndarray else math.nan
    if not largest < math.inf:
        value, largest = to_array(name, value), None
    shape = tuple(value.shape)
    if len(shape) not in (2, 3):
        raise InputError(f"{name} has shape {shape}; expected (m, n), or (B, m, n) for a batch")
    if len(shape) == 3 and shape[0] == 0:
        raise InputError(f"{name} has shape {shape}: an empty batch; give a problem")
    batch = shape[0] if len(shape) == 3 else 1
    _require_nonempty(name, shape[-2:])
    return Matrix(value, shape[-2:], batch, largest is None and is_tensor(value), largest)


def _sparse(name: str, value: Any) -> Any:
    """By columns, without duplicates, in float32 or float64; the caller's matrix stays as it is."""
    _require_matrix(name, value.shape)
    if value.dtype.kind not in "fiub":
        raise InputError(
            f"{name} has dtype {value.dtype}; expected real numbers (float or integer)"
        )
    try:
        if hasattr(value, "check_format"):  # otherwise memory outside the matrix would be read
            value.check_format(full_check=True)
    except ValueError as error:
        raise InputError(f"{name} is not a valid sparse matrix ({error})") from None
    columns = value.tocsc()
    if not columns.has_canonical_format:
        columns = columns.copy() if columns is value else columns
        columns.sum_duplicates()
    columns = columns.astype(_precision(columns.dtype), copy=False)
    require_finite(name, columns.data)
    return columns


def _require_matrix(name: str, shape: Sequence[int]) -> None:
    if len(shape) != 2:
        raise InputError(
            f"{name} is sparse with shape {tuple(shape)}; expected one sparse matrix (m, n)"
        )
    if max(shape) > LONGEST:
        raise InputError(
            f"{name} is sparse with shape {tuple(shape)}; expected at most {LONGEST} rows and "
            "columns: leave out the empty ones"
        )


def _nonempty(name: str, A: Matrix) -> Matrix:
    _require_nonempty(name, A.shape)
    return A


def _require_nonempty(name: str, shape: tuple[int, int]) -> None:
    if 0 in shape:
        raise InputError(f"{name} has shape {shape}; expected at least one row and one column")
