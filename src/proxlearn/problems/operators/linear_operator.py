"""What every linear operator says of itself: its products, its norm, and what is kept of A."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from proxlearn.problems.batch import convert
from proxlearn.problems.lanczos import lanczos_norm


class Operator(ABC):
    """A linear map of shape (m, n), the same for all instances (`batch` is 1) or one for each."""

    shape: tuple[int, int]
    batch: int = 1
    dtype: torch.dtype
    device: torch.device
    grid: tuple[int, ...] | None = None
    """The sides of the pictures that x holds, where the operator knows them."""

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """A x: (B, ..., n) -> (B, ..., m)."""

    @abstractmethod
    def adjoint(self, r: Tensor) -> Tensor:
        """A^T r: (B, ..., m) -> (B, ..., n)."""

    def through(
        self, x: Tensor, scale: Tensor | None, shift: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """u = scale A x + shift, of the shape of A x, and A^T u; without scale it is 1, shift 0.

        For methods that build a graph themselves: no gradient flows through it.
        """
        u = self.forward(x)
        u = u if scale is None else scale * u
        u = u if shift is None else u + shift
        return u, self.adjoint(u)

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

    def _take_over(
        self, other: "Operator", dtype: torch.dtype, device: torch.device | str | None
    ) -> None:
        """Take over what is known of `other`, of which this is a copy of that type and place."""
        if other.norm_is_known:
            self._remember(other._norm.to(dtype=dtype, device=device))
        self._inherit(other, lambda kept: convert(kept, torch.float64, device))

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
