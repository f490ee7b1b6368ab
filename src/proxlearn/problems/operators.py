"""Linear operators A: one dense matrix, a batch of them, a sparse one, any matvec/rmatvec object.

`forward` maps (B, n) to (B, m) and `adjoint` maps back. Axes between the first and the last are
carried along, (B, C, n) -> (B, C, m): this is how a softmax model applies one A to C classes.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.problems.batch import convert, select
from proxlearn.problems.lanczos import lanczos_norm, positive
from proxlearn.problems.powers import times_power

EXACT_UP_TO = 64
"""Smaller side of A up to which the norm is exact; above it Lanczos with a margin, which for 64
matrices of 250x500 takes the time of 20 gradients where the eigenvalues take that of 80."""


class MatVec(Protocol):
    """What a matrix-free operator must have (scipy's LinearOperator and PyLops do)."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def matvec(self, x: Any) -> Any: ...
    def rmatvec(self, r: Any) -> Any: ...


class Operator(ABC):
    """A linear map of shape (m, n), the same for all instances (`batch` is 1) or one for each."""

    shape: tuple[int, int]
    batch: int = 1
    dtype: torch.dtype
    device: torch.device

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """A x: (B, ..., n) -> (B, ..., m)."""

    @abstractmethod
    def adjoint(self, r: Tensor) -> Tensor:
        """A^T r: (B, ..., m) -> (B, ..., n)."""

    def implicit_residual(
        self, w: Tensor, b: Tensor, gamma: Tensor
    ) -> tuple[Tensor, Tensor] | None:
        """u = (I + gamma A A^T)^-1 (A w - b), (B, m), and A^T u, (B, n), for gamma (B, 1).

        With v = w - gamma A^T u it is the residual A v - b, and v minimises
        1/2 |A v - b|^2 + |v - w|^2 / (2 gamma). None where A has no closed form for it that costs
        about a product with each of A and A^T.
        """
        return None

    @property
    def has_implicit_residual(self) -> bool:
        """True where `implicit_residual` has a closed form."""
        return False

    def without_tasks(self) -> "tuple[Operator, int]":
        """The operator that several tasks share, and their number: itself and 1 by default."""
        return self, 1

    @abstractmethod
    def select(self, index: Tensor) -> "Operator":
        """The operators of the instances `index`; itself where all instances share it."""

    @abstractmethod
    def convert(self, dtype: torch.dtype, device: torch.device | str | None = None) -> "Operator":
        """The same operator in another precision or on another device."""

    def norm(self) -> Tensor:
        """The spectral norm ||A||_2, (batch,): an upper bound, at most 1% above the true value.

        Exact (the largest eigenvalue of the smaller Gram matrix) for dense A with a side of at
        most `EXACT_UP_TO`, otherwise Lanczos with a margin. Computed once, then remembered.
        """
        return self._norm

    @cached_property
    def _norm(self) -> Tensor:
        return lanczos_norm(self)

    @property
    def norm_is_known(self) -> bool:
        """True where `norm` costs nothing."""
        return "_norm" in self.__dict__

    def _remember(self, norm: Tensor) -> "Operator":
        self.__dict__["_norm"] = norm
        return self

    @cached_property
    def remembered(self) -> dict[Any, Any]:
        """What other modules computed from A once: batched objects, sliced and moved with A."""
        return {}

    def _inherit(self, other: "Operator", change: Callable[[Any], Any]) -> None:
        """Take over what `other` remembers, each after `change`: a slice or a move."""
        if "remembered" in other.__dict__:
            self.remembered.update({k: change(v) for k, v in other.remembered.items()})

    @property
    def entries(self) -> int:
        """Multiplications of a product: that many numbers are in A."""
        return self.shape[0] * self.shape[1]

    def largest(self) -> Tensor | None:
        """The largest absolute value of an entry, (batch,); None where entries are not kept."""
        return None

    def times_power(self, e: Tensor) -> "Operator":
        """2^e A with integers e (B,), all the same where all instances share A."""
        raise NotImplementedError

    def numbers(self) -> list[Tensor]:
        """The entries that are kept, (batch, ...)."""
        return []

    def array(self) -> Any:
        """A as a NumPy array or a SciPy matrix by columns, of the same memory.

        None where its entries are not kept, or not on the CPU.
        """
        return None

    def gather(self, index: Tensor) -> Tensor | None:
        """The columns `index` (B, k) of every instance, (B, k, m); None where they are not kept."""
        return None

    def columns(self, index: Tensor) -> "Operator | None":
        """The columns `index` (k,) as an operator; None where columns are not kept."""
        return None

    def column_norms(self) -> Tensor | None:
        """||a_j||, (batch, n); None where columns are not kept."""
        return None

    @property
    def explicit(self) -> bool:
        """True where the entries of A are kept, so that methods can pick columns."""
        return False

    @property
    def nonnegative(self) -> bool:
        """True where no entry is known to be negative, so that power iterations bound the norm."""
        return False

    @property
    def orthogonal(self) -> bool:
        """True where A^T A = A A^T = I."""
        return False

    def groups(self) -> tuple[int, ...]:
        """Sizes of consecutive groups of columns that are alike, such as the bands of wavelets."""
        return (self.shape[1],)

    def row_groups(self) -> tuple[int, ...]:
        """The same for rows: the groups of the adjoint's columns."""
        return (self.shape[0],)

    @property
    def T(self) -> "Operator":
        """The adjoint as an operator."""
        from proxlearn.problems.compose import Adjoint

        return Adjoint([self])

    def __matmul__(self, other: "Operator") -> "Operator":
        """The product with another operator, which is applied first."""
        from proxlearn.problems.compose import Product

        return Product([self, other])

    def __add__(self, other: "Operator") -> "Operator":
        """The sum with another operator of the same shape."""
        from proxlearn.problems.compose import Sum

        return Sum([self, other])


class Dense(Operator):
    """One matrix `A (m, n)` shared by the batch, or a batch of them, `A (B, m, n)`."""

    explicit = True

    def __init__(self, A: Tensor):
        self.A = A[0] if A.ndim == 3 and A.shape[0] == 1 else A
        self.batch = self.A.shape[0] if self.A.ndim == 3 else 1
        self.shape = (self.A.shape[-2], self.A.shape[-1])
        self.dtype, self.device = A.dtype, A.device

    def forward(self, x: Tensor) -> Tensor:
        if self.A.ndim == 2:
            return x @ self.A.T
        if x.ndim == 2:
            return self.forward(x[:, None])[:, 0]
        z: Tensor = _BatchProduct.apply(self.A, x, False)
        return z

    def adjoint(self, r: Tensor) -> Tensor:
        if self.A.ndim == 2:
            return r @ self.A
        if r.ndim == 2:
            return self.adjoint(r[:, None])[:, 0]
        g: Tensor = _BatchProduct.apply(self.A, r, True)
        return g

    @cached_property
    def _norm(self) -> Tensor:
        if min(self.shape) > EXACT_UP_TO:
            return lanczos_norm(self)
        A = self.A if self.A.ndim == 3 else self.A[None]
        scale = positive(A.abs().amax((1, 2)))
        A = A / scale[:, None, None]  # else the squares leave the range of the dtype
        gram = A @ A.mT if self.shape[0] <= self.shape[1] else A.mT @ A
        # The rounding of the Gram matrix must not turn the upper bound into a lower one.
        largest = torch.linalg.eigvalsh(gram)[:, -1] * (1 + 100 * torch.finfo(self.dtype).eps)
        norm: Tensor = largest.clamp(min=0).sqrt() * scale
        return norm

    def select(self, index: Tensor) -> "Dense":
        if self.A.ndim == 2:
            return self
        chosen = Dense(self.A[index])
        if self.norm_is_known:
            chosen._remember(self._norm[index])
        chosen._inherit(self, lambda kept: select(kept, index))
        return chosen

    def convert(self, dtype: torch.dtype, device: torch.device | str | None = None) -> "Dense":
        moved = Dense(self.A.to(dtype=dtype, device=device))
        if self.norm_is_known:
            moved._remember(self._norm.to(dtype=dtype, device=device))
        moved._inherit(self, lambda kept: convert(kept, torch.float64, device))
        return moved

    def gather(self, index: Tensor) -> Tensor:
        if self.A.ndim == 2:
            return self.A.T[index]
        where = index[:, None, :].expand(-1, self.shape[0], -1)
        return self.A.gather(2, where).mT

    def array(self) -> Any:
        return self.A.detach().numpy() if self.device.type == "cpu" else None

    @cached_property
    def _largest(self) -> Tensor:
        (A,) = self.numbers()
        return torch.maximum(A.amax((1, 2)), -A.amin((1, 2)))

    def largest(self) -> Tensor:
        return self._largest

    def times_power(self, e: Tensor) -> "Dense":
        (A,) = self.numbers()
        return Dense(times_power(A, e[: self.batch])) if bool(e.any()) else self

    def numbers(self) -> list[Tensor]:
        return [self.A if self.A.ndim == 3 else self.A[None]]

    @cached_property
    def single(self) -> Tensor:
        """A in float32; where it is not already, a copy that is kept."""
        return self.A.float()

    @cached_property
    def gram(self) -> Tensor:
        """A^T A in float64, (n, n) or (B, n, n); computed once, then remembered."""
        A = self.A.double()
        return A.mT @ A

    def columns(self, index: Tensor) -> "Dense":
        return Dense(self.A[..., index])

    def column_norms(self) -> Tensor:
        # Divided by each column's largest entry: squares stay in the range of the dtype.
        scale = positive(self.A.abs().amax(-2, keepdim=True))
        norms: Tensor = (self.A / scale).norm(dim=-2) * scale[..., 0, :]
        return norms.reshape(self.batch, -1)


class _BatchProduct(torch.autograd.Function):
    """x A^T, or r A with `adjoint`, for A (B, m, n) and rows (B, C, .); A itself is a constant.

    Of several ways to write these products the fast ones are a factor of five ahead, forward and
    backward, and autograd's own backward of one is the slow way to write the other.
    """

    @staticmethod
    def forward(ctx: Any, A: Tensor, rows: Tensor, adjoint: bool) -> Tensor:
        if ctx.needs_input_grad[0]:
            raise InputError("a gradient with respect to A was asked for; A is data: detach it")
        ctx.save_for_backward(A)
        ctx.adjoint = adjoint
        return torch.bmm(rows, A) if adjoint else torch.matmul(A, rows.mT).mT

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, None]:
        (A,) = ctx.saved_tensors
        out: Tensor = _BatchProduct.apply(A, grad, not ctx.adjoint)
        return None, out, None


class Sparse(Operator):
    """One sparse matrix shared by the batch.

    A and A^T are both kept in CSR: twice the non-zeros, and neither product has to search.
    """

    explicit = True

    def __init__(self, A: Tensor, At: Tensor | None = None):
        self.A = _csr(A)
        self.At = _csr(self.A.to_sparse_coo().transpose(0, 1)) if At is None else At
        self.shape = (A.shape[0], A.shape[1])
        self.dtype, self.device = A.dtype, A.device

    def forward(self, x: Tensor) -> Tensor:
        return _sparse_product(self.A, x)

    def adjoint(self, r: Tensor) -> Tensor:
        return _sparse_product(self.At, r)

    @property
    def entries(self) -> int:
        return self.A.values().numel()

    def gather(self, index: Tensor) -> Tensor:
        flat = index.reshape(-1)
        row, where = self._entries_of(flat)
        columns = torch.zeros(len(flat), self.shape[0], dtype=self.dtype, device=self.device)
        columns[row, self.At.col_indices()[where]] = self.At.values()[where]
        return columns.reshape(*index.shape, self.shape[0])

    def columns(self, index: Tensor) -> "Sparse":
        row, where = self._entries_of(index)
        places = torch.stack([self.At.col_indices()[where], row])
        A = torch.sparse_coo_tensor(
            places,
            self.At.values()[where],
            (self.shape[0], len(index)),
            check_invariants=False,
        )
        return Sparse(A.coalesce())

    def column_norms(self) -> Tensor:
        every = torch.arange(self.shape[1], device=self.device)
        row, where = self._entries_of(every)
        values = self.At.values()[where]
        zero = values.new_zeros(self.shape[1])
        scale = positive(zero.scatter_reduce(0, row, values.abs(), "amax"))
        squares = (values / scale[row]).square()
        return (zero.index_add(0, row, squares).sqrt() * scale)[None]

    def _entries_of(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """For each entry of the columns `index` (k,): which of them, and its place in A^T."""
        starts = self.At.crow_indices()
        first, counts = starts[index], starts[index + 1] - starts[index]
        row = torch.repeat_interleave(torch.arange(len(index), device=index.device), counts)
        within = torch.arange(len(row), device=index.device) - (counts.cumsum(0) - counts)[row]
        return row, first[row] + within

    def array(self) -> Any:
        if self.device.type != "cpu":
            return None
        places = (self.At.col_indices().numpy(), self.At.crow_indices().numpy())
        return scipy.sparse.csc_matrix((self.At.values().detach().numpy(), *places), self.shape)

    @cached_property
    def _largest(self) -> Tensor:
        values = self.A.values().abs()
        return values.amax()[None] if len(values) else self.A.values().new_zeros(1)

    def largest(self) -> Tensor:
        return self._largest

    def times_power(self, e: Tensor) -> "Sparse":
        if not bool(e.any()):
            return self
        both = (self.A, self.At)
        return Sparse(*(_csr_like(A, times_power(A.values()[None], e[:1])[0]) for A in both))

    def numbers(self) -> list[Tensor]:
        return [self.A.values()[None]]

    def select(self, index: Tensor) -> "Sparse":
        return self

    def convert(self, dtype: torch.dtype, device: torch.device | str | None = None) -> "Sparse":
        moved = Sparse(
            self.A.to(dtype=dtype, device=device), self.At.to(dtype=dtype, device=device)
        )
        if self.norm_is_known:
            moved._remember(self._norm.to(dtype=dtype, device=device))
        moved._inherit(self, lambda kept: convert(kept, torch.float64, device))
        return moved


class MatrixFree(Operator):
    """Any object with `shape`, `matvec` and `rmatvec`, called once for each instance.

    The object gets and returns NumPy vectors; with ``tensors=True`` it gets and returns tensors
    on the device of the iterate, and nothing is copied. The matrix is never formed.
    """

    def __init__(
        self,
        linear: MatVec,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
        tensors: bool = False,
    ):
        self.linear, self.tensors = linear, tensors
        self.shape = (int(linear.shape[0]), int(linear.shape[1]))
        self.dtype, self.device = dtype, torch.device(device)

    def forward(self, x: Tensor) -> Tensor:
        return self._apply(self.linear.matvec, x, self.shape[0])

    def adjoint(self, r: Tensor) -> Tensor:
        return self._apply(self.linear.rmatvec, r, self.shape[1])

    def _apply(self, product: Any, x: Tensor, size: int) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        if not self.tensors and x.requires_grad and torch.is_grad_enabled():
            raise InputError(
                "a gradient was asked for through an operator that works on NumPy vectors; train "
                "on dense problems, or give an operator of tensors (tensors=True)"
            )
        if self.tensors:
            out = torch.stack([product(row) for row in rows])
        else:
            vectors = rows.detach().cpu().numpy()
            out = torch.as_tensor(np.stack([np.asarray(product(v)).reshape(-1) for v in vectors]))
        return out.to(dtype=x.dtype, device=x.device).reshape(*x.shape[:-1], size)

    def select(self, index: Tensor) -> "MatrixFree":
        return self

    def convert(self, dtype: torch.dtype, device: torch.device | str | None = None) -> "MatrixFree":
        moved = MatrixFree(
            self.linear, dtype, self.device if device is None else device, self.tensors
        )
        if self.norm_is_known:
            moved._remember(self._norm.to(dtype=dtype, device=device))
        moved._inherit(self, lambda kept: convert(kept, torch.float64, device))
        return moved


def _csr(A: Tensor) -> Tensor:
    with warnings.catch_warnings():  # torch announces its CSR support as beta, once a process
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return A if A.layout == torch.sparse_csr else A.to_sparse_csr()


def _csr_like(A: Tensor, values: Tensor) -> Tensor:
    """A CSR matrix with the places of A and other values."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            A.crow_indices(), A.col_indices(), values, size=A.shape, check_invariants=False
        )


def _sparse_product(A: Tensor, x: Tensor) -> Tensor:
    rows = x.reshape(-1, x.shape[-1])
    return (A @ rows.T).T.reshape(*x.shape[:-1], A.shape[0])
