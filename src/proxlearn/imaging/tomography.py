"""Parallel-beam projections: what a scanner measures of a slice, angle by angle."""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.problems.operators import Sparse
from proxlearn.problems.transform import nonnegative_norm, to_grid

MOST_ENTRIES = 2**27
"""Largest number of matrix entries: 128 million, about 4 GiB with the transpose in float64."""


class Projection(Sparse):
    """Sums along parallel rays, for each angle one ray for each detector.

    The rays of an angle are one pixel apart. A pixel adds its value to the two rays nearest to its
    centre, in proportion to their distances. The matrix is kept as a sparse one, so that the
    adjoint is exact: two entries for every pixel and angle.

    Parameters
    ----------
    shape : (height, width)
        The size of the pictures.
    degrees : array (K,)
        The angles of the rays.
    detectors : int, optional
        Rays of an angle; by default as many as the diagonal of the picture has pixels.
    dtype : torch.dtype
        The precision.

    Examples
    --------
    >>> from proxlearn.imaging import projection
    >>> A = projection((16, 16), [0, 45, 90, 135])
    >>> A.shape
    (100, 256)
    """

    nonnegative = True
    explicit = False

    @cached_property
    def _norm(self) -> Tensor:
        return nonnegative_norm(self)

    # The core picks columns, which does not pay where a picture has all of them.

    def array(self) -> Any:
        return None

    def convert(self, dtype: torch.dtype, device: torch.device | str | None = None) -> "Projection":
        moved = Projection(
            self.A.to(dtype=dtype, device=device), self.At.to(dtype=dtype, device=device)
        )
        if self.norm_is_known:
            moved._remember(self._norm.to(moved.device, dtype))
        return moved


def projection(
    shape: Sequence[int],
    degrees: Any,
    detectors: int | None = None,
    dtype: torch.dtype = torch.float64,
) -> Projection:
    """The operator of parallel-beam projections of pictures, see `Projection`.

    Parameters
    ----------
    shape : (int, int)
        Height and width of the pictures.
    degrees : array (k,)
        The angles of the beams.
    detectors : int, optional
        Number of measurements at each angle; by default enough for the diagonal of the picture.
    dtype : torch.dtype

    Returns
    -------
    Projection

    Examples
    --------
    >>> A = projection((4, 4), [0.0, 90.0], detectors=4)
    >>> A.shape
    (8, 16)
    """
    grid = to_grid(tuple(shape))
    angles = torch.as_tensor(degrees, dtype=torch.float64).flatten().deg2rad()
    if len(grid) != 2 or not len(angles) or not bool(angles.isfinite().all()):
        raise InputError(
            f"shape is {grid} with {len(angles)} angles; expected (height, width) and at least one "
            "finite angle in degrees"
        )
    height, width = grid
    rays = detectors or math.ceil(math.hypot(height, width)) + 2
    pixels, count = height * width, len(angles)
    if 2 * pixels * count > MOST_ENTRIES:
        raise InputError(
            f"a picture of {height} x {width} with {count} angles makes {2 * pixels * count} "
            f"matrix entries; expected at most {MOST_ENTRIES}: use fewer angles or pixels"
        )
    down = torch.arange(height, dtype=torch.float64) - (height - 1) / 2
    across = torch.arange(width, dtype=torch.float64) - (width - 1) / 2
    where = across[None, None, :] * angles.cos()[:, None, None]
    where = where + down[None, :, None] * angles.sin()[:, None, None] + (rays - 1) / 2
    first = where.floor().long()
    share = where - first
    angle = torch.arange(count)[:, None, None].expand_as(first)
    pixel = torch.arange(pixels).reshape(1, height, width).expand_as(first)
    rows, columns, values = [], [], []
    for ray, weight in ((first, 1 - share), (first + 1, share)):
        hit = (ray >= 0) & (ray < rays) & (weight > 0)
        rows.append((angle * rays + ray)[hit])
        columns.append(pixel[hit])
        values.append(weight[hit])
    places = torch.stack([torch.cat(rows), torch.cat(columns)])
    A = torch.sparse_coo_tensor(
        places, torch.cat(values).to(dtype), (count * rays, pixels), check_invariants=False
    )
    return Projection(A.coalesce())
