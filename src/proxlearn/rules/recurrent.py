"""The paper's rule: a coordinate-wise LSTM that reads iterate and gradient."""

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from proxlearn.errors import unknown
from proxlearn.penalties import Penalty
from proxlearn.problem import Problem
from proxlearn.rules.learned import LearnedRule, check_size, uniform
from proxlearn.rules.lstm import LstmCell, linear
from proxlearn.scheme import Coefficients, View

VARIANTS = {
    "p": ("p",),
    "a": ("a",),
    "pa": ("p", "a"),
    "pba": ("p", "b", "a"),
    "pba1": ("p", "b", "a", "b1"),
    "pba2": ("p", "b", "a", "b2"),
    "pba12": ("p", "b", "a", "b1", "b2"),
}
"""Which coefficients are learned; the others are p = 1/L, a = 0, b = 1, b1 = b2 = 0."""

ACTIVATIONS = ("sigmoid", "softplus")


@dataclass(frozen=True)
class RecurrentSettings:
    """What must be known beside the weights to rebuild the rule."""

    learns: str = "pa"
    activation: str = "sigmoid"
    """'sigmoid': 2 sigmoid for p, a, b (the paper's LASSO). 'softplus': scaled by 2.0 for p and
    0.3 for a (its logistic regression). b1 and b2 have none, so that they can be negative."""
    looks_at: str = "y"
    """'y': the rule reads y and grad f(y), one gradient an iteration. 'x': as printed in the paper,
    x and grad f(x), a second gradient."""
    start: str = "zero"
    """Initial hidden state: 'zero', or 'gaussian' as in the paper, drawn from `start_seed`: the
    same for every instance, so that the same problem gets the same answer."""
    start_seed: int = 0
    hidden: int = 20
    layers: int = 2

    def __post_init__(self) -> None:
        for name, known in [
            ("learns", VARIANTS),
            ("activation", ACTIVATIONS),
            ("looks_at", "xy"),
            ("start", ("zero", "gaussian")),
        ]:
            if getattr(self, name) not in known:
                raise unknown(name, getattr(self, name), known)
        check_size("hidden", self.hidden, 256)
        check_size("layers", self.layers, 8)


class Hidden(NamedTuple):
    """State of the LSTM, h and c (B, H, n) for each layer, and 1/L (B, 1)."""

    h: tuple[Tensor, ...]
    c: tuple[Tensor, ...]
    step: Tensor


class RecurrentRule(LearnedRule):
    """o, h = LSTM(y, grad f(y), h);  p, a, ... = activation(MLP(o)), the same for all coordinates.

    The MLP is a hidden linear layer with ReLU and one output for each learned coefficient. p is in
    units of 1/L. Weights only: the hidden state lives in the optimizer's state.
    """

    Settings = RecurrentSettings

    def __init__(self, settings: RecurrentSettings, generator: torch.Generator | None = None):
        super().__init__(settings)
        self.looks_at = settings.looks_at
        H, inputs = settings.hidden, 2
        self.cells = nn.ParameterList()
        draw = partial(uniform, generator, 1 / math.sqrt(H))
        for _ in range(settings.layers):
            self.cells.extend([draw(4 * H, inputs), draw(4 * H, H), draw(4 * H, 1)])
            inputs = H
        outputs = len(VARIANTS[settings.learns])
        self.hidden_weight, self.hidden_bias = draw(H, H), draw(H, 1)
        self.head_weight, self.head_bias = draw(outputs, H), draw(outputs, 1)

    @property
    def gradients(self) -> int:
        """Two where both x_hat and y_hat, or a gradient at x, are needed."""
        return 2 if "b" in VARIANTS[self.settings.learns] or self.looks_at == "x" else 1

    def init(self, problem: Problem, x0: Tensor) -> Hidden:
        """Zero, or one Gaussian draw shared by the instances."""
        s, like = self.settings, self.head_weight
        start = torch.zeros(2, s.layers, 1, s.hidden, x0.shape[1], dtype=like.dtype)
        if s.start == "gaussian":
            start.normal_(generator=torch.Generator().manual_seed(s.start_seed))
        h, c = start.to(x0.device).expand(-1, -1, len(x0), -1, -1)
        return Hidden(tuple(h), tuple(c), problem.safe_step())

    def forward(self, view: View, memory: Hidden) -> tuple[Coefficients, Hidden]:
        """One step of the network for all coordinates."""
        point = view.y if self.looks_at == "y" else view.x
        out = torch.stack([point, view.at.grad], 1).to(self.head_weight.dtype)
        hs, cs = [], []
        for layer, (h, c) in enumerate(zip(memory.h, memory.c, strict=True)):
            W, U, bias = self.cells[3 * layer : 3 * layer + 3]
            out, c_next = LstmCell.apply(out, h, c, W, U, bias)
            hs.append(out)
            cs.append(c_next)
        out = torch.relu(linear(self.hidden_weight, out, self.hidden_bias))
        out = linear(self.head_weight, out, self.head_bias)
        coefficients = self._activate(out.to(view.x.dtype), memory.step, view.problem.r)
        return coefficients, Hidden(tuple(hs), tuple(cs), memory.step)

    def _activate(self, out: Tensor, step: Tensor, r: Penalty) -> Coefficients:
        raw = dict(zip(VARIANTS[self.settings.learns], out.unbind(1), strict=True))
        scale = {"p": 2.0, "a": 0.3, "b": 1.0}
        for name in raw:
            if name in ("b1", "b2"):
                continue
            if self.settings.activation == "sigmoid":
                raw[name] = 2 * torch.sigmoid(raw[name])
            else:
                raw[name] = scale[name] * softplus(raw[name])
        p = step * raw.pop("p") if "p" in raw else step
        return Coefficients(p=r.tie(p), **raw)
