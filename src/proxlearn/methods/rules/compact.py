"""A rule of a few hundred weights: inputs without units, and no memory but the last point."""

import math
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from proxlearn.core.starts import CompactSettings, CompactStart
from proxlearn.methods.rules.coefficient_network import linear
from proxlearn.methods.rules.learned_rule import LearnedRule, uniform
from proxlearn.methods.scheme import Coefficients, View
from proxlearn.problems.problem import Problem

COORDINATE, INSTANCE = 4, 5
"""Numbers of inputs of a coordinate, and of an instance."""
LEAST_LOG_P = -3.0
"""Smallest log(p L), so that a coordinate never stops moving."""


class Last(NamedTuple):
    """1/L (B, 1), the penalty's level (B, n) or (B, 1), the last y and grad f(y) (B, n)."""

    step: Tensor
    level: Tensor
    y: Tensor
    grad: Tensor


class CompactRule(LearnedRule):
    """p = exp(u)/L and a = sigmoid(v), where u, v = MLP(inputs), the same for all coordinates.

    With s = 1/L and lam the penalty's level, each coordinate shows the MLP

        g/lam,   y/(lam s),   (y - x)/(lam s),   (g - g_last)/lam,      g = grad f(y),

    compressed by sign(t) log(1 + |t|), and each instance shows all its coordinates the iteration
    (log(1 + k) and 1/(1 + k)), the fraction of non-zeros, and two curvatures along the last step
    relative to L: <dy, dg>/|dy|^2 and <dy, dg>/|dg|^2, all in logs. None of them has a unit:
    rescaling A, b and lam changes nothing. Instance inputs only move the bias of the first layer.
    The last layer starts at zero, p = 1/L and a = 1/2.
    """

    Settings = CompactSettings

    def __init__(self, settings: CompactSettings, generator: torch.Generator | None = None):
        super().__init__(settings)
        H = settings.hidden
        first = partial(uniform, generator, 1 / math.sqrt(COORDINATE + INSTANCE))
        second = partial(uniform, generator, 1 / math.sqrt(H))
        self.coordinate_weight, self.instance_weight = first(H, COORDINATE), first(INSTANCE, H)
        self.first_bias = first(H)
        self.hidden_weight, self.hidden_bias = second(H, H), second(H, 1)
        self.head_weight = nn.Parameter(torch.zeros(2, H))
        self.head_bias = nn.Parameter(torch.zeros(2, 1))

    def init(self, problem: Problem, x0: Tensor) -> Last:
        """The memory at the start; level 0 stands for none until the first iteration."""
        level = problem.r.level()
        level = torch.zeros_like(x0[:, :1]) if level is None else level.expand(len(x0), -1)
        return Last(problem.safe_step(), level, x0, torch.zeros_like(x0))

    def core_start(self) -> CompactStart | None:
        """The same rule, for the compiled core; None for subclasses, which may be another one."""
        if type(self) is not CompactRule:
            return None
        arrays = {name: t.detach().cpu().numpy() for name, t in self.state_dict().items()}
        return CompactStart.of(self.settings, arrays)

    def forward(self, view: View, last: Last) -> tuple[Coefficients, Last]:
        """p and a of every coordinate, by two matrix products."""
        g, x, y, s = view.at.grad, view.x, view.y, last.step
        lam = level_or_gradient(last.level, g) if view.k == 0 else last.level
        dg = g - last.grad if view.k else torch.zeros_like(g)
        units = torch.stack([g / lam, y / (lam * s), (y - x) / (lam * s), dg / lam], 1)
        inputs = (units.sign() * units.abs().log1p()).to(self.head_weight.dtype)
        with torch.no_grad():  # constants in training: their derivatives divide by zero
            instance = _instance_inputs(view, last).to(inputs.dtype)
        bias = (instance @ self.instance_weight + self.first_bias)[:, :, None]
        hidden = torch.relu(linear(self.coordinate_weight, inputs, bias))
        hidden = torch.relu(linear(self.hidden_weight, hidden, self.hidden_bias))
        u, v = linear(self.head_weight, hidden, self.head_bias).to(x.dtype).unbind(1)
        p = s * u.clamp(LEAST_LOG_P, self.settings.largest_log_p).exp()
        return Coefficients(p=view.problem.r.tie(p), a=torch.sigmoid(v)), Last(s, lam, y, g)


def level_or_gradient(level: Tensor, g: Tensor) -> Tensor:
    """lam; where the penalty has none, a tenth of the largest gradient, which is a usual lam."""
    scale = 0.1 * g.abs().amax(-1, keepdim=True)
    level = torch.where(level > 0, level, scale)
    return torch.where(level > 0, level, torch.ones_like(level))


def _instance_inputs(view: View, last: Last) -> Tensor:
    """Iteration, fraction of non-zeros and curvatures, (B, INSTANCE)."""
    s, tiny = last.step[:, 0], torch.finfo(last.step.dtype).tiny
    nonzero = (view.x != 0).to(s.dtype).mean(-1)
    along = across = torch.zeros_like(s)
    if view.k > 0:
        dy, dg = view.y - last.y, view.at.grad - last.grad
        dot = (dy * dg).sum(-1).clamp(min=0)
        along = (s * dot / dy.square().sum(-1).clamp(min=tiny) + 1e-4).log()
        across = (dot / (s * dg.square().sum(-1)).clamp(min=tiny) + 1e-4).log().clamp(max=10)
    k = torch.full_like(s, view.k)
    return torch.stack([k.log1p(), 1 / (1 + k), (nonzero + 1e-3).log(), along, across], 1)
