"""L2O-RNNprop (Lv et al., 2017): an LSTM on Adam's normalised gradient and momentum."""

import math
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from proxlearn.optimizers.learned import LearnedUpdate, NetworkSettings
from proxlearn.rules.learned import uniform
from proxlearn.rules.lstm import Hidden, Lstm, linear

SCALE, BETA = 0.1, 0.95
"""Largest step of a coordinate, and the decay of both moments."""


class Memory(NamedTuple):
    """Moments m, v (B, n) and the state of the LSTM."""

    m: Tensor
    v: Tensor
    hidden: Hidden


class RnnProp(LearnedUpdate):
    """u = SCALE * tanh(W LSTM(g/sqrt(v), m/sqrt(v)) + bias), for every coordinate."""

    name = "rnnprop"

    def __init__(self, settings: NetworkSettings, generator: torch.Generator | None = None):
        super().__init__(settings)
        self.cells = Lstm(2, settings.hidden, settings.layers, generator)
        draw = partial(uniform, generator, 1 / math.sqrt(settings.hidden))
        self.head_weight, self.head_bias = draw(1, settings.hidden), draw(1, 1)

    def start(self, x0: Tensor) -> Memory:
        zero = torch.zeros_like(x0)
        return Memory(zero, zero, self.cells.zero(x0))

    def forward(self, g: Tensor, k: int, memory: Memory) -> tuple[Tensor, Memory]:
        m = BETA * memory.m + (1 - BETA) * g
        v = BETA * memory.v + (1 - BETA) * g.square()
        unbias = 1 - BETA ** (k + 1)
        size = (v / unbias).sqrt() + 1e-8
        inputs = torch.stack([g / size, m / unbias / size], 1)
        out, hidden = self.cells.step(inputs, memory.hidden)
        u = SCALE * torch.tanh(linear(self.head_weight, out, self.head_bias)[:, 0])
        return u, Memory(m, v, hidden)
