"""The paper's rule: a coordinate-wise LSTM that reads iterate and gradient."""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import softplus

from proxlearn.checks import check_choice, check_seed, check_size
from proxlearn.errors import InputError
from proxlearn.methods.rules.coefficient_network import Hidden, Layer, run
from proxlearn.methods.rules.learned_rule import UNITS, LearnedRule, uniform, unit_step
from proxlearn.methods.rules.lstm import STARTS, Lstm
from proxlearn.methods.scheme import Coefficients, View
from proxlearn.problems.penalties import Penalty
from proxlearn.problems.problem import Problem

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
BIAS_ACTIVATIONS = ("none", "sigmoid")


@dataclass(frozen=True)
class RecurrentSettings:
    """The settings that, with the weights, determine the rule."""

    learns: str = "pa"
    activation: str = "sigmoid"
    """'sigmoid': 2 sigmoid for p, a, b (the paper's LASSO). 'softplus': scaled by 2.0 for p and
    0.3 for a (its logistic regression)."""
    bias_activation: str = "none"
    """'none': b1 and b2 are the outputs of the network, and can be negative. 'sigmoid': as in the
    paper's code, which passes them through b's activation 2 sigmoid, and adds b1 inside the prox
    where the paper subtracts it: -b1 and b2 lie in (0, 2)."""
    unit: str = "lipschitz"
    """What p is a multiple of: 'lipschitz', 1/L. 'norm': as in the paper's code, 1/||A|| for a
    logistic or softmax loss and 1/L for least squares."""
    unit_scale: float = 1.0
    """A factor of the unit, for weights that were trained in the other one."""
    detach_inputs: bool = False
    """True: as in the paper's code, training treats the inputs of the LSTM as constants."""
    looks_at: str = "y"
    """'y': the rule reads y and grad f(y), one gradient an iteration. 'x': as printed in the paper,
    x and grad f(x), a second gradient."""
    start: str = "zero"
    """Initial hidden state: 'zero'; 'gaussian', drawn from `start_seed`, the same for every
    instance; or 'fresh', as in the paper's code, a Gaussian draw of its own for every instance,
    from `start_seed` and the instance's data. The same problem always gets the same answer."""
    start_seed: int = 0
    hidden: int = 20
    layers: int = 2

    def __post_init__(self) -> None:
        for name, known in [
            ("learns", VARIANTS),
            ("activation", ACTIVATIONS),
            ("bias_activation", BIAS_ACTIVATIONS),
            ("unit", UNITS),
            ("looks_at", ("x", "y")),
            ("start", STARTS),
        ]:
            check_choice(name, getattr(self, name), known)
        if not self.unit_scale > 0:
            raise InputError(f"setting unit_scale is {self.unit_scale}; expected a number > 0")
        check_seed(self.start_seed)
        check_size("hidden", self.hidden, 256)
        check_size("layers", self.layers, 8)


class Memory(NamedTuple):
    """State of the LSTM, and the step that p is a multiple of, (B, 1)."""

    hidden: Hidden
    step: Tensor


class RecurrentRule(LearnedRule):
    """o, h = LSTM(y, grad f(y), h);  p, a, ... = activation(MLP(o)), the same for all coordinates.

    The MLP is a hidden linear layer with ReLU and one output for each learned coefficient. p is a
    multiple of the setting `unit`. Weights only: the hidden state lives in the optimizer's state.
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

    def differentiable(self) -> "RecurrentRule":
        """The same weights with inputs that gradients pass through."""
        rule = RecurrentRule(replace(self.settings, detach_inputs=False))
        rule.load_state_dict(self.state_dict())
        return rule

    def init(self, problem: Problem, x0: Tensor) -> Memory:
        """The LSTM's initial state, and the unit of p."""
        settings = self.settings
        hidden = self.cells.start(settings.start, problem, x0, settings.start_seed)
        return Memory(hidden, settings.unit_scale * unit_step(problem, settings.unit))

    def forward(self, view: View, memory: Memory) -> tuple[Coefficients, Memory]:
        """One step of the network for all coordinates."""
        point = view.y if self.looks_at == "y" else view.x
        inputs = torch.stack([point, view.at.grad], 1)
        if self.settings.detach_inputs:
            inputs = inputs.detach()
        layers = [
            *self.cells.layers_of(),
            Layer("relu", (self.hidden_weight, self.hidden_bias)),
            Layer("linear", (self.head_weight, self.head_bias)),
        ]
        out, hidden = run(layers, inputs, memory.hidden)
        coefficients = self._activate(out.to(view.x.dtype), memory.step, view.problem.r)
        return coefficients, Memory(hidden, memory.step)

    def _activate(self, out: Tensor, step: Tensor, r: Penalty) -> Coefficients:
        """The coefficients from the outputs of the network, (B, outputs, n)."""
        raw = dict(zip(VARIANTS[self.settings.learns], out.unbind(1), strict=True))
        scale = {"p": 2.0, "a": 0.3, "b": 1.0}
        for name in raw:
            if name in ("b1", "b2"):
                if self.settings.bias_activation == "sigmoid":
                    sign = -2 if name == "b1" else 2
                    raw[name] = sign * torch.sigmoid(raw[name])
                continue
            if self.settings.activation == "sigmoid":
                raw[name] = 2 * torch.sigmoid(raw[name])
            else:
                raw[name] = scale[name] * softplus(raw[name])
        p = step * raw.pop("p") if "p" in raw else step
        return Coefficients(p=r.tie(p), **raw)
