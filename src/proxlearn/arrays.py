"""Third-party arrays become tensors here and nowhere else, validated."""

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.operators import Dense, MatrixFree, Operator, Sparse
from proxlearn.problem import Problem


def to_tensor(name: str, value: Any) -> Tensor:
    """A finite floating-point tensor of anything array-like.

    Integers and booleans become float64, half precision float32.
    """
    if isinstance(value, np.ma.MaskedArray) and value.mask.any():
        raise InputError(f"{name} has masked entries; expected a number everywhere: fill them")
    if not isinstance(value, Tensor):
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise InputError(f"{name} is not a rectangular array of numbers ({error})") from None
        if array.dtype.kind not in "fiub":
            raise InputError(
                f"{name} has dtype {array.dtype}; expected real numbers (float or integer)"
            )
        native = np.dtype(np.float64) if array.dtype.itemsize > 8 else array.dtype.newbyteorder("=")
        # A copy only where torch needs one: strides it cannot take, or memory it may not write.
        usable = all(stride >= 0 for stride in array.strides) and array.flags.writeable
        array = array.astype(native, order="C", copy=not usable)
        value = torch.from_numpy(array)
    if value.layout != torch.strided:
        raise InputError(f"{name} is sparse; expected a dense array: only A may be sparse")
    if value.is_complex():
        raise InputError(f"{name} has dtype {value.dtype}; expected real numbers")
    if not value.is_floating_point():
        value = value.double()
    elif value.dtype not in (torch.float32, torch.float64):
        value = value.float()
    return require_finite(name, value)


def require_finite(name: str, value: Tensor) -> Tensor:
    """The tensor itself, if it holds neither NaN nor infinity."""
    # The extremes, in one pass without a copy: NaN and infinity are among them.
    if value.numel() and not all(bool(v.isfinite()) for v in torch.aminmax(value.detach())):
        bad = ~torch.isfinite(value)
        raise InputError(
            f"{name} holds {int(bad.sum())} values that are NaN or infinite; "
            "expected finite numbers: remove or impute them"
        )
    return value


def to_operator(name: str, value: Any) -> Operator:
    """An operator of a dense array (m, n) or (B, m, n), a sparse matrix, or a matvec object."""
    if isinstance(value, Operator):
        return value
    if scipy.sparse.issparse(value):
        return _from_scipy(name, value)
    if isinstance(value, Tensor) and value.layout != torch.strided:
        return _from_torch_sparse(name, value)
    if hasattr(value, "matvec") and hasattr(value, "rmatvec"):
        if len(getattr(value, "shape", ())) != 2:
            raise InputError(f"{name} has matvec and rmatvec but no shape (m, n); give it one")
        operator = _nonempty(name, MatrixFree(value, dtype=_real_dtype(name, value)))
        _check_adjoint(name, operator)
        return operator
    tensor = to_tensor(name, value)
    if tensor.ndim not in (2, 3):
        raise InputError(
            f"{name} has shape {tuple(tensor.shape)}; expected (m, n), or (B, m, n) for a batch"
        )
    if tensor.ndim == 3 and tensor.shape[0] == 0:
        raise InputError(f"{name} has shape {tuple(tensor.shape)}: an empty batch; give a problem")
    return _nonempty(name, Dense(tensor))


def check_device(device: str) -> None:
    """Refuses a device that this PyTorch cannot compute on: tries a sum there."""
    try:
        fine = float(torch.ones(2, device=device).sum()) == 2
    except Exception:  # each kind of device fails in its own way
        fine = False
    if not fine:
        raise InputError(
            f"device {device!r} is not available to this PyTorch; use 'cpu', or install a "
            "PyTorch built for it"
        )


def in_precision(name: str, A: Operator, dtype: torch.dtype | None, device: str) -> Operator:
    """A in another precision and on a device, if the precision can hold its numbers."""
    target = A.dtype if dtype is None else dtype
    moved = A.convert(target, device)
    if target != A.dtype and isinstance(moved, (Dense, Sparse)):
        values = moved.A if isinstance(moved, Dense) else moved.A.values()
        if not bool(values.isfinite().all()):
            raise InputError(
                f"{name} holds numbers that are infinite in {target}; "
                "scale the problem, or solve it in float64"
            )
    return moved


def _check_adjoint(name: str, A: Operator) -> None:
    """<A x, r> = <x, A^T r> for random x and r: one product with each."""
    generator = torch.Generator().manual_seed(0)
    x, r = (torch.randn(1, size, generator=generator, dtype=A.dtype) for size in A.shape[::-1])
    z, g = A.forward(x), A.adjoint(r)
    left, right = float((z * r).sum()), float((x * g).sum())
    size = max(float(z.norm() * r.norm()), float(x.norm() * g.norm()))
    if math.isfinite(size) and not abs(left - right) <= 1e-3 * size:
        raise InputError(
            f"{name}'s rmatvec is not the adjoint of its matvec: <A x, r> is {left:.6g} and "
            f"<x, A^T r> is {right:.6g} for the same x and r; correct one of them"
        )


def _real_dtype(name: str, value: Any) -> torch.dtype:
    dtype = np.dtype(getattr(value, "dtype", None) or np.float64)
    if dtype.kind == "c":
        raise InputError(f"{name} has dtype {dtype}; expected real numbers")
    return torch.float32 if dtype == np.float32 else torch.float64


def _from_scipy(name: str, value: Any) -> Operator:
    _require_matrix(name, value.shape)
    csr = value.tocsr()
    if not csr.has_canonical_format:
        csr = csr.copy()  # the caller's own matrix stays as it is
        csr.sum_duplicates()
    values = to_tensor(name, csr.data)
    with warnings.catch_warnings():  # torch announces its CSR support as beta, once a process
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        A = torch.sparse_csr_tensor(
            torch.from_numpy(csr.indptr.astype(np.int64)),
            torch.from_numpy(csr.indices.astype(np.int64)),
            values,
            size=csr.shape,
            check_invariants=True,
        )
    return _nonempty(name, Sparse(A))


def _from_torch_sparse(name: str, value: Tensor) -> Operator:
    _require_matrix(name, value.shape)
    coo = value.to_sparse_coo().coalesce()
    A = torch.sparse_coo_tensor(
        coo.indices(), to_tensor(name, coo.values()), coo.shape, check_invariants=True
    )
    return _nonempty(name, Sparse(A.coalesce()))


def _require_matrix(name: str, shape: Sequence[int]) -> None:
    if len(shape) != 2:
        raise InputError(
            f"{name} is sparse with shape {tuple(shape)}; expected one sparse matrix (m, n)"
        )


def _nonempty(name: str, A: Operator) -> Operator:
    if 0 in A.shape:
        raise InputError(f"{name} has shape {A.shape}; expected at least one row and one column")
    return A


def to_rows(name: str, value: Any, width: int, like: Operator) -> Tensor:
    """A (B, width) tensor of a vector (width,) or of rows (B, width), with the precision of A."""
    tensor = to_tensor(name, value)
    given = tuple(tensor.shape)
    if tensor.ndim == 1:
        tensor = tensor[None]
    if tensor.ndim != 2 or tensor.shape[1] != width or not len(tensor):
        hint = "; is it transposed?" if tensor.ndim == 2 and tensor.shape[0] == width else ""
        raise InputError(
            f"{name} has shape {given}; expected ({width},) to match A with shape {like.shape}, "
            f"or (B, {width}) for a batch{hint}"
        )
    return _as(name, tensor, like)


def _as(name: str, tensor: Tensor, like: Operator) -> Tensor:
    """The tensor in A's precision and on its device, if it can hold the numbers."""
    moved = tensor.to(dtype=like.dtype, device=like.device)
    if moved.dtype != tensor.dtype and not bool(moved.isfinite().all()):
        raise InputError(
            f"{name} holds {float(tensor.abs().max()):g}, which is infinite in A's precision, "
            f"{like.dtype}; scale the problem, or give A in float64"
        )
    return moved


def to_positive(name: str, value: Any, like: Operator, at_least: float | None = None) -> Tensor:
    """A (B,) tensor of positive numbers, of a number or one number an instance."""
    try:
        tensor = to_tensor(name, value)
    except InputError:
        tensor = torch.tensor(float("nan"))
    tensor = tensor[None] if tensor.ndim == 0 else tensor
    low = tensor <= 0 if at_least is None else tensor < at_least
    if tensor.ndim != 1 or not len(tensor) or bool(low.any()) or bool(tensor.isnan().any()):
        bound = "> 0" if at_least is None else f">= {at_least:g}"
        given = " ".join(str(value).split())  # an array's text has several lines
        given = given if len(given) <= 60 else f"{given[:57]}..."
        raise InputError(f"{name} is {given}; expected a number {bound}, or one an instance (B,)")
    moved = _as(name, tensor, like)
    if at_least is None and bool((moved <= 0).any()):
        raise InputError(
            f"{name} is {float(tensor.min()):g}, which is 0 in A's precision, {like.dtype}; "
            "scale the problem, or give A in float64"
        )
    return moved


def to_weights(name: str, value: Any, width: int, like: Operator) -> Tensor | None:
    """Non-negative weights (B, width) or (1, width), or None."""
    if value is None:
        return None
    weights = to_rows(name, value, width, like)
    if bool((weights < 0).any()):
        raise InputError(f"{name} has negative entries; expected weights >= 0")
    return weights


def start_point(problem: Problem, x0: Any) -> Tensor:
    """x0 as (B, n) in the problem's precision; the penalty's own minimiser nearest 0 by default."""
    B, n = problem.batch, problem.n
    if x0 is None:
        zero = torch.zeros(B, n, dtype=problem.dtype, device=problem.device)
        return problem.r.prox(zero, torch.ones_like(zero[:, :1]))
    start = to_tensor("x0", x0).to(dtype=problem.dtype, device=problem.device)
    if start.shape not in [(n,), (1, n), (B, n)]:
        raise InputError(f"x0 has shape {tuple(start.shape)}; expected ({n},) or ({B}, {n})")
    return start.expand(B, n).clone()
