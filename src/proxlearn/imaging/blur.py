"""Blur: the convolution with a kernel, by the fast Fourier transform."""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.imaging.masking import Mask
from proxlearn.problems.operators import Operator
from proxlearn.problems.transform import Grid, Transform, axes, on_grid, size, to_grid


class Blur(Transform):
    """The periodic convolution of pictures or signals with a kernel of any size up to theirs.

    Parameters
    ----------
    kernel : tensor (k,), (k, l), or with a leading batch axis
        The point spread function. Its middle entry, ``kernel[k // 2, l // 2]``, is the weight of
        the pixel itself.
    shape : (height, width) or (length,)
        The size of the pictures.

    Examples
    --------
    >>> import torch
    >>> from proxlearn.imaging import Blur, gaussian_kernel
    >>> A = Blur(gaussian_kernel(1.5), (32, 32))
    >>> A.shape, round(float(A.norm()), 6)
    ((1024, 1024), 1.0)
    """

    kernel: Tensor
    parts = ("kernel",)
    settings = ("shape",)
    has_implicit_residual = True

    def __init__(self, kernel: Any, shape: int | Sequence[int]):
        self.grid: Grid = to_grid(shape)
        kernel = torch.as_tensor(kernel)
        if not kernel.is_floating_point():
            kernel = kernel.double()
        if kernel.ndim == len(self.grid):
            kernel = kernel[None]
        sides = tuple(kernel.shape[1:])
        if len(sides) != len(self.grid) or any(
            k > s or k < 1 for k, s in zip(sides, self.grid, strict=True)
        ):
            raise InputError(
                f"kernel has shape {sides}; expected {len(self.grid)} axes, each at most as long "
                f"as the picture's, which is {self.grid}"
            )
        self._set(kernel=kernel)
        n = size(self.grid)
        self.shape, self.dtype, self.device = (n, n), kernel.dtype, kernel.device

    def _with(self, tensors: dict[str, Tensor | None]) -> "Blur":
        return Blur(tensors["kernel"], self.grid)

    @cached_property
    def transfer(self) -> Tensor:
        """The kernel's Fourier transform, (batch, 1, ...), for real pictures."""
        padded = self.kernel.new_zeros(self.batch, *self.grid)
        sides = self.kernel.shape[1:]
        corner = (slice(None), *(slice(0, k) for k in sides))
        padded[corner] = self.kernel
        centred = padded.roll([-(k // 2) for k in sides], axes(self.grid))
        waves: Tensor = torch.fft.rfftn(centred, dim=axes(self.grid))
        return waves[:, None]

    @property
    def nonnegative(self) -> bool:
        return bool((self.kernel >= 0).all())

    @cached_property
    def _norm(self) -> Tensor:
        largest = self.transfer.abs().flatten(1).amax(-1)
        return largest * (1 + 100 * torch.finfo(self.dtype).eps)

    def _multiplied(self, x: Tensor, factor: Tensor) -> Tensor:
        dims = axes(self.grid)
        waves = torch.fft.rfftn(on_grid(x, self.grid), dim=dims)
        blurred: Tensor = torch.fft.irfftn(waves * factor, s=self.grid, dim=dims)
        return blurred.reshape(x.shape)

    def forward(self, x: Tensor) -> Tensor:
        return self._multiplied(x, self.transfer)

    def adjoint(self, r: Tensor) -> Tensor:
        return self._multiplied(r, self.transfer.conj())

    @cached_property
    def power(self) -> Tensor:
        """The squared absolute values of the transfer function, (batch, 1, ...)."""
        return self.transfer.abs().square()

    def implicit_residual(self, w: Tensor, b: Tensor, gamma: Tensor) -> tuple[Tensor, Tensor]:
        """The closed form: A A^T multiplies the Fourier transform by `power`.

        That takes four Fourier transforms, as many as a gradient.
        """
        dims = axes(self.grid)
        pictures, data = (torch.fft.rfftn(on_grid(t, self.grid), dim=dims) for t in (w, b))
        gamma = gamma.reshape(-1, 1, *(1 for _ in self.grid))
        waves = (pictures * self.transfer - data) / (1 + gamma * self.power)
        pulled = waves * self.transfer.conj()
        u, g = (torch.fft.irfftn(t, s=self.grid, dim=dims) for t in (waves, pulled))
        return u.reshape(w.shape), g.reshape(w.shape)


def open_blur(kernel: Any, shape: int | Sequence[int], multiple: int = 1) -> tuple[Operator, Grid]:
    """A blur whose pictures go on beyond what the camera saw, with unknown pixels there.

    Parameters
    ----------
    kernel : tensor (k,) or (k, l)
        The point spread function.
    shape : (height, width) or (length,)
        The size of the blurred picture that was seen.
    multiple : int
        Every side of the larger picture is a multiple of this: 2^levels for wavelets.

    Returns
    -------
    operator : Operator
        The periodic blur of the larger picture, of which only the inner pixels count. Its data
        are 0 outside: `place` puts a picture into the larger grid.
    grid : tuple
        The size of the larger picture: `shape` with at least half a kernel on every side.

    Examples
    --------
    >>> from proxlearn.imaging import gaussian_kernel, open_blur
    >>> A, grid = open_blur(gaussian_kernel(1.0), (20, 30))
    >>> grid
    (26, 36)
    """
    inner = to_grid(shape)
    kernel = torch.as_tensor(kernel)
    sides = tuple(kernel.shape[-len(inner) :])
    least = (s + 2 * (k // 2) for s, k in zip(inner, sides, strict=True))
    grid = tuple(-(-side // multiple) * multiple for side in least)
    seen = place(torch.ones(inner, dtype=kernel.dtype), grid) > 0
    return Mask(seen, dtype=kernel.dtype) @ Blur(kernel, grid), grid


def place(picture: Tensor, grid: Grid) -> Tensor:
    """Put pictures in the middle of a larger grid, with 0 around them.

    Parameters
    ----------
    picture : Tensor (..., h, w)
    grid : tuple of int
        The height and the width of the grid.

    Returns
    -------
    Tensor (..., *grid)

    Examples
    --------
    >>> place(torch.ones(1, 1), (3, 3)).sum(0)
    tensor([0., 1., 0.])
    """
    inner = picture.shape[-len(grid) :]
    around: list[int] = []
    for outer, side in zip(reversed(grid), reversed(inner), strict=True):
        before = (outer - side) // 2
        around += [before, outer - side - before]
    return torch.nn.functional.pad(picture, around)


def gaussian_kernel(width: float, dimensions: int = 2, dtype: Any = torch.float64) -> Tensor:
    """A Gaussian, cut off at three standard deviations, with sum 1.

    Parameters
    ----------
    width : float
        The standard deviation, in pixels.
    dimensions : int
        1 for signals, 2 for pictures.
    dtype : torch.dtype

    Returns
    -------
    Tensor (k,) or (k, k)

    Examples
    --------
    >>> gaussian_kernel(1.0).shape
    torch.Size([7, 7])
    """
    _check_width("width", width)
    reach = max(1, math.ceil(3 * width))
    t = torch.arange(-reach, reach + 1, dtype=dtype)
    line = torch.exp(-0.5 * (t / width) ** 2)
    return _unit(line if dimensions == 1 else line[:, None] * line[None, :])


def motion_kernel(length: float, degrees: float, dtype: Any = torch.float64) -> Tensor:
    """The blur of a camera that moves in a straight line, with sum 1.

    Parameters
    ----------
    length : float
        Length of the movement, in pixels.
    degrees : float
        Direction of the movement; 0 is along the rows of the picture.
    dtype : torch.dtype

    Returns
    -------
    Tensor (k, k)

    Examples
    --------
    >>> motion_kernel(5, 0).shape
    torch.Size([7, 7])
    """
    _check_width("length", length)
    if not math.isfinite(degrees):
        raise InputError(f"degrees is {degrees}; expected a finite angle")
    reach = max(1, math.ceil(length / 2))
    t = torch.arange(-reach, reach + 1, dtype=dtype)
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    along = t[None, :] * cosine + t[:, None] * sine
    across = t[:, None] * cosine - t[None, :] * sine
    # A line of the camera's path, one pixel wide, with edges that fall off over a pixel.
    inside = (length / 2 + 0.5 - along.abs()).clamp(0, 1) * (1 - across.abs()).clamp(0, 1)
    return _unit(inside)


def disk_kernel(radius: float, dtype: Any = torch.float64) -> Tensor:
    """The blur of a lens out of focus: a disk, with sum 1.

    Parameters
    ----------
    radius : float
        Radius of the disk, in pixels.
    dtype : torch.dtype

    Returns
    -------
    Tensor (k, k)

    Examples
    --------
    >>> disk_kernel(2).shape
    torch.Size([7, 7])
    """
    _check_width("radius", radius)
    reach = max(1, math.ceil(radius + 0.5))
    t = torch.arange(-reach, reach + 1, dtype=dtype)
    distance = (t[:, None] ** 2 + t[None, :] ** 2).sqrt()
    return _unit((radius + 0.5 - distance).clamp(0, 1))


def _unit(kernel: Tensor) -> Tensor:
    return kernel / kernel.sum()


def _check_width(name: str, value: float) -> None:
    if not 0 < value < 1000:
        raise InputError(f"{name} is {value}; expected a number of pixels above 0 and below 1000")
