"""L2O-DM (Andrychowicz et al., 2016): an LSTM reads the gradient and writes the update."""

import math
from functools import partial

import torch
from torch import Tensor

from proxlearn.optimizers.learned import LearnedUpdate, NetworkSettings
from proxlearn.rules.learned import uniform
from proxlearn.rules.lstm import Hidden, Lstm, linear

SCALE = 0.1
"""Of the network's output."""
DECADES = 10.0
"""Gradients below exp(-this) are read linearly."""


class L2oDm(LearnedUpdate):
    """u = SCALE * W LSTM(preprocessed g) + bias, for every coordinate."""

    name = "l2o-dm"

    def __init__(self, settings: NetworkSettings, generator: torch.Generator | None = None):
        super().__init__(settings)
        self.cells = Lstm(2, settings.hidden, settings.layers, generator)
        draw = partial(uniform, generator, 1 / math.sqrt(settings.hidden))
        self.head_weight, self.head_bias = draw(1, settings.hidden), draw(1, 1)

    def start(self, x0: Tensor) -> Hidden:
        return self.cells.zero(x0)

    def forward(self, g: Tensor, k: int, memory: Hidden) -> tuple[Tensor, Hidden]:
        out, memory = self.cells.step(magnitude_and_sign(g), memory)
        return SCALE * linear(self.head_weight, out, self.head_bias)[:, 0], memory


def magnitude_and_sign(g: Tensor) -> Tensor:
    """(log|g| / DECADES, sign g), or (-1, exp(DECADES) g) where g is tiny; (B, 2, n)."""
    size = g.abs().clamp(min=math.exp(-DECADES))
    return torch.stack([size.log() / DECADES, g / size], 1)
