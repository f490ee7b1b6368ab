"""The Jacobian of a rule's update: the paper asks that its norm be bounded (the space D_C)."""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from proxlearn.methods.rules.learned_rule import LearnedRule
from proxlearn.methods.rules.observed import Around
from proxlearn.methods.scheme import Coefficients, Rule, View

PROBES = 4
"""Random signs with which a norm is estimated. For a rule that treats every coordinate by itself
one is exact; for one that looks at all of them, four leave an error of a few percent."""

LARGEST = 1e30
"""Larger inputs are not measured: the run has diverged, and float32 overflows."""


@dataclass
class Differentiated(Around):
    """A rule that measures the Jacobian of d(y, g/L) = x - x+ at every iteration.

    `largest` is the largest ||J||_F / sqrt(n) so far. The gradient counts in units of 1/L, so that
    both halves of J have no unit. For ISTA it is sqrt(2 s) with the share s of coordinates that are
    not at a kink of r: at most sqrt(2).
    """

    rule: Rule
    largest: float = 0.0
    generator: torch.Generator = field(default_factory=lambda: torch.Generator().manual_seed(0))

    def __post_init__(self) -> None:
        if isinstance(self.rule, LearnedRule):
            self.rule = self.rule.differentiable()  # detached inputs would leave out a part of J

    def __call__(self, view: View, memory: Any) -> tuple[Coefficients, Any]:
        """What the rule chooses; with b = 1 and a look at y the Jacobian is measured."""
        found = self.rule(view, memory)
        if self.looks_at == "y" and not isinstance(found[0].b, Tensor) and found[0].b == 1:
            norms = self._norms(view, memory).nan_to_num(nan=math.inf)
            size = torch.maximum(view.y.abs(), view.at.grad.abs()).amax(-1)
            self.largest = max(self.largest, *norms[size < LARGEST].tolist(), 0.0)
        return found

    @torch.enable_grad()
    def _norms(self, view: View, memory: Any) -> Tensor:
        y, g = (t.detach().clone().requires_grad_() for t in (view.y, view.at.grad))
        c, _ = self.rule(replace(view, y=y, at=replace(view.at, point=y, grad=g)), memory)
        d = view.x - view.problem.r.prox(y - c.p * g - c.b1, c.p)
        step, total = view.problem.safe_step(), torch.zeros_like(d[:, 0])
        for _ in range(PROBES):
            signs = torch.randint(0, 2, d.shape, generator=self.generator).to(d) * 2 - 1
            by_y, by_g = torch.autograd.grad((signs * d).sum(), (y, g), retain_graph=True)
            total += (by_y.square() + (by_g / step).square()).sum(-1)
        return (total / (PROBES * view.problem.n)).sqrt().detach()
