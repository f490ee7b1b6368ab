"""Operators of users: two functions on batches of tensors, or an object that has them."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.problems.operators import Operator
from proxlearn.problems.tensors import check_adjoint, matrix_free


class Products(Operator):
    """A linear operator given by two functions of tensors.

    Parameters
    ----------
    matvec : function
        Maps a batch of vectors (B, n) to (B, m), in the precision and on the device of its input.
    rmatvec : function
        Its adjoint: maps (B, m) to (B, n).
    shape : (m, n)
        Rows and columns.
    dtype, device
        The precision and place in which a problem is solved.

    Examples
    --------
    >>> import torch
    >>> from proxlearn.imaging import Products
    >>> A = Products(lambda x: x.cumsum(-1), lambda r: r.flip(-1).cumsum(-1).flip(-1), (4, 4))
    >>> A.forward(torch.ones(1, 4, dtype=torch.float64))
    tensor([[1., 2., 3., 4.]], dtype=torch.float64)
    """

    def __init__(
        self,
        matvec: Callable[[Tensor], Tensor],
        rmatvec: Callable[[Tensor], Tensor],
        shape: tuple[int, int],
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ):
        self.matvec, self.rmatvec = matvec, rmatvec
        self.shape = (int(shape[0]), int(shape[1]))
        self.dtype, self.device = dtype, torch.device(device)

    def _apply(self, function: Callable[[Tensor], Tensor], x: Tensor, width: int) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        out: Any = function(rows)
        if not isinstance(out, Tensor) or out.shape != (len(rows), width):
            given = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
            raise InputError(
                f"a product of the operator with vectors {tuple(rows.shape)} is {given}; expected "
                f"a tensor ({len(rows)}, {width})"
            )
        return out.to(x.dtype).reshape(*x.shape[:-1], width)

    def forward(self, x: Tensor) -> Tensor:
        return self._apply(self.matvec, x, self.shape[0])

    def adjoint(self, r: Tensor) -> Tensor:
        return self._apply(self.rmatvec, r, self.shape[1])

    def select(self, index: Tensor) -> "Products":
        return self

    def convert(self, dtype: torch.dtype, device: torch.device | str | None = None) -> "Products":
        moved = Products(
            self.matvec, self.rmatvec, self.shape, dtype, self.device if device is None else device
        )
        if self.norm_is_known:
            moved._remember(self._norm.to(moved.device, dtype))
        return moved


def as_operator(name: str, value: Any) -> Operator:
    """The operator itself, or that of an object with `matvec`, `rmatvec` and `shape`.

    An object whose products take and return batches of tensors is used as it is, and rules can be
    trained through it. Any other object gets NumPy vectors one after the other: it can be solved
    with, and a training says that it needs tensors.
    """
    if isinstance(value, Products):
        check_adjoint(name, value)
    if isinstance(value, Operator):
        return value
    if not hasattr(value, "matvec") or not hasattr(value, "rmatvec"):
        raise InputError(
            f"{name} is of type {type(value).__name__}; expected an operator of proxlearn.imaging, "
            "an object with matvec, rmatvec and shape, or Products(matvec, rmatvec, shape) of two "
            "functions of tensors"
        )
    if len(getattr(value, "shape", ())) != 2:
        raise InputError(f"{name} has matvec and rmatvec but no shape (m, n); give it one")
    if _takes_tensors(value):
        operator = Products(value.matvec, value.rmatvec, (value.shape[0], value.shape[1]))
        check_adjoint(name, operator)
        return operator
    return matrix_free(name, value)


def _takes_tensors(value: Any) -> bool:
    """True where a batch of two tensors comes back as two tensors, both ways."""
    m, n = (int(side) for side in value.shape)
    try:
        out = value.matvec(torch.zeros(2, n, dtype=torch.float64))
        back = value.rmatvec(torch.zeros(2, m, dtype=torch.float64))
    except Exception:  # what it was written for, such as NumPy vectors, it says in its own way
        return False
    fits = isinstance(out, Tensor) and isinstance(back, Tensor)
    return fits and tuple(out.shape) == (2, m) and tuple(back.shape) == (2, n)
