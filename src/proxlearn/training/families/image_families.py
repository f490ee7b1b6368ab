"""Families of pictures behind operators: deblurring, MRI, inpainting and tomography."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.imaging import Blur, Fourier, Mask, Projection, Wavelet, projection
from proxlearn.imaging.blur import disk_kernel, gaussian_kernel, motion_kernel, place
from proxlearn.problems.datasets import picture_folder
from proxlearn.problems.operators import Operator
from proxlearn.problems.penalties import L1
from proxlearn.problems.pictures import load_split, phantom, piece
from proxlearn.problems.problem import Problem
from proxlearn.problems.smooth import LeastSquares
from proxlearn.training.families.family import Family, Union, number, randn, whole
from proxlearn.training.families.wide import log_uniform

SIZES = (48, 64)
"""Sizes among which `fixed` chooses where none is given."""
WAVELETS = ("haar", "db2", "db4")
"""Wavelets among which `fixed` chooses where none is given."""


def share(default: float) -> Any:
    """A parameter that is a share of a size of the data."""
    return number(default, 1e-9, 1e3)


@dataclass(frozen=True)
class Pictures(Family):
    """What the four families share: pieces of pictures, sparse in wavelets, seen with noise.

    f(x) = 1/2 |A W^T x - b|^2 with coefficients x in the wavelet basis W, r(x) = lam |x|_1. The
    noise is a share of b's size drawn between `least_noise` and `most_noise`, uniform in the
    logarithm; lam is the noise of one measurement times |A|, times a number drawn between
    `least_lam` and `most_lam`.
    """

    size: int = whole(0, 0, 4096)
    """Side of the pieces; 0 draws it for every batch from `SIZES`."""
    wavelet: str = ""
    """The basis, 4 levels; drawn for every batch where it is empty."""
    folder: str = ""
    """A folder of pictures, or "bsds500"; where it is empty they are drawn (`phantom`)."""
    split: str = "train"
    """Which of the folder's pictures: train, validation or test."""
    least_noise: float = share(0.004)
    most_noise: float = share(0.04)
    least_lam: float = share(0.03)
    most_lam: float = share(0.3)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size % 16:
            raise InputError(f"size is {self.size}; expected a multiple of 16, such as 64")

    def fixed(self, generator: torch.Generator) -> "Pictures":
        """The size and the wavelet of a batch, drawn where they are not given."""
        if self.size and self.wavelet:
            return self
        u, v = torch.rand(2, generator=generator).tolist()
        return replace(
            self,
            size=self.size or SIZES[int(len(SIZES) * u)],
            wavelet=self.wavelet or WAVELETS[int(len(WAVELETS) * v)],
        )

    def of_split(self, split: str) -> "Pictures":
        return replace(self, split=split)

    def picture(self, generator: torch.Generator) -> Tensor:
        """One piece, (size, size)."""
        if not self.folder:
            return phantom(self.size, generator)
        return piece(load_split(str(picture_folder(self.folder)), self.split), self.size, generator)

    def basis(self) -> Wavelet:
        """The wavelets."""
        return Wavelet((self.size, self.size), self.wavelet, 4, dtype=torch.float32)

    def operator(self, *data: Tensor) -> Operator:
        """A for the drawn parts of a batch."""
        raise NotImplementedError

    def parts(self, generator: torch.Generator) -> tuple[Tensor, ...]:
        """The parts of one instance's operator."""
        raise NotImplementedError

    def draw(self, generator: torch.Generator) -> tuple[Tensor, ...]:
        """The data b, lam, the picture itself, and the parts of the operator."""
        truth = self.picture(generator)
        parts = self.parts(generator)
        A = self.operator(*(part[None] for part in parts))
        clean = A.forward(truth.reshape(1, -1))
        noise = randn(generator, clean.shape[1])[None] * (clean != 0)
        size = clean.norm() / math.sqrt(max(1, int((clean != 0).sum())))
        sigma = log_uniform(generator, self.least_noise, self.most_noise) * size
        lam = log_uniform(generator, self.least_lam, self.most_lam) * sigma * A.norm()[0]
        return ((clean + sigma * noise)[0], lam, truth, *parts)

    def build(self, *data: Tensor) -> Problem:
        b, lam, _, *parts = data
        A = self.operator(*parts) @ self.basis().T
        return Problem(LeastSquares(A, b), L1(lam))


@dataclass(frozen=True)
class Deblur(Pictures):
    """Periodic blur by a Gaussian, a movement or a disk, `least_width` to `most_width` pixels."""

    least_width: float = 0.7
    most_width: float = 3.0

    def parts(self, generator: torch.Generator) -> tuple[Tensor, ...]:
        kind, angle = torch.rand(2, generator=generator).tolist()
        width = log_uniform(generator, self.least_width, self.most_width)
        if kind < 0.6:
            kernel = gaussian_kernel(width)
        elif kind < 0.8:
            kernel = motion_kernel(3.5 * width, 180 * angle)
        else:
            kernel = disk_kernel(2 * width)
        reach = 2 * math.ceil(3.5 * self.most_width) + 1
        side = min(reach, self.size - 1 + self.size % 2)
        if kernel.shape[0] > side:
            kernel = _cropped(kernel, side)
        return (place(kernel, (side, side)).float(),)

    def operator(self, *data: Tensor) -> Operator:
        return Blur(data[0], (self.size, self.size))


@dataclass(frozen=True)
class Mri(Pictures):
    """Fourier data on random lines, more of them near frequency 0.

    One line in `least_speed` to `most_speed` is measured.
    """

    least_lam: float = share(0.3)
    most_lam: float = share(3.0)
    least_speed: float = 2.0
    most_speed: float = 5.0

    def parts(self, generator: torch.Generator) -> tuple[Tensor, ...]:
        share = 1 / log_uniform(generator, self.least_speed, self.most_speed)
        frequency = torch.fft.fftfreq(self.size).abs()
        density = (1 - 2 * frequency) ** 3
        density = share * self.size * density / density.sum()
        lines = torch.rand(self.size, generator=generator) < density.clamp(max=1)
        lines = lines | (frequency <= 0.04)
        turned = bool(torch.rand(1, generator=generator) < 0.5)
        mask = lines[:, None] if turned else lines[None, :]
        return (mask.expand(self.size, self.size).float(),)

    def operator(self, *data: Tensor) -> Operator:
        return Fourier(data[0], (self.size, self.size))


@dataclass(frozen=True)
class Inpaint(Pictures):
    """Pixels of which a share between `least_missing` and `most_missing` was not seen."""

    least_lam: float = share(0.3)
    most_lam: float = share(3.0)
    least_missing: float = 0.3
    most_missing: float = 0.8

    def parts(self, generator: torch.Generator) -> tuple[Tensor, ...]:
        u = float(torch.rand(1, generator=generator))
        missing = self.least_missing + (self.most_missing - self.least_missing) * u
        seen = torch.rand(self.size, self.size, generator=generator) >= missing
        return (seen.float(),)

    def operator(self, *data: Tensor) -> Operator:
        return Mask(data[0])


@dataclass(frozen=True)
class Tomography(Pictures):
    """Parallel-beam projections from `fewest_angles` to `most_angles` equally spaced angles."""

    fewest_angles: int = 16
    most_angles: int = 48
    angles: int = 0
    """The number of angles, drawn for every batch where it is 0."""

    def fixed(self, generator: torch.Generator) -> "Tomography":
        """Sizes, and the number of angles."""
        if self.size and self.wavelet and self.angles:
            return self
        sized = super().fixed(generator)
        assert isinstance(sized, Tomography)
        u = float(torch.rand(1, generator=generator))
        drawn = self.fewest_angles + int(u * (self.most_angles + 1 - self.fewest_angles))
        return replace(sized, angles=self.angles or drawn)

    def parts(self, generator: torch.Generator) -> tuple[Tensor, ...]:
        return ()

    def operator(self, *data: Tensor) -> Operator:
        return _scanner(self.size, self.angles)


@dataclass(frozen=True)
class Imaging(Union):
    """The union of the four families: each batch is of one of them."""

    size: int = 0
    folder: str = ""
    split: str = "train"

    @property
    def kinds(self) -> tuple[type[Pictures], ...]:
        """The families of which a batch may be."""
        return (Deblur, Mri, Inpaint, Tomography)

    def fixed(self, generator: torch.Generator) -> Family:
        u = float(torch.rand(1, generator=generator))
        kind = self.kinds[int(len(self.kinds) * u)]
        return kind(size=self.size, folder=self.folder, split=self.split).fixed(generator)

    def of_split(self, split: str) -> "Imaging":
        return replace(self, split=split)


@dataclass(frozen=True)
class Invertible(Imaging):
    """The three of them whose f has a proximal operator in closed form: no tomography."""

    @property
    def kinds(self) -> tuple[type[Pictures], ...]:
        return (Deblur, Mri, Inpaint)


@lru_cache(maxsize=16)
def _scanner(size: int, angles: int) -> Projection:
    """Projections from equally spaced angles, made once for a size."""
    degrees = torch.arange(angles, dtype=torch.float64) * (180 / angles)
    scanner = projection((size, size), degrees, dtype=torch.float32)
    scanner.norm()
    return scanner


def _cropped(kernel: Tensor, side: int) -> Tensor:
    """The middle of a kernel, with sum 1."""
    before = (kernel.shape[0] - side) // 2
    middle = kernel[before : before + side, before : before + side]
    return middle / middle.sum()
