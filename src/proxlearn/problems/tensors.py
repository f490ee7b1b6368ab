"""Conversion of validated arrays to the tensors and operators that PyTorch computes with."""

import math
import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.problems.arrays import to_array
from proxlearn.problems.operators import Dense, MatrixFree, Operator, Sparse
from proxlearn.problems.problem import Problem
from proxlearn.problems.vectors import to_start


def to_tensor(name: str, value: Any) -> Tensor:
    """A finite floating-point tensor of anything array-like, see `to_array`."""
    return as_tensor(to_array(name, value))


def as_tensor(array: Any) -> Tensor:
    """A NumPy array as a tensor; a copy only where PyTorch cannot use its memory."""
    if isinstance(array, Tensor):
        return array
    # PyTorch takes no negative strides, and would write to memory that is read-only.
    usable = all(stride >= 0 for stride in array.strides) and array.flags.writeable
    return torch.from_numpy(array if usable else array.copy(order="C"))


def floating(name: str, value: Tensor) -> Tensor:
    """A dense tensor in float32 or float64: integers and booleans become float64."""
    if value.layout != torch.strided:
        raise InputError(f"{name} is sparse; expected a dense array: only A may be sparse")
    if value.is_complex():
        raise InputError(f"{name} has dtype {value.dtype}; expected real numbers")
    if not value.is_floating_point():
        return value.double()
    return value if value.dtype in (torch.float32, torch.float64) else value.float()


def all_finite(value: Tensor) -> bool:
    """True where a tensor holds neither NaN nor infinity; its extremes show both."""
    return all(bool(v.isfinite()) for v in torch.aminmax(value.detach()))


def operator_of(values: Any) -> Operator:
    """The operator of a validated matrix: a dense array or tensor, or SciPy's by columns."""
    if isinstance(values, Operator):
        return values
    if isinstance(values, (Tensor, np.ndarray)):
        return Dense(as_tensor(values))
    rows = values.tocsr()
    return Sparse(_csr(rows), _csr(values.T))


def _csr(A: Any) -> Tensor:
    with warnings.catch_warnings():  # once a process: CSR support is in beta state
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            torch.from_numpy(A.indptr.astype(np.int64)),
            torch.from_numpy(A.indices.astype(np.int64)),
            as_tensor(A.data),
            size=A.shape,
            check_invariants=True,
        )


def sparse_operator(name: str, value: Tensor) -> Operator:
    """The operator of a sparse tensor (m, n) of any layout, validated."""
    coo = value.to_sparse_coo().coalesce()
    A = torch.sparse_coo_tensor(
        coo.indices(), to_tensor(name, coo.values()), coo.shape, check_invariants=True
    )
    return Sparse(A.coalesce())


def matrix_free(name: str, value: Any) -> Operator:
    """The operator of an object with matvec, rmatvec and shape (m, n)."""
    dtype = np.dtype(getattr(value, "dtype", None) or np.float64)
    if dtype.kind == "c":
        raise InputError(f"{name} has dtype {dtype}; expected real numbers")
    real = torch.float32 if dtype == np.float32 else torch.float64
    operator = MatrixFree(value, dtype=real)
    check_adjoint(name, operator)
    return operator


def check_adjoint(name: str, A: Operator) -> None:
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


def check_device(device: str) -> None:
    """Refuses a device that this PyTorch cannot compute on: tries a sum there."""
    try:
        fine = float(torch.ones(2, device=device).sum()) == 2
    except Exception:  # devices fail with different types of errors
        fine = False
    if not fine:
        raise InputError(
            f"device {device!r} is not available to this PyTorch; use 'cpu', or install a "
            "PyTorch built for it"
        )


def in_precision(name: str, A: Operator, dtype: str | None, device: str) -> Operator:
    """A in another precision and on a device, if the precision can hold its numbers."""
    check_device(device)
    target = A.dtype if dtype is None else getattr(torch, dtype)
    moved = A.convert(target, device)
    if target != A.dtype and isinstance(moved, (Dense, Sparse)):
        values = moved.A if isinstance(moved, Dense) else moved.A.values()
        if not bool(values.isfinite().all()):
            raise InputError(
                f"{name} holds numbers that are infinite in {dtype}; "
                "scale the problem, or solve it in float64"
            )
    return moved


def start_point(problem: Problem, x0: Any) -> Tensor:
    """x0 as (B, n) in the problem's precision; the penalty's own minimiser nearest 0 by default."""
    B, n = problem.batch, problem.n
    if x0 is None:
        return problem.nearest_to_zero()
    precision = str(problem.dtype).removeprefix("torch.")
    start = as_tensor(to_start(x0, B, n, precision)).to(device=problem.device)
    return start.expand(B, n).clone()
