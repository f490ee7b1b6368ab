"""Subsampled Fourier transforms: magnetic resonance imaging with one or several coils."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.problems.transform import Grid, Transform, axes, batched, size, to_grid


class Fourier(Transform):
    """The unitary Fourier transform of a picture at the frequencies of a mask.

    Complex numbers are pairs of reals: a vector holds all real parts, then all imaginary parts.
    The data of one coil are 2 h w numbers, 0 at the frequencies that were not measured; those of
    several coils follow each other.

    Parameters
    ----------
    mask : array (height, width), (length,), or with a leading batch axis
        1 at the frequencies that were measured, in the order of `torch.fft.fftn`, which has the
        frequency 0 first. `torch.fft.ifftshift` turns a mask with 0 in the middle into it.
    shape : (height, width) or (length,), optional
        The size of the pictures, where it is not clear from the mask.
    coils : array (C, height, width, 2) or (B, C, height, width, 2), optional
        The sensitivities of C receiver coils, real and imaginary parts.
    complex_pictures : bool
        Whether the unknown picture has imaginary parts: 2 h w numbers instead of h w.

    Examples
    --------
    >>> import torch
    >>> from proxlearn.imaging import Fourier
    >>> A = Fourier(torch.ones(8, 8))
    >>> A.shape, float(A.norm())
    ((128, 64), 1.0)
    """

    mask: Tensor
    coils: Tensor | None
    parts = ("mask", "coils")
    settings = ("shape", "complex_pictures")

    def __init__(
        self,
        mask: Any,
        shape: int | Sequence[int] | None = None,
        coils: Any = None,
        complex_pictures: bool = False,
    ):
        given = torch.as_tensor(mask)
        self.grid: Grid = to_grid(tuple(given.shape) if shape is None else shape)
        mask = batched("mask", given, self.grid)
        if not bool(((mask == 0) | (mask == 1)).all()):
            raise InputError("mask holds other values than 0 and 1; expected 1 where measured")
        mask = mask if mask.is_floating_point() else mask.double()
        if coils is not None:
            coils = torch.as_tensor(coils).to(mask.dtype)
            coils = coils[None] if coils.ndim == len(self.grid) + 2 else coils
            if coils.ndim != len(self.grid) + 3 or coils.shape[2:] != (*self.grid, 2):
                raise InputError(
                    f"coils has shape {tuple(coils.shape)}; expected (C, *{self.grid}, 2): real "
                    "and imaginary parts of each coil's sensitivity"
                )
        self._set(mask=mask, coils=coils)
        self.complex_pictures = complex_pictures
        n = size(self.grid)
        count = 1 if coils is None else coils.shape[1]
        self.shape = (2 * n * count, 2 * n if complex_pictures else n)
        self.dtype, self.device = mask.dtype, mask.device

    def _with(self, tensors: dict[str, Tensor | None]) -> "Fourier":
        mask, coils = tensors["mask"], tensors["coils"]
        return Fourier(mask, self.grid, coils, self.complex_pictures)

    @cached_property
    def _norm(self) -> Tensor:
        """At most the largest root of the sum of squared sensitivities; exact for one coil."""
        measured = self.mask.flatten(1).amax(-1)
        if self.coils is None:
            return measured
        energy = self.coils.square().sum((1, -1)).flatten(1).amax(-1).sqrt()
        return measured * energy * (1 + 100 * torch.finfo(self.dtype).eps)

    @cached_property
    def sensitivities(self) -> Tensor:
        """Complex, (batch, 1, C, *grid)."""
        assert self.coils is not None
        return torch.view_as_complex(self.coils.contiguous())[:, None]

    def forward(self, x: Tensor) -> Tensor:
        grid, middle = self.grid, x.shape[1:-1]
        if self.complex_pictures:
            parts = x.reshape(len(x), -1, 2, *grid)
            picture = torch.complex(parts[:, :, 0], parts[:, :, 1])
        else:
            picture = x.reshape(len(x), -1, *grid)
        picture = picture[:, :, None]  # (B, k, coil, *grid)
        if self.coils is not None:
            picture = picture * self.sensitivities
        waves = torch.fft.fftn(picture, dim=axes(grid), norm="ortho") * self.mask[:, None, None]
        pairs = torch.stack([waves.real, waves.imag], 3)
        return pairs.reshape(len(x), *middle, self.shape[0])

    @property
    def has_implicit_residual(self) -> bool:
        return self.coils is None

    @cached_property
    def seen(self) -> Tensor:
        """A^T A multiplies the Fourier transform of a picture by this, (batch, *grid).

        For real pictures a frequency and its opposite are one, of which half may be measured.
        """
        return self.mask if self.complex_pictures else 0.5 * (self.mask + self._opposite(self.mask))

    def _opposite(self, waves: Tensor) -> Tensor:
        """The values (..., *grid) at the opposite frequencies."""
        dims = axes(self.grid)
        return waves.flip(dims).roll([1] * len(dims), dims)

    def implicit_residual(
        self, w: Tensor, b: Tensor, gamma: Tensor
    ) -> tuple[Tensor, Tensor] | None:
        """u = r - gamma A A^T u with r = A w - b and A^T u = (I + gamma A^T A)^-1 A^T r."""
        if self.coils is not None:
            return None
        dims, wide = axes(self.grid), (len(w), 2, *self.grid)
        gamma = gamma.reshape(-1, *(1 for _ in self.grid))
        r = (self.forward(w) - b).reshape(wide)
        waves = torch.complex(r[:, 0], r[:, 1])
        pulled = waves * self.mask
        if not self.complex_pictures:
            pulled = 0.5 * (pulled + self._opposite(pulled).conj())
        pulled = pulled / (1 + gamma * self.seen)
        waves = waves - gamma * self.mask * pulled
        u = torch.stack([waves.real, waves.imag], 1).reshape(len(w), -1)
        picture = torch.fft.ifftn(pulled, dim=dims, norm="ortho")
        if not self.complex_pictures:
            return u, picture.real.reshape(len(w), -1)
        return u, torch.stack([picture.real, picture.imag], 1).reshape(len(w), -1)

    def adjoint(self, r: Tensor) -> Tensor:
        grid, middle = self.grid, r.shape[1:-1]
        count = self.shape[0] // (2 * size(grid))
        pairs = r.reshape(len(r), -1, count, 2, *grid)
        waves = torch.complex(pairs[:, :, :, 0], pairs[:, :, :, 1]) * self.mask[:, None, None]
        picture = torch.fft.ifftn(waves, dim=axes(grid), norm="ortho")
        if self.coils is not None:
            picture = picture * self.sensitivities.conj()
        picture = picture.sum(2)
        if not self.complex_pictures:
            real: Tensor = picture.real.reshape(len(r), *middle, self.shape[1])
            return real
        parts = torch.stack([picture.real, picture.imag], 2)
        return parts.reshape(len(r), *middle, self.shape[1])
