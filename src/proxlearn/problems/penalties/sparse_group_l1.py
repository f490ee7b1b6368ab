"""r(x) = lam (l1_ratio sum_j v_j |x_j| + (1 - l1_ratio) sum_g w_g ||x_g||_2)."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from proxlearn.problems.batch import SHARED
from proxlearn.problems.penalties.group_l1 import GroupL1
from proxlearn.problems.penalties.penalty_term import Penalty, soft_threshold, zero_or_inf
from proxlearn.problems.penalty_descriptions import Grouped
from proxlearn.problems.powers import times_power


@dataclass(frozen=True)
class SparseGroupL1(Penalty):
    """``r(x) = lam (l1_ratio sum_j v_j |x_j| + (1 - l1_ratio) sum_g w_g ||x_g||_2)``.

    lam is (B,) and l1_ratio (B,) or (1,), in [0, 1]. `groups` (n,) numbers each coordinate's group
    from 0 to G-1; weights w are (B, G), (1, G) or None for ones, l1_weights v (B, n), (1, n) or
    None.
    """

    lam: Tensor
    groups: Tensor = field(metadata=SHARED)
    l1_ratio: Tensor
    weights: Tensor | None = None
    l1_weights: Tensor | None = None

    separable = False

    @property
    def batch(self) -> int:
        parts = (self.lam, self.l1_ratio, self.weights, self.l1_weights)
        return max(len(part) for part in parts if part is not None)

    @property
    def by_group(self) -> GroupL1:
        """The part that couples coordinates."""
        return GroupL1(self.lam * (1 - self.l1_ratio), self.groups, self.weights)

    @property
    def threshold(self) -> Tensor:
        """lam l1_ratio v, (B, n) or (B, 1)."""
        lam = (self.lam * self.l1_ratio)[:, None]
        return lam if self.l1_weights is None else lam * self.l1_weights

    def level(self) -> Tensor:
        return self.threshold + self.by_group.level()

    def tie(self, p: Tensor) -> Tensor:
        return self.by_group.tie(p)

    def value(self, x: Tensor) -> Tensor:
        return (self.threshold * x.abs()).sum(-1) + self.by_group.value(x)

    def prox(self, v: Tensor, p: Tensor) -> Tensor:
        """Coordinates shrink first, then what is left of each group as a whole."""
        return self.by_group.prox(soft_threshold(v, p * self.threshold), p)

    def subgrad(self, x: Tensor) -> Tensor:
        return self.threshold * x.sign() + self.by_group.subgrad(x)

    def with_lam(self, lam: Tensor) -> "SparseGroupL1":
        return replace(self, lam=lam)

    def in_units(self, variable: Tensor, objective: Tensor) -> "SparseGroupL1":
        return replace(self, lam=times_power(self.lam, variable - objective))

    def conjugate(self, v: Tensor) -> Tensor:
        rounding = 1 + 64 * torch.finfo(v.dtype).eps
        group = self.by_group
        excess = group.norms(soft_threshold(v, rounding * self.threshold))
        return zero_or_inf(excess <= rounding * group.threshold, v)

    def dual_scale(self, g: Tensor) -> Tensor:
        """The largest s in [0, 1] with ``||(s |g_g| - threshold)_+|| <= level_g`` for all groups.

        The compiled core computes it, so that it is a constant to automatic differentiation.
        """
        free = self.free()
        c = (g if free is None else torch.where(free, 0.0, g)).detach().double().cpu().numpy()
        scales = [self._core.largest_scale(row, i) for i, row in enumerate(c)]
        return torch.tensor(scales, dtype=torch.float64).clamp(max=1).to(g)

    @cached_property
    def _core(self) -> Grouped:
        return self.core_form()

    def free(self) -> Tensor | None:
        group = self.by_group.threshold
        group = group[:, self.groups] if group.shape[1] > 1 else group
        free = ((self.threshold == 0) & (group == 0)).expand(-1, len(self.groups))
        return free if bool(free.any()) else None

    def core_form(self) -> Grouped:
        return Grouped(self.lam, self.groups, self.weights, self.l1_ratio, self.l1_weights)
