"""The paper's rule: a coordinate-wise LSTM that reads iterate and gradient."""

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import softplus

from proxlearn.checks import check_seed
from proxlearn.errors import unknown
from proxlearn.penalties import Penalty
from proxlearn.problem import Problem
from proxlearn.rules.learned import LearnedRule, check_size, uniform
from proxlearn.rules.lstm import Hidden, Lstm, linear
from proxlearn.scheme import Coefficients, View

VARIANTS = {
    "p": ("p",),
    "a": ("a",),
    "pa": ("p", "a"),
    "pb1": ("p", "b1"),
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
            ("looks_at", ("x", "y")),
            ("start", ("zero", "gaussian")),
        ]:
            if getattr(self, name) not in known:
                raise unknown(name, getattr(self, name), known)
        check_seed(self.start_seed)
        check_size("hidden", self.hidden, 256)
        check_size("layers", self.layers, 8)


class Memory(NamedTuple):
    """State of the LSTM, and 1/L (B, 1)."""

    hidden: Hidden
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
        H = settings.hidden
        self.cells = Lstm(2, H, settings.layers, generator)
        draw = partial(uniform, generator, 1 / math.sqrt(H))
        outputs = len(VARIANTS[settings.learns])
        self.hidden_weight, self.hidden_bias = draw(H, H), draw(H, 1)
        self.head_weight, self.head_bias = draw(outputs, H), draw(outputs, 1)

    @property
    def gradients(self) -> int:
        """Two where both x_hat and y_hat, or a gradient at x, are needed."""
        return 2 if "b" in VARIANTS[self.settings.learns] or self.looks_at == "x" else 1

    def init(self, problem: Problem, x0: Tensor) -> Memory:
        """Zero, or one Gaussian draw shared by the instances."""
        hidden = self.cells.zero(x0)
        if self.settings.start == "gaussian":
            generator = torch.Generator().manual_seed(self.settings.start_seed)
            shape = (2, len(hidden.h), 1, *hidden.h[0].shape[1:])
            h, c = torch.randn(shape, dtype=hidden.h[0].dtype, generator=generator).to(x0.device)
            hidden = Hidden(*(tuple(part.expand(-1, len(x0), -1, -1)) for part in (h, c)))
        return Memory(hidden, problem.safe_step())

    def forward(self, view: View, memory: Memory) -> tuple[Coefficients, Memory]:
        """One step of the network for all coordinates."""
        point = view.y if self.looks_at == "y" else view.x
        out, hidden = self.cells.step(torch.stack([point, view.at.grad], 1), memory.hidden)
        out = torch.relu(linear(self.hidden_weight, out, self.hidden_bias))
        out = linear(self.head_weight, out, self.head_bias)
        coefficients = self._activate(out.to(view.x.dtype), memory.step, view.problem.r)
        return coefficients, Memory(hidden, memory.step)

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
