"""Masks: pixels that were seen, and pixels that were not (inpainting)."""

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.problems.transform import Transform


class Mask(Transform):
    """Keeps the pixels where the mask is 1 and sets the others to 0.

    Parameters
    ----------
    mask : array (height, width), (length,), or with a leading batch axis
        True or 1 where a pixel was seen. An array with three axes is a batch of masks.
    dtype : torch.dtype
        The precision of the products.
    flat : bool
        Whether the mask is a batch of rows (B, n) already.

    Examples
    --------
    >>> import torch
    >>> from proxlearn.imaging import Mask
    >>> Mask(torch.tensor([[1, 0], [1, 1]])).forward(torch.ones(1, 4, dtype=torch.float64))
    tensor([[1., 0., 1., 1.]], dtype=torch.float64)
    """

    mask: Tensor
    parts = ("mask",)
    nonnegative = True
    has_implicit_residual = True

    def __init__(self, mask: Any, dtype: torch.dtype | None = None, flat: bool = False):
        mask = torch.as_tensor(mask)
        if not bool(((mask == 0) | (mask == 1)).all()):
            raise InputError("mask holds other values than 0 and 1; expected 1 for a seen pixel")
        rows = mask if flat or mask.ndim == 3 else mask[None]
        precision = mask.dtype if mask.is_floating_point() else torch.float64
        self._set(mask=rows.flatten(1).to(dtype or precision))
        n = self.mask.shape[1]
        self.shape, self.dtype, self.device = (n, n), self.mask.dtype, mask.device

    def _with(self, tensors: dict[str, Tensor | None]) -> "Mask":
        return Mask(tensors["mask"], flat=True)

    @cached_property
    def _norm(self) -> Tensor:
        return self.mask.amax(-1)

    def forward(self, x: Tensor) -> Tensor:
        between = [1] * (x.ndim - 2)
        return x * self.mask.reshape(len(self.mask), *between, -1)

    def adjoint(self, r: Tensor) -> Tensor:
        return self.forward(r)

    def implicit_residual(self, w: Tensor, b: Tensor, gamma: Tensor) -> tuple[Tensor, Tensor]:
        """A A^T is the mask itself."""
        u = (self.forward(w) - b) / (1 + gamma * self.mask)
        return u, self.adjoint(u)
