"""Orthogonal wavelets of pictures and signals: Haar and Daubechies, several levels, periodic.

A level is a product with small matrices: pieces of `PIECE` pixels, and the few pixels around them
that the filter reaches, are the rows of one matrix product. On a CPU that is several times as fast
as convolutions with a stride, and PyTorch differentiates it as it stands.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.imaging.basis import Basis
from proxlearn.imaging.filters import high_pass, low_pass
from proxlearn.problems.transform import Grid, size, to_grid

PIECE = 64
"""Pixels of a piece at most: the rows of the matrices, which processors multiply fastest."""


class Wavelet(Basis):
    """Coefficients of pictures in an orthogonal wavelet basis, coarse to fine.

    Parameters
    ----------
    shape : (height, width) or (length,)
        The size of the pictures; every side a multiple of 2^levels.
    name : str
        "haar" or "db2" to "db8".
    levels : int, optional
        By default as many as the sides allow, at most 4.
    copies : int
        Pictures in a vector, each transformed by itself: 2 for real and imaginary parts.
    dtype : torch.dtype
        The precision.

    Notes
    -----
    The coefficients of a picture are those of the coarsest averages, then for every level from
    coarse to fine the details across, down and along the diagonal; `bands` says how many each are.
    The boundary is periodic, which keeps the basis orthogonal: forward and adjoint are inverses.

    Examples
    --------
    >>> import torch
    >>> from proxlearn.imaging import Wavelet
    >>> W = Wavelet((8, 8), "haar", levels=2)
    >>> [band.count for band in W.bands]
    [4, 4, 4, 4, 16, 16, 16]
    >>> x = torch.arange(64, dtype=torch.float64)[None]
    >>> bool(torch.allclose(W.adjoint(W.forward(x)), x))
    True
    """

    def __init__(
        self,
        shape: int | Sequence[int],
        name: str = "haar",
        levels: int | None = None,
        copies: int = 1,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ):
        grid = to_grid(shape)
        low_pass(name)  # refuses an unknown name
        self.name, self.levels = name, _levels(grid, levels)
        super().__init__(grid, copies, dtype, device)

    def _like(self, dtype: torch.dtype, device: Any) -> "Wavelet":
        return Wavelet(self.grid, self.name, self.levels, self.copies, dtype, device)

    def _scales(self) -> list[tuple[int, int]]:
        coarse = size(self.grid) >> (len(self.grid) * self.levels)
        scales = [(coarse, self.levels)]
        kinds = 2 ** len(self.grid) - 1
        for level in range(self.levels, 0, -1):
            scales += [(size(self.grid) >> (len(self.grid) * level), level - 1)] * kinds
        return scales

    def _analysis(self, pictures: Tensor) -> Tensor:
        found: list[Tensor] = []
        rest = pictures
        for _ in range(self.levels):
            if len(self.grid) == 1:
                low, high = _split(rest, self._plan(rest.shape[-1])).unbind(-2)
                details = [high]
            else:
                low, details = self._split_picture(rest)
            found = [*(d.flatten(2) for d in details), *found]
            rest = low
        return torch.cat([rest.flatten(2), *found], -1)

    def _synthesis(self, coefficients: Tensor) -> Tensor:
        kinds = 2 ** len(self.grid) - 1
        parts = list(coefficients.split([count for count, _ in self._scales()], -1))
        grid = tuple(side >> self.levels for side in self.grid)
        front = coefficients.shape[:-1]
        rest: Tensor = parts[0].reshape(*front, *grid)
        for level in range(self.levels):
            details = [
                d.reshape(*front, *grid) for d in parts[1 + kinds * level : 1 + kinds * (level + 1)]
            ]
            if len(grid) == 1:
                rest = _join(torch.stack([rest, details[0]], -2), self._plan(2 * grid[0]))
            else:
                rest = self._join_picture(rest, details)
            grid = tuple(2 * side for side in grid)
        return rest

    def _plan(self, side: int) -> "Plan":
        return plan(self.name, side, self.dtype, str(self.device))

    def _split_picture(self, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        """(..., h, w) to the averages (..., h/2, w/2) and the three details."""
        height, width = x.shape[-2:]
        across = _split(x, self._plan(width))  # (..., h, 2, w/2)
        across = across.flatten(-2).mT.contiguous()  # (..., w, h)
        both = _split(across, self._plan(height))  # (..., w, 2, h/2)
        front = x.shape[:-2]
        both = both.reshape(*front, 2, width // 2, 2, height // 2)
        # The filter of the height, that of the width, and the places: (..., 2, 2, h/2, w/2).
        blocks = both.permute(*range(len(front)), -2, -4, -1, -3)
        return blocks[..., 0, 0, :, :], [
            blocks[..., 0, 1, :, :],
            blocks[..., 1, 0, :, :],
            blocks[..., 1, 1, :, :],
        ]

    def _join_picture(self, low: Tensor, details: list[Tensor]) -> Tensor:
        h, w = low.shape[-2:]
        top, bottom = torch.stack([low, details[0]], -3), torch.stack(details[1:], -3)
        blocks = torch.stack([top, bottom], -4)  # (..., 2, 2, h, w)
        both = blocks.movedim((-3, -1), (-4, -3)).flatten(-4, -3)  # (..., 2w, 2, h)
        across = _join(both, self._plan(2 * h)).mT  # (..., 2h, 2w)
        return _join(across.reshape(*across.shape[:-1], 2, w), self._plan(2 * w))


class Plan(NamedTuple):
    """The matrices of one level for a side of N pixels in pieces of c."""

    piece: int
    before: int
    """Pixels of the neighbouring piece that the analysis of a piece needs in front of it."""
    after: int
    analysis: Tensor
    """(before + c + after, c): pixels of a piece to c/2 averages and c/2 details."""
    first: int
    """Coefficients of the neighbouring piece that the synthesis needs in front."""
    last: int
    synthesis: Tensor
    """(2 (first + c/2 + last), c): averages and details around a piece to its pixels."""


@cache
def plan(name: str, side: int, dtype: torch.dtype, device: str) -> Plan:
    """How one level of a wavelet is computed for a side of this length."""
    low = low_pass(name)
    length = len(low)
    shift = length // 2 - 1  # average k reads the pixels 2k - shift, ..., 2k - shift + length - 1
    piece = _piece(side, length)
    whole = piece == side
    half = piece // 2
    before, after = (0, 0) if whole else (shift, length - 2 - shift)
    analysis = np.zeros((before + piece + after, piece))
    first, last = (0, 0) if whole else (length // 2, length // 2)
    synthesis = np.zeros((2, first + half + last, piece))
    for kind, taps in enumerate((low, high_pass(low))):
        for k in range(half):
            for j, tap in enumerate(taps):
                pixel = 2 * k - shift + j
                row = pixel % side if whole else pixel + before
                analysis[row, kind * half + k] += tap
        for k in range(-first, half + last):
            for j, tap in enumerate(taps):
                pixel = 2 * k - shift + j
                pixel = pixel % side if whole else pixel
                if 0 <= pixel < piece:
                    synthesis[kind, k + first, pixel] += tap
    matrices = (torch.tensor(m.reshape(-1, piece), dtype=dtype, device=device)
                for m in (analysis, synthesis))  # fmt: skip
    forward, backward = matrices
    return Plan(piece, before, after, forward, first, last, backward)


def _split(x: Tensor, p: Plan) -> Tensor:
    """One level along the last axis: (..., N) to averages and details (..., 2, N/2)."""
    front, N = x.shape[:-1], x.shape[-1]
    if p.piece == N:
        return _times(x, p.analysis).reshape(*front, 2, N // 2)
    windows = _windows(x, p.before, p.piece, p.after)  # (..., pieces, window)
    halves = _times(windows, p.analysis).reshape(*front, N // p.piece, 2, p.piece // 2)
    return halves.transpose(-3, -2).reshape(*front, 2, N // 2)


def _join(halves: Tensor, p: Plan) -> Tensor:
    """The inverse of `_split`: (..., 2, N/2) to (..., N)."""
    front, N = halves.shape[:-2], 2 * halves.shape[-1]
    if p.piece == N:
        return _times(halves.reshape(*front, N), p.synthesis)
    windows = _windows(halves, p.first, p.piece // 2, p.last)  # (..., 2, pieces, window)
    rows = windows.transpose(-3, -2).reshape(*front, N // p.piece, -1)
    return _times(rows, p.synthesis).reshape(*front, N)


def _times(x: Tensor, matrix: Tensor) -> Tensor:
    """x (..., k) times a matrix (k, l) as one product, whatever axes are in front."""
    return (x.reshape(-1, x.shape[-1]) @ matrix).reshape(*x.shape[:-1], matrix.shape[1])


def _windows(x: Tensor, before: int, piece: int, after: int) -> Tensor:
    """Pieces of the last axis with their neighbours around, periodic: (..., pieces, window)."""
    around = torch.cat([x[..., x.shape[-1] - before :], x, x[..., :after]], -1)
    return around.unfold(-1, before + piece + after, piece)


def _piece(side: int, length: int) -> int:
    """The longest even divisor of a side up to `PIECE`; the whole side where none is long."""
    found = max((c for c in range(2, PIECE + 1, 2) if side % c == 0), default=side)
    return found if found >= max(16, length) and found < side else side


def _levels(grid: Grid, levels: int | None) -> int:
    """The number of levels, checked; by default as many as the sides allow, at most 4."""
    most = min((side & -side).bit_length() - 1 for side in grid)
    if levels is None:
        levels = min(most, 4)
    if not 1 <= levels <= most:
        raise InputError(
            f"a picture of {' x '.join(map(str, grid))} pixels has {levels} levels of wavelets; "
            f"expected 1 to {most}, and every side a multiple of 2^levels: pad or crop the picture"
        )
    return levels
