"""Operators made of others: products, sums, stacks and adjoints."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.problems.lanczos import lanczos_norm
from proxlearn.problems.operators import Operator
from proxlearn.problems.transform import nonnegative_norm


class Composed(Operator):
    """What products, sums and stacks share: slicing and conversion of their operators."""

    def __init__(self, operators: Sequence[Operator]):
        self.operators = tuple(operators)
        counts = {A.batch for A in self.operators} - {1}
        kinds = {(A.dtype, A.device) for A in self.operators}
        if len(counts) > 1:
            raise InputError(f"operators have {sorted(counts)} instances; expected as many, or one")
        if len(kinds) > 1:
            given = ", ".join(sorted(str(A.dtype) for A in self.operators))
            raise InputError(
                f"operators have different precisions or devices ({given}); convert them first, as "
                "in A.convert(torch.float32)"
            )
        self.batch = max([1, *counts])
        self.dtype, self.device = self.operators[0].dtype, self.operators[0].device

    def _of(self, operators: Sequence[Operator]) -> Any:
        return type(self)(operators)

    @property
    def nonnegative(self) -> bool:
        return all(A.nonnegative for A in self.operators)

    @cached_property
    def _norm(self) -> Tensor:
        return nonnegative_norm(self) if self.nonnegative else lanczos_norm(self)

    def select(self, index: Tensor) -> Operator:
        if self.batch == 1:
            return self
        chosen: Operator = self._of([A.select(index) for A in self.operators])
        return chosen._remember(self._norm[index]) if self.norm_is_known else chosen

    def convert(self, dtype: torch.dtype, device: torch.device | str | None = None) -> Operator:
        moved: Operator = self._of([A.convert(dtype, device) for A in self.operators])
        return moved._remember(self._norm.to(moved.device, dtype)) if self.norm_is_known else moved

    @property
    def entries(self) -> int:
        return sum(A.entries for A in self.operators)

    def groups(self) -> tuple[int, ...]:
        return self.operators[0].groups()


class Product(Composed):
    """A_1 A_2 ... A_k: the last operator is applied first.

    Parameters
    ----------
    operators : sequence of Operator

    Examples
    --------
    >>> import torch
    >>> from proxlearn.imaging import Mask, Product
    >>> A = Mask(torch.tensor([1, 0]))
    >>> Product([A, A]).forward(torch.ones(1, 2, dtype=torch.float64))
    tensor([[1., 0.]], dtype=torch.float64)
    """

    def __init__(self, operators: Sequence[Operator]):
        flat: list[Operator] = []
        for A in operators:
            flat.extend(A.operators if isinstance(A, Product) else [A])
        super().__init__(flat)
        for left, right in zip(self.operators, self.operators[1:], strict=False):
            if left.shape[1] != right.shape[0]:
                raise InputError(
                    f"operators of shapes {left.shape} and {right.shape} have no product; expected "
                    "as many columns of the left one as rows of the right one"
                )
        self.shape = (self.operators[0].shape[0], self.operators[-1].shape[1])
        self.grid = self.operators[-1].grid  # of the pictures that the product is applied to

    @cached_property
    def _norm(self) -> Tensor:
        """Orthogonal factors at either end do not change the norm."""
        rest = list(self.operators)
        while len(rest) > 1 and rest[-1].orthogonal:
            rest.pop()
        while len(rest) > 1 and rest[0].orthogonal:
            rest.pop(0)
        if len(rest) == len(self.operators):
            return nonnegative_norm(self) if self.nonnegative else lanczos_norm(self)
        inner = rest[0] if len(rest) == 1 else Product(rest)
        return inner.norm().expand(self.batch)

    def forward(self, x: Tensor) -> Tensor:
        for A in reversed(self.operators):
            x = A.forward(x)
        return x

    def adjoint(self, r: Tensor) -> Tensor:
        for A in self.operators:
            r = A.adjoint(r)
        return r

    @property
    def has_implicit_residual(self) -> bool:
        first, *others = self.operators
        return first.has_implicit_residual and all(A.orthogonal for A in others)

    def implicit_residual(
        self, w: Tensor, b: Tensor, gamma: Tensor
    ) -> tuple[Tensor, Tensor] | None:
        """Orthogonal factors on the right drop out of A A^T."""
        first, *others = self.operators
        if not self.has_implicit_residual:
            return None
        for A in reversed(others):
            w = A.forward(w)
        found = first.implicit_residual(w, b, gamma)
        assert found is not None
        u, pulled = found
        for A in others:
            pulled = A.adjoint(pulled)
        return u, pulled

    def groups(self) -> tuple[int, ...]:
        return self.operators[-1].groups()

    @property
    def orthogonal(self) -> bool:
        return all(A.orthogonal for A in self.operators)


class Sum(Composed):
    """A_1 + A_2 + ... + A_k.

    Parameters
    ----------
    operators : sequence of Operator

    Examples
    --------
    >>> import torch
    >>> from proxlearn.imaging import Mask, Sum
    >>> A = Sum([Mask(torch.tensor([1, 0])), Mask(torch.tensor([1, 1]))])
    >>> A.forward(torch.ones(1, 2, dtype=torch.float64))
    tensor([[2., 1.]], dtype=torch.float64)
    """

    def __init__(self, operators: Sequence[Operator]):
        super().__init__(operators)
        shapes = {A.shape for A in self.operators}
        if len(shapes) > 1:
            raise InputError(
                f"operators of shapes {sorted(shapes)} have no sum; expected one shape"
            )
        self.shape = self.operators[0].shape

    def forward(self, x: Tensor) -> Tensor:
        first, *others = (A.forward(x) for A in self.operators)
        return sum(others, first)

    def adjoint(self, r: Tensor) -> Tensor:
        first, *others = (A.adjoint(r) for A in self.operators)
        return sum(others, first)


class Stack(Composed):
    """The operators one below the other: several measurements of the same picture.

    Parameters
    ----------
    operators : sequence of Operator

    Examples
    --------
    >>> import torch
    >>> from proxlearn.imaging import Mask, Stack
    >>> A = Stack([Mask(torch.tensor([1, 0])), Mask(torch.tensor([1, 1]))])
    >>> A.forward(torch.ones(1, 2, dtype=torch.float64))
    tensor([[1., 0., 1., 1.]], dtype=torch.float64)
    """

    def __init__(self, operators: Sequence[Operator]):
        super().__init__(operators)
        widths = {A.shape[1] for A in self.operators}
        if len(widths) > 1:
            raise InputError(
                f"operators with {sorted(widths)} columns cannot be stacked; expected the same "
                "number of columns"
            )
        self.heights = [A.shape[0] for A in self.operators]
        self.shape = (sum(self.heights), self.operators[0].shape[1])

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([A.forward(x) for A in self.operators], -1)

    def adjoint(self, r: Tensor) -> Tensor:
        parts = zip(self.operators, r.split(self.heights, -1), strict=True)
        first, *others = (A.adjoint(part) for A, part in parts)
        return sum(others, first)


class Adjoint(Composed):
    """A^T.

    Parameters
    ----------
    operators : sequence of one Operator
        A.

    Examples
    --------
    >>> import torch
    >>> from proxlearn.imaging import Adjoint, Mask
    >>> Adjoint([Mask(torch.tensor([1, 0]))]).forward(torch.ones(1, 2, dtype=torch.float64))
    tensor([[1., 0.]], dtype=torch.float64)
    """

    def __init__(self, operators: Sequence[Operator]):
        super().__init__(operators)
        (self.inner,) = self.operators
        self.shape = (self.inner.shape[1], self.inner.shape[0])

    @cached_property
    def _norm(self) -> Tensor:
        return self.inner.norm()

    def forward(self, x: Tensor) -> Tensor:
        return self.inner.adjoint(x)

    def adjoint(self, r: Tensor) -> Tensor:
        return self.inner.forward(r)

    def groups(self) -> tuple[int, ...]:
        return self.inner.row_groups()

    @property
    def orthogonal(self) -> bool:
        return self.inner.orthogonal
