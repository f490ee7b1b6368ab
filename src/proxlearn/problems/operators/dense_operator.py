"""One dense matrix, or a batch of them, as an operator."""

from functools import cache, cached_property
from typing import Any

import torch
from torch import Tensor

from proxlearn.core import load
from proxlearn.errors import InputError
from proxlearn.problems.batch import select
from proxlearn.problems.lanczos import lanczos_norm, positive
from proxlearn.problems.operators.linear_operator import Operator
from proxlearn.problems.powers import times_power
from proxlearn.problems.threads import share

EXACT_UP_TO = 64
"""Smaller side of A up to which the norm is exact; above it Lanczos with a margin, which for 64
matrices of 250x500 takes the time of 20 gradients where the eigenvalues take that of 80."""


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

    def through(
        self, x: Tensor, scale: Tensor | None, shift: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        A = self.A
        cpu = A.device.type == x.device.type == "cpu"
        single = A.dtype == x.dtype == torch.float32
        plain = A.ndim == 3 and A.is_contiguous() and x.shape == (len(A), A.shape[2])
        if not (cpu and single and plain):
            return super().through(x, scale, shift)
        u, g = torch.empty(A.shape[:2]), torch.empty(x.shape)
        vectors = [
            None if v is None else v.detach().expand(size).contiguous().numpy()
            for v, size in ((x, x.shape), (scale, u.shape), (shift, u.shape))
        ]
        share(
            len(A),
            lambda first, last: _kernel().through(
                A.numpy(), *vectors, u.numpy(), g.numpy(), first, last
            ),
        )
        return u, g

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
        moved._take_over(self, dtype, device)
        return moved

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


@cache
def _kernel() -> Any:
    """Both products of an instance in one pass over its A: half the time of the two of PyTorch."""
    return load("network")


class _BatchProduct(torch.autograd.Function):
    """x A^T, or r A with `adjoint`, for A (B, m, n) and rows (B, C, .); A itself is a constant.

    Both are written as rows times a matrix, the fast way on a CPU: A times a column takes 1.4 times
    as long for 64 matrices of 250x500. Autograd's own backward of one would be the slow way to
    write the other.
    """

    @staticmethod
    def forward(ctx: Any, A: Tensor, rows: Tensor, adjoint: bool) -> Tensor:
        if ctx.needs_input_grad[0]:
            raise InputError("a gradient with respect to A was asked for; A is data: detach it")
        ctx.save_for_backward(A)
        ctx.adjoint = adjoint
        return torch.bmm(rows, A if adjoint else A.mT)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, None]:
        (A,) = ctx.saved_tensors
        out: Tensor = _BatchProduct.apply(A, grad, not ctx.adjoint)
        return None, out, None
