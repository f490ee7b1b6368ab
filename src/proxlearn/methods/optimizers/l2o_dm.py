"""L2O-DM (Andrychowicz et al., 2016): an LSTM reads the gradient and writes the update."""

import math
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import elu

from proxlearn.checks import check_choice
from proxlearn.methods.optimizers.learned_update import LearnedUpdate, NetworkSettings
from proxlearn.methods.rules.coefficient_network import Hidden, Layer, run
from proxlearn.methods.rules.learned_rule import uniform
from proxlearn.methods.rules.lstm import Lstm

SCALE = 0.1
"""Factor of the network's output."""
DECADES = 10.0
"""Gradients below exp(-DECADES) are passed on linearly, larger ones as logarithms."""


INPUTS = ("log-sign", "plain")
OUTPUTS = ("linear", "elu")


@dataclass(frozen=True)
class L2oDmSettings(NetworkSettings):
    """What the network reads and how it writes, beside the sizes of the LSTM."""

    inputs: str = "log-sign"
    """'log-sign': log|g| and sign g, the preprocessing of Andrychowicz et al. (2016). 'plain': g
    and x as they are, which the paper states and its code does."""
    output: str = "linear"
    """'linear': u is SCALE times the network's output. 'elu': as in the paper's code, ELU of the
    output, so that no coordinate falls by more than SCALE in an iteration."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, known in [("inputs", INPUTS), ("output", OUTPUTS)]:
            check_choice(name, getattr(self, name), known)


class L2oDm(LearnedUpdate):
    """u = SCALE * output(W LSTM(inputs) + bias), for every coordinate."""

    Settings = L2oDmSettings
    name = "l2o-dm"

    def __init__(self, settings: L2oDmSettings, generator: torch.Generator | None = None):
        super().__init__(settings)
        self.cells = Lstm(2, settings.hidden, settings.layers, generator)
        draw = partial(uniform, generator, 1 / math.sqrt(settings.hidden))
        self.head_weight, self.head_bias = draw(1, settings.hidden), draw(1, 1)

    def start(self, x0: Tensor, hidden: Hidden) -> Hidden:
        return hidden

    def forward(self, g: Tensor, x: Tensor, k: int, memory: Hidden) -> tuple[Tensor, Hidden]:
        plain = self.settings.inputs == "plain"
        inputs = torch.stack([g, x], 1) if plain else magnitude_and_sign(g)
        layers = [*self.cells.layers_of(), Layer("linear", (self.head_weight, self.head_bias))]
        out, memory = run(layers, inputs, memory)
        u = out[:, 0]
        return SCALE * (elu(u) if self.settings.output == "elu" else u), memory


def magnitude_and_sign(g: Tensor) -> Tensor:
    """(log|g| / DECADES, sign g), or (-1, exp(DECADES) g) where g is tiny; (B, 2, n)."""
    size = g.abs().clamp(min=math.exp(-DECADES))
    return torch.stack([size.log() / DECADES, g / size], 1)
