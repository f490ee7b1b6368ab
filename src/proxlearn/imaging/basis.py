"""Orthogonal bases in which pictures and signals are sparse."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.problems.operators import Operator
from proxlearn.problems.transform import Grid, size


@dataclass(frozen=True)
class Band:
    """Coefficients of one scale and direction, which follow each other in a vector.

    Examples
    --------
    >>> from proxlearn.imaging import Wavelet
    >>> Wavelet((8,), levels=1).bands
    (Band(count=4, scale=1), Band(count=4, scale=0))
    """

    count: int
    """Number of coefficients."""
    scale: int
    """0 for the finest details; the coarsest averages have the largest number."""


class Basis(Operator):
    """An orthogonal basis: `forward` gives the coefficients of pictures, `adjoint` the pictures.

    A subclass defines `_scales`, `_analysis`, `_synthesis` and `_like`.
    """

    grid: Grid

    def __init__(
        self, grid: Grid, copies: int, dtype: torch.dtype, device: torch.device | str
    ) -> None:
        if copies < 1:
            raise InputError(f"copies is {copies}; expected at least one picture in a vector")
        self.grid, self.copies = grid, copies
        n = copies * size(grid)
        self.shape, self.dtype, self.device = (n, n), dtype, torch.device(device)

    @abstractmethod
    def _scales(self) -> list[tuple[int, int]]:
        """Number of coefficients and scale of each band, in the order of a vector."""

    @abstractmethod
    def _analysis(self, pictures: Tensor) -> Tensor:
        """Pictures (B, k, *grid) to coefficients (B, k, n)."""

    @abstractmethod
    def _synthesis(self, coefficients: Tensor) -> Tensor:
        """Coefficients (B, k, n) to pictures (B, k, *grid)."""

    @abstractmethod
    def _like(self, dtype: torch.dtype, device: Any) -> "Basis":
        """The same basis in another precision or on another device."""

    @cached_property
    def bands(self) -> tuple[Band, ...]:
        """The bands in the order of the coefficients: copy after copy, each from coarse to fine."""
        return tuple(Band(*band) for band in self._scales()) * self.copies

    @property
    def orthogonal(self) -> bool:
        return True

    @cached_property
    def _norm(self) -> Tensor:
        return torch.ones(1, dtype=self.dtype, device=self.device)

    def row_groups(self) -> tuple[int, ...]:
        return tuple(band.count for band in self.bands)

    def forward(self, x: Tensor) -> Tensor:
        return self._analysis(x.reshape(len(x), -1, *self.grid)).reshape(x.shape)

    def adjoint(self, r: Tensor) -> Tensor:
        return self._synthesis(r.reshape(len(r), -1, size(self.grid))).reshape(r.shape)

    def select(self, index: Tensor) -> "Basis":
        return self

    def convert(self, dtype: torch.dtype, device: torch.device | str | None = None) -> "Basis":
        return self._like(dtype, self.device if device is None else device)

    def by_scale(self, weights: Any) -> Tensor:
        """Weights (n,) from one weight for each scale, the coarsest averages first."""
        given = torch.as_tensor(weights, dtype=self.dtype, device=self.device)
        scales = sorted({band.scale for band in self.bands}, reverse=True)
        if given.shape != (len(scales),):
            raise InputError(
                f"weights has shape {tuple(given.shape)}; expected ({len(scales)},), a weight for "
                "every scale, the coarsest averages first"
            )
        place = {scale: i for i, scale in enumerate(scales)}
        return torch.cat([given[place[b.scale]].expand(b.count) for b in self.bands])
