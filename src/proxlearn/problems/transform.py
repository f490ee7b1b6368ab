"""What operators on pictures share: batched tensors, a grid of pixels, a norm by formula."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.problems.operators import Operator

Grid = tuple[int, ...]
"""Height and width of a picture, or the length of a signal."""

POWER_STEPS = 20
"""Most power iterations for the norm of an operator without negative entries. Projections of 48x48
and 64x64 pixels from 16 to 48 angles need four (2026-11-19)."""
MIX = 1e-3
"""Share of the constant picture in each power iterate, which keeps every entry well above 0."""
CLOSE = 0.01
"""Relative width of the bracket around the squared norm at which the iterations stop."""


class Transform(Operator):
    """An operator that is a few batched tensors and a way to use them.

    Subclasses name their tensors in `parts`; each leads with the batch axis, of length 1 where all
    instances share it, or is None. `settings` are the other arguments of the constructor, which
    takes both by name.
    """

    parts: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            setattr(self, name, value)
        tensors = [getattr(self, part) for part in self.parts if getattr(self, part) is not None]
        counts = {len(t) for t in tensors} - {1}
        if len(counts) > 1:
            raise InputError(
                f"the parts of {type(self).__name__} have {sorted(counts)} instances; expected the "
                "same number, or 1 where all instances share a part"
            )
        self.batch = max([1, *counts])

    def _with(self, tensors: dict[str, Tensor | None]) -> Any:
        kept = {name: getattr(self, name) for name in self.settings}
        return type(self)(**tensors, **kept)

    def select(self, index: Tensor) -> Operator:
        if self.batch == 1:
            return self
        parts = {name: getattr(self, name) for name in self.parts}
        chosen: Operator = self._with(
            {k: t if t is None or len(t) == 1 else t[index] for k, t in parts.items()}
        )
        return chosen._remember(self._norm[index]) if self.norm_is_known else chosen

    def convert(self, dtype: torch.dtype, device: torch.device | str | None = None) -> Operator:
        def cast(t: Tensor | None) -> Tensor | None:
            if t is None:
                return None
            return t.to(device=device, dtype=dtype if t.is_floating_point() else None)

        moved: Operator = self._with({name: cast(getattr(self, name)) for name in self.parts})
        if moved.dtype != dtype:  # whole numbers and booleans have no precision
            moved.dtype = dtype
        return moved._remember(self._norm.to(moved.device, dtype)) if self.norm_is_known else moved


def to_grid(shape: int | Sequence[int]) -> Grid:
    """The height and width of a picture or the length of a signal, checked."""
    given = (shape,) if isinstance(shape, int) else tuple(shape)
    whole = all(hasattr(side, "__index__") and side >= 1 for side in given)
    if not whole or len(given) not in (1, 2):
        raise InputError(
            f"shape is {shape}; expected (height, width) of a picture or (length,) of a signal"
        )
    return tuple(int(side) for side in given)


def size(grid: Grid) -> int:
    """The number of pixels of a grid."""
    count = 1
    for side in grid:
        count *= side
    return count


def axes(grid: Grid) -> tuple[int, ...]:
    """The axes of the pixels in tensors (..., *grid)."""
    return tuple(range(-len(grid), 0))


def on_grid(x: Tensor, grid: Grid) -> Tensor:
    """Rows x (B, ..., n) as pictures (B, k, *grid): axes in the middle become one."""
    return x.reshape(len(x), -1, *grid)


def batched(name: str, value: Any, grid: Grid) -> Tensor:
    """A tensor (B or 1, *grid) of one array (*grid) or of a batch of them."""
    tensor = torch.as_tensor(value)
    if tensor.ndim == len(grid):
        tensor = tensor[None]
    if tuple(tensor.shape[1:]) != grid or not len(tensor):
        raise InputError(
            f"{name} has shape {tuple(torch.as_tensor(value).shape)}; expected {grid}, or "
            f"(B, {', '.join(map(str, grid))}) for a batch"
        )
    return tensor


def nonnegative_norm(A: Operator) -> Tensor:
    """An upper bound on the norm of an operator without negative entries, (batch,).

    For H = A^T A without negative entries and any v > 0, the largest eigenvalue of H lies between
    the Rayleigh quotient of v and the largest ratio (H v)_i / v_i (Collatz and Wielandt). A few
    power iterations from the constant vector bring the two together.
    """
    v = torch.ones(A.batch, A.shape[1], dtype=A.dtype, device=A.device)
    best = torch.full((A.batch,), torch.inf, dtype=A.dtype, device=A.device)
    for _ in range(POWER_STEPS):
        Hv = A.adjoint(A.forward(v)).clamp(min=0)
        best = torch.minimum(best, (Hv / v).amax(-1))
        lower = (v * Hv).sum(-1) / v.square().sum(-1)
        if bool((best <= (1 + CLOSE) * lower).all()):
            break
        peak = Hv.amax(-1, keepdim=True)
        peak = torch.where(peak > 0, peak, 1.0)
        v = Hv / peak + MIX
    # Rounding in the products must not make the upper bound too small.
    return best.sqrt() * (1 + 100 * torch.finfo(A.dtype).eps)
