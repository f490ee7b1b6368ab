"""One sparse matrix as an operator, by rows and by columns."""

import warnings
from functools import cached_property
from typing import Any

import scipy.sparse
import torch
from torch import Tensor

from proxlearn.problems.operators.linear_operator import Operator
from proxlearn.problems.powers import times_power


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
        moved._take_over(self, dtype, device)
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
