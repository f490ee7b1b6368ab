"""The operators that the contract suites run over, each next to the dense matrix it stands for."""

import warnings
from collections.abc import Callable

import scipy.sparse
import torch
from scipy.sparse.linalg import aslinearoperator
from torch import Tensor

from proxlearn.problems.arrays import to_matrix
from proxlearn.problems.operators import Dense, MatrixFree, Operator


def gaussian(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def with_zeros(m: int, n: int, seed: int = 0) -> Tensor:
    """Two thirds zeros, among them a whole row and a whole column."""
    A = gaussian(m, n, seed=seed) * (gaussian(m, n, seed=seed + 1) > 0.4)
    A[m // 2], A[:, n // 2] = 0, 0
    return A


class TensorProduct:
    """The least that an object with ``tensors=True`` has to offer."""

    def __init__(self, A: Tensor):
        self.A, self.shape = A, tuple(A.shape)

    def matvec(self, x: Tensor) -> Tensor:
        return self.A.to(x.dtype) @ x

    def rmatvec(self, r: Tensor) -> Tensor:
        return self.A.to(r.dtype).T @ r


def torch_csr(A: Tensor) -> Tensor:
    with warnings.catch_warnings():  # the test's own tensor: torch announces CSR as beta
        warnings.simplefilter("ignore")
        return A.to_sparse_csr()


BUILDERS: dict[str, Callable[[Tensor], Operator]] = {
    "dense": Dense,
    "one-of-one": lambda A: Dense(A[None]),
    "scipy-csr": lambda A: to_matrix("A", scipy.sparse.csr_matrix(A.numpy())).operator,
    "scipy-csc": lambda A: to_matrix("A", scipy.sparse.csc_array(A.numpy())).operator,
    "scipy-coo": lambda A: to_matrix("A", scipy.sparse.coo_array(A.numpy())).operator,
    "torch-csr": lambda A: to_matrix("A", torch_csr(A)).operator,
    "torch-coo": lambda A: to_matrix("A", A.to_sparse()).operator,
    "linear-operator": lambda A: to_matrix("A", aslinearoperator(A.numpy())).operator,
    "tensor-product": lambda A: MatrixFree(TensorProduct(A), tensors=True),
}
"""An operator of one matrix (m, n) in float64."""


def rows(m: int = 5, n: int = 7) -> dict[str, Callable[[], tuple[Operator, Tensor]]]:
    """Name -> a function that gives the operator and its matrix, (1, m, n) or (3, m, n)."""

    def shared(name: str) -> Callable[[], tuple[Operator, Tensor]]:
        return lambda: (BUILDERS[name](with_zeros(m, n)), with_zeros(m, n)[None])

    def batched() -> tuple[Operator, Tensor]:
        A = torch.stack([with_zeros(m, n, seed=s) for s in (0, 10, 20)])
        return Dense(A), A

    return {**{name: shared(name) for name in BUILDERS}, "dense-batch": batched}
