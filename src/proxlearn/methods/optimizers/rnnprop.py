"""L2O-RNNprop (Lv et al., 2017): an LSTM on Adam's normalised gradient and momentum."""

import math
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from proxlearn.methods.optimizers.learned_update import LayeredSettings, LearnedUpdate
from proxlearn.methods.rules.coefficient_network import Hidden, Layer, run
from proxlearn.methods.rules.learned_rule import uniform
from proxlearn.methods.rules.lstm import Lstm

SCALE, BETA = 0.1, 0.95
"""Largest step of a coordinate, and the decay of both moments."""


class Memory(NamedTuple):
    """Moments m, v (B, n) and the state of the LSTM."""

    m: Tensor
    v: Tensor
    hidden: Hidden


class RnnProp(LearnedUpdate):
    """u = SCALE * tanh(W LSTM(input layer(g/sqrt(v), m/sqrt(v))) + bias), for every coordinate."""

    Settings = LayeredSettings
    name = "rnnprop"

    def __init__(self, settings: LayeredSettings, generator: torch.Generator | None = None):
        super().__init__(settings)
        H, inputs = settings.hidden, 2
        if settings.input_layer == "elu":
            first = partial(uniform, generator, 1 / math.sqrt(inputs))
            self.input_weight, self.input_bias, inputs = first(H, 2), first(H, 1), H
        self.cells = Lstm(inputs, H, settings.layers, generator)
        draw = partial(uniform, generator, 1 / math.sqrt(H))
        self.head_weight, self.head_bias = draw(1, H), draw(1, 1)

    def start(self, x0: Tensor, hidden: Hidden) -> Memory:
        zero = torch.zeros_like(x0)
        return Memory(zero, zero, hidden)

    def forward(self, g: Tensor, x: Tensor, k: int, memory: Memory) -> tuple[Tensor, Memory]:
        m = BETA * memory.m + (1 - BETA) * g
        v = BETA * memory.v + (1 - BETA) * g.square()
        unbias = 1 - BETA ** (k + 1)
        size = (v / unbias).sqrt() + 1e-8
        inputs = torch.stack([g / size, m / unbias / size], 1)
        layers = [*self.cells.layers_of(), Layer("linear", (self.head_weight, self.head_bias))]
        if self.settings.input_layer == "elu":
            layers.insert(0, Layer("elu", (self.input_weight, self.input_bias)))
        out, hidden = run(layers, inputs, memory.hidden)
        return SCALE * torch.tanh(out[:, 0]), Memory(m, v, hidden)
