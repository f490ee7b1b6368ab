"""Deblurring of whole photographs: what ``proxlearn deblur`` does."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.imaging.blur import Blur
from proxlearn.imaging.recovery import sparse_recovery
from proxlearn.imaging.wavelets import Wavelet
from proxlearn.solving.solution import Solution
from proxlearn.solving.solver import solve

MOST_PIXELS = 2**24
"""Largest picture that is deblurred: 16 million pixels, about 6 GiB of memory in colour."""
LEVELS = 4
"""Levels of the wavelets."""
LAM_OF_NOISE = 0.1
"""lam relative to the noise of the picture: a small value, which keeps fine detail."""
LEAST_LAM = 5e-4
"""lam of a picture without noise: float32 cannot certify much less."""


def deblur(
    picture: Any,
    kernel: Any,
    lam: float | None = None,
    *,
    basis: str = "db4",
    tol: float = 1e-3,
    max_iter: int = 500,
    optimizer: Any = "auto",
    callback: Callable[[Any], None] | None = None,
) -> tuple[np.ndarray, Solution]:
    """The sharp picture behind a blurred one, sparse in wavelets, and the certified solution.

    The picture is continued beyond its border by its mirror image, which fades into its blur, so
    that the blur may be taken as periodic (`continued`). Colours are solved side by side, each with
    its own certificate. `open_blur` has unknown pixels beyond the border instead, which assumes
    nothing of them and takes more iterations.

    Parameters
    ----------
    picture : array (height, width) or (height, width, channels)
        The blurred picture, with values in [0, 1].
    kernel : tensor (k, l)
        The blur, such as ``gaussian_kernel(2.0)``.
    lam : float, optional
        The weight of the penalty; by default a tenth of the noise that the picture shows.
    basis : str
        "haar" or "db2" to "db8".
    tol, max_iter, optimizer, callback
        As in `solve`.

    Returns
    -------
    sharp : array of the picture's shape
        Clipped to [0, 1].
    solution : Solution
        One instance a channel; `Solution.gap` says how far each can be from optimal.

    Examples
    --------
    >>> import numpy as np
    >>> from proxlearn.imaging import deblur, gaussian_kernel
    >>> sharp, solution = deblur(np.full((24, 20), 0.5), gaussian_kernel(1.0), tol=1e-2)
    >>> sharp.shape, solution.solved
    ((24, 20), True)
    """
    values = np.asarray(picture, dtype=np.float64)
    if values.ndim not in (2, 3) or min(values.shape) < 1:
        raise InputError(
            f"picture has shape {values.shape}; expected (height, width) or (height, width, "
            "channels)"
        )
    height, width = values.shape[:2]
    if height * width > MOST_PIXELS:
        raise InputError(
            f"the picture has {height} x {width} pixels; expected at most {MOST_PIXELS}: crop it "
            "or make it smaller"
        )
    channels = torch.from_numpy(np.atleast_3d(values)).permute(2, 0, 1).float().contiguous()
    psf = torch.as_tensor(kernel).float()
    if psf.shape[0] > height or psf.shape[1] > width:
        raise InputError(
            f"the blur covers {psf.shape[0]} x {psf.shape[1]} pixels and the picture has "
            f"{height} x {width}; expected a blur that is no larger: make its width smaller"
        )
    grid = _larger((height, width), tuple(psf.shape))
    A = Blur(psf, grid)
    seen = continued(channels, A)
    level = max(LAM_OF_NOISE * noise_level(channels), LEAST_LAM) if lam is None else lam
    W = Wavelet(grid, basis, LEVELS, dtype=torch.float32)
    problem = sparse_recovery(A, seen, level, basis=W)
    solution = solve(problem, optimizer, tol=tol, max_iter=max_iter, callback=callback)
    top, left = ((g - s) // 2 for g, s in zip(grid, (height, width), strict=True))
    assert solution.image is not None
    pictures = solution.image.reshape(-1, *grid)[:, top : top + height, left : left + width]
    sharp = pictures.permute(1, 2, 0).double().numpy().clip(0, 1)
    return sharp.reshape(values.shape), solution


def _larger(shape: tuple[int, int], kernel: tuple[int, ...]) -> tuple[int, int]:
    """A grid with room for the kernel around the picture, its sides multiples of 2^`LEVELS`."""
    unit = 2**LEVELS
    height, width = (
        -(-(s + 2 * (k // 2)) // unit) * unit for s, k in zip(shape, kernel, strict=True)
    )
    return height, width


def continued(pictures: Tensor, A: Blur) -> Tensor:
    """Pictures (B, h, w) in the middle of A's grid, their mirror image around them.

    Towards the border of the grid the mirror image fades into its own periodic blur, so that what
    A continues on the opposite side does not start with an edge.
    """
    weight = torch.ones(())
    values = pictures.numpy()
    for axis, (outer, side) in enumerate(zip(A.grid, pictures.shape[1:], strict=True)):
        before = (outer - side) // 2
        around = (before, outer - side - before)
        pad = [(0, 0), (0, 0), (0, 0)]
        pad[1 + axis] = around
        values = np.pad(values, pad, mode="symmetric")
        place = torch.arange(outer, dtype=torch.float32)
        inside = torch.minimum(place + 1, outer - place) / (min(around) + 1)
        line = inside.clamp(max=1)
        weight = weight * (line[:, None] if axis == 0 else line[None, :])
    whole = torch.from_numpy(values)
    soft = A.forward(whole.flatten(1)).reshape(whole.shape)
    return weight * whole + (1 - weight) * soft


def noise_level(pictures: Tensor) -> float:
    """The standard deviation of the noise, from the median of the finest diagonal differences.

    Pictures (B, h, w). Edges are rare among these differences, so that the median is the noise's
    (Donoho and Johnstone, 1994).
    """
    even = pictures[..., : pictures.shape[-2] // 2 * 2, : pictures.shape[-1] // 2 * 2]
    a, b = even[..., ::2, ::2], even[..., ::2, 1::2]
    c, d = even[..., 1::2, ::2], even[..., 1::2, 1::2]
    diagonal = (a - b - c + d) / 2
    return float(diagonal.abs().median()) / 0.6745 if diagonal.numel() else 0.0
