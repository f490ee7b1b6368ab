"""r(x) = lam sum_g w_g ||x_g||_2."""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.problems.batch import SHARED
from proxlearn.problems.penalties.penalty_term import Penalty, zero_or_inf
from proxlearn.problems.penalty_descriptions import Grouped
from proxlearn.problems.powers import times_power


@dataclass(frozen=True)
class GroupL1(Penalty):
    """``r(x) = lam sum_g w_g ||x_g||_2`` with lam (B,).

    `groups` (n,) numbers each coordinate's group from 0 to G-1; weights are (B, G), (1, G) or
    None for ones. A weight of 0 leaves a group unpenalised.
    """

    lam: Tensor
    groups: Tensor = field(metadata=SHARED)
    weights: Tensor | None = None

    separable = False

    @property
    def batch(self) -> int:
        return max(len(self.lam), 1 if self.weights is None else len(self.weights))

    @property
    def threshold(self) -> Tensor:
        """lam w, (B, G) or (B, 1)."""
        lam = self.lam[:, None]
        return lam if self.weights is None else lam * self.weights

    def level(self) -> Tensor:
        """The subgradients' size in each coordinate where all entries of its group are equal."""
        sizes = torch.bincount(self.groups)
        return (self.threshold / sizes.sqrt().to(self.lam.dtype))[:, self.groups]

    def tie(self, p: Tensor) -> Tensor:
        """The mean of p inside each group."""
        if p.shape[-1] == 1:
            return p
        sizes = torch.bincount(self.groups)
        totals = p.new_zeros(len(p), len(sizes)).index_add(1, self.groups, p)
        return (totals / sizes)[:, self.groups]

    def norms(self, x: Tensor) -> Tensor:
        """||x_g||_2 for every group, (B, G)."""
        squares = x.new_zeros(len(x), int(self.groups.max()) + 1)
        # Divided by each group's largest entry, so that the squares stay in the dtype's range.
        largest = squares.scatter_reduce(
            1, self.groups.expand(len(x), -1), x.detach().abs(), "amax"
        )
        scale = torch.where((largest > 0) & largest.isfinite(), largest, 1.0)
        scaled = x / scale[:, self.groups]
        return squares.index_add(1, self.groups, scaled.square()).sqrt() * scale

    def value(self, x: Tensor) -> Tensor:
        return (self.threshold * self.norms(x)).sum(-1)

    def prox(self, v: Tensor, p: Tensor) -> Tensor:
        """Each group shrinks towards 0 as a whole, which needs one p for all its coordinates."""
        norms = self.norms(v)
        if p.shape[-1] > 1:
            member = torch.empty_like(self.groups[: norms.shape[-1]])
            member[self.groups] = torch.arange(len(self.groups), device=member.device)
            p_group = p[:, member]
            if not torch.equal(p_group[:, self.groups], p):
                raise InputError(
                    "the prox of group l1 was given a p that differs inside a group; it exists in "
                    "closed form only for a p that is constant inside each group: use one value "
                    "a group, or a rule whose p is the same for all coordinates"
                )
            p = p_group
        tiny = torch.finfo(v.dtype).tiny
        shrink = (1 - p * self.threshold / norms.clamp(min=tiny)).clamp(min=0)
        return shrink[:, self.groups] * v

    def subgrad(self, x: Tensor) -> Tensor:
        norms = self.norms(x).clamp(min=torch.finfo(x.dtype).tiny)
        return (self.threshold / norms)[:, self.groups] * x

    def with_lam(self, lam: Tensor) -> "GroupL1":
        return replace(self, lam=lam)

    def in_units(self, variable: Tensor, objective: Tensor) -> "GroupL1":
        return GroupL1(times_power(self.lam, variable - objective), self.groups, self.weights)

    def conjugate(self, v: Tensor) -> Tensor:
        rounding = 1 + 64 * torch.finfo(v.dtype).eps
        return zero_or_inf(self.norms(v) <= rounding * self.threshold, v)

    def dual_scale(self, g: Tensor) -> Tensor:
        norms = self.norms(g)
        t = self.threshold.expand_as(norms)
        ratio = torch.where((norms > t) & (t > 0), t / norms, torch.ones_like(norms))
        return ratio.amin(-1)

    def free(self) -> Tensor | None:
        if self.weights is None or bool((self.weights != 0).all()):
            return None
        return (self.weights == 0)[:, self.groups]

    def core_form(self) -> Grouped:
        return Grouped(self.lam, self.groups, self.weights)
