"""A rule of a few hundred weights: inputs without units, no memory but the last point."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from proxlearn.problem import Problem
from proxlearn.rules.learned import LearnedRule
from proxlearn.rules.lstm import linear
from proxlearn.scheme import Coefficients, View


@dataclass(frozen=True)
class CompactSettings:
    """What must be known beside the weights to rebuild the rule."""

    hidden: int = 16
    max_log_p: float = 2.0
    features: str = "base"
    max_a: float = 1.0


class Last(NamedTuple):
    """1/L (B, 1), the penalty's level (B, n) or (B, 1), the last y and grad f(y) (B, n)."""

    step: Tensor
    level: Tensor
    y: Tensor
    grad: Tensor


class CompactRule(LearnedRule):
    Settings = CompactSettings

    def __init__(self, settings: CompactSettings, generator: torch.Generator | None = None):
        super().__init__(settings)
        H = settings.hidden
        F = {"base": 3, "prox": 4, "sign": 4}[settings.features.split("+")[0]]
        F += "dg" in settings.features
        G = 5 + ("cos" in settings.features)

        def uniform(*shape: int, fan: int) -> nn.Parameter:
            return nn.Parameter((2 * torch.rand(*shape, generator=generator) - 1) / math.sqrt(fan))

        self.w1, self.v1, self.b1 = (
            uniform(H, F, fan=F + G),
            uniform(G, H, fan=F + G),
            uniform(H, fan=F + G),
        )
        self.w2, self.b2 = uniform(H, H, fan=H), uniform(H, 1, fan=H)
        self.w3, self.b3 = nn.Parameter(torch.zeros(2, H)), nn.Parameter(torch.zeros(2, 1))

    def init(self, problem: Problem, x0: Tensor) -> Last:
        level = problem.r.level()
        if level is None:
            level = torch.zeros_like(x0[:, :1])
        return Last(problem.safe_step(), level, x0, torch.zeros_like(x0))

    def forward(self, view: View, last: Last) -> tuple[Coefficients, Last]:
        s, lam = last.step, last.level
        g, x, y = view.at.grad, view.x, view.y
        if view.k == 0:
            scale = 0.1 * g.abs().amax(-1, keepdim=True) + torch.finfo(g.dtype).tiny
            lam = torch.where(lam > 0, lam, scale)
        feats = self.settings.features
        x_next = view.problem.r.prox(y - s * g, s)
        raw = [g / lam, y / (lam * s), (y - x) / (lam * s)]
        if not feats.startswith("base"):
            raw.append((x_next - y) / (lam * s))
        if "dg" in feats:
            raw.append((g - last.grad) / lam if view.k else torch.zeros_like(g))
        u = torch.stack(raw, 1)
        if feats.startswith("sign"):
            u = u * torch.where(g >= 0, 1.0, -1.0)[:, None]
        u = u.sign() * u.abs().log1p()
        with torch.no_grad():
            t = self._instance(view, last, x_next)
        dt = self.w1.dtype
        h = torch.relu(linear(self.w1, u.to(dt), (t.to(dt) @ self.v1 + self.b1)[:, :, None]))
        h = torch.relu(linear(self.w2, h, self.b2))
        out = linear(self.w3, h, self.b3).to(x.dtype)
        p = s * out[:, 0].clamp(-3, self.settings.max_log_p).exp()
        a = self.settings.max_a * torch.sigmoid(out[:, 1])
        return Coefficients(p=view.problem.r.tie(p), a=a), Last(s, lam, y, g)

    def _instance(self, view: View, last: Last, x_next: Tensor) -> Tensor:
        k, y = view.k, view.y
        tiny = torch.finfo(y.dtype).tiny
        s = last.step[:, 0]
        active = (view.x != 0).to(y.dtype).mean(-1)
        rows = [
            torch.full_like(s, math.log1p(k)),
            torch.full_like(s, 1 / (1 + k)),
            (active + 1e-3).log(),
        ]
        if k == 0:
            rows += [torch.zeros_like(s), torch.zeros_like(s)]
        else:
            dy, dg = y - last.y, view.at.grad - last.grad
            dot = (dy * dg).sum(-1).clamp(min=0)
            yy, gg = dy.square().sum(-1), dg.square().sum(-1)
            rows += [
                (s * dot / yy.clamp(min=tiny) + 1e-4).log(),
                (dot / gg.clamp(min=tiny) / s + 1e-4).log().clamp(max=10),
            ]
        if "cos" in self.settings.features:
            d1, d2 = y - x_next, x_next - view.x
            rows.append((d1 * d2).sum(-1) / (d1.norm(dim=-1) * d2.norm(dim=-1)).clamp(min=tiny))
        return torch.stack(rows, 1)
