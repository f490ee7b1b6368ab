"""The discrete cosine transform as an orthogonal basis."""

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from proxlearn.imaging.basis import Basis
from proxlearn.problems.transform import Grid, size, to_grid


class Cosine(Basis):
    """Coefficients of pictures in the orthonormal cosine basis (DCT-II), low frequencies first.

    The coefficients are ordered by octaves of the higher of their two frequencies. The transform is
    a product with a cosine matrix on each side, which suits pictures of up to about 1,000 pixels.

    Parameters
    ----------
    shape : (height, width) or (length,)
        The size of the pictures.
    copies : int
        Pictures in a vector, each transformed by itself: 2 for real and imaginary parts.
    dtype : torch.dtype
        The precision.

    Examples
    --------
    >>> import torch
    >>> from proxlearn.imaging import Cosine
    >>> C = Cosine((8,))
    >>> C.forward(torch.ones(1, 8, dtype=torch.float64)).abs().round(decimals=3)[0, :3]
    tensor([2.8280, 0.0000, 0.0000], dtype=torch.float64)
    """

    def __init__(
        self,
        shape: int | Sequence[int],
        copies: int = 1,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ):
        super().__init__(to_grid(shape), copies, dtype, device)

    def _like(self, dtype: torch.dtype, device: Any) -> "Cosine":
        return Cosine(self.grid, self.copies, dtype, device)

    def _matrix(self, side: int) -> Tensor:
        return cosine_matrix(side, self.dtype, str(self.device))

    def _scales(self) -> list[tuple[int, int]]:
        octaves = _octaves(self.grid)
        top = int(octaves.max())
        counts = torch.bincount(octaves, minlength=top + 1).tolist()
        return [(count, top - octave) for octave, count in enumerate(counts) if count]

    def _analysis(self, pictures: Tensor) -> Tensor:
        x = pictures @ self._matrix(self.grid[-1]).T
        if len(self.grid) == 2:
            x = self._matrix(self.grid[0]) @ x
        return x.flatten(2)[..., _order(self.grid).to(x.device)]

    def _synthesis(self, coefficients: Tensor) -> Tensor:
        back = _order(self.grid).argsort().to(coefficients.device)
        x = coefficients[..., back].reshape(*coefficients.shape[:-1], *self.grid)
        x = x @ self._matrix(self.grid[-1])
        return self._matrix(self.grid[0]).T @ x if len(self.grid) == 2 else x


@cache
def cosine_matrix(side: int, dtype: torch.dtype, device: str) -> Tensor:
    """The orthonormal DCT-II matrix, (side, side)."""
    k, t = torch.arange(side, dtype=torch.float64), torch.arange(side, dtype=torch.float64)
    matrix = math.sqrt(2 / side) * torch.cos(math.pi / side * k[:, None] * (t + 0.5)[None])
    matrix[0] /= math.sqrt(2)
    return matrix.to(device=device, dtype=dtype)


@cache
def _octaves(grid: Grid) -> Tensor:
    """The octave of each coefficient's higher frequency, (n,): 0 for the mean, 1 for 1, ..."""
    highest = torch.arange(grid[-1])
    if len(grid) == 2:
        highest = torch.maximum(torch.arange(grid[0])[:, None], highest[None])
    frequencies = highest.reshape(size(grid)).double()
    return torch.where(frequencies > 0, frequencies.log2().floor() + 1, 0).long()


@cache
def _order(grid: Grid) -> Tensor:
    """The places of the coefficients in the picture of all of them, octave after octave."""
    return torch.argsort(_octaves(grid), stable=True)
