"""r(x) = sum_ij w_ij |x_i - c_ij|, whose minimiser is a weighted median of each coordinate's c."""

from dataclasses import dataclass

import torch
from torch import Tensor

from proxlearn.problems.penalties.penalty_term import Penalty, soft_threshold
from proxlearn.problems.powers import times_power


@dataclass(frozen=True)
class AbsoluteDeviation(Penalty):
    """``r(x) = sum_ij w_ij |x_i - c_ij|``: K centres c and weights w > 0 a coordinate, (B, n, K).

    Either may be shared by the instances, (1, n, K); weights None are ones.
    """

    centres: Tensor
    weights: Tensor | None = None

    @property
    def batch(self) -> int:
        return max(len(self.centres), 1 if self.weights is None else len(self.weights))

    @property
    def w(self) -> Tensor:
        """The weights, (B, n, K)."""
        return torch.ones_like(self.centres) if self.weights is None else self.weights

    def value(self, x: Tensor) -> Tensor:
        return (self.w * (x[:, :, None] - self.centres).abs()).sum((1, 2))

    def prox(self, v: Tensor, p: Tensor) -> Tensor:
        # Li and Osher (2009): with c sorted and s_0 < ... < s_K the slopes of r between them, the
        # median of c_1, ..., c_K, v - p s_0, ..., v - p s_K.
        c, w = torch.broadcast_tensors(self.centres, self.w)
        c, order = c.sort(-1)
        passed = torch.nn.functional.pad(w.gather(-1, order).cumsum(-1), (1, 0))
        slopes = 2 * passed - passed[..., -1:]
        shifted = v[:, :, None] - p[:, :, None] * slopes
        both = torch.cat([c.expand(len(v), -1, -1), shifted], -1)
        return both.median(-1).values

    def subgrad(self, x: Tensor) -> Tensor:
        d = x[:, :, None] - self.centres
        # At a centre the slope may be anything within its weight: whatever is nearest to 0.
        return soft_threshold((self.w * d.sign()).sum(-1), (self.w * (d == 0)).sum(-1))

    def in_units(self, variable: Tensor, objective: Tensor) -> "AbsoluteDeviation":
        centres = times_power(self.centres, -variable)
        return AbsoluteDeviation(centres, times_power(self.w, variable - objective))

    def conjugate(self, v: Tensor) -> Tensor:
        c, w = self.centres, self.w
        # The supremum of v x - r(x) is at a centre, or infinite.
        at_centres = (w[:, :, None] * (c[..., None] - c[:, :, None]).abs()).sum(-1)  # r_i(c_ij)
        largest = (v[:, :, None] * c - at_centres).amax(-1)
        inside = v.abs() <= (1 + 8 * torch.finfo(v.dtype).eps) * w.sum(-1)
        return torch.where(inside, largest, torch.inf).sum(-1)

    def dual_scale(self, g: Tensor) -> Tensor:
        steepest = self.w.sum(-1).expand_as(g)
        return torch.where(g.abs() > steepest, steepest / g.abs(), torch.ones_like(g)).amin(-1)
