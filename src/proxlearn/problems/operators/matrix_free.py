"""Any object with matvec and rmatvec as an operator."""

from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.problems.operators.linear_operator import Operator


class MatVec(Protocol):
    """What a matrix-free operator must have (scipy's LinearOperator and PyLops do)."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def matvec(self, x: Any) -> Any: ...
    def rmatvec(self, r: Any) -> Any: ...


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
        moved._take_over(self, dtype, device)
        return moved
