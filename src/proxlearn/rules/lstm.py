"""A long short-term memory cell for coordinates: features (B, F, n), state (B, H, n).

PyTorch's own cell works on rows (B*n, F), takes three times as long on a CPU, and keeps every
intermediate for the backward pass. With the coordinates last every gate is a contiguous block,
tanh(x) = 2 sigmoid(2x) - 1 lets one sigmoid serve all four gates, and only the activated gates
are kept.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from proxlearn.rules.learned import uniform


def linear(W: Tensor, x: Tensor, bias: Tensor) -> Tensor:
    """W x + bias for features x (B, F, n); bias is (H, 1), or (B, H, 1) for one an instance."""
    return torch.baddbmm(bias, W.expand(len(x), -1, -1), x)


class LstmCell(torch.autograd.Function):
    """(x, h, c, W, U, bias) -> (h+, c+), with the gates i, f, o, g in this order.

    i, f, o = sigmoid(W x + U h + bias)      g  = tanh(W x + U h + bias)
    c+ = f * c + i * g                       h+ = o * tanh(c+)
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, bias: Tensor
    ) -> tuple[Tensor, Tensor]:
        B, H = len(x), h.shape[1]
        z = torch.baddbmm(bias, U.expand(B, -1, -1), h).baddbmm_(W.expand(B, -1, -1), x)
        z[:, 3 * H :].mul_(2)
        z.sigmoid_()
        g = z[:, 3 * H :].mul_(2).sub_(1)
        i, f, o = z[:, :H], z[:, H : 2 * H], z[:, 2 * H : 3 * H]
        c_next = torch.addcmul(f * c, i, g)
        tanh_c = (2 * c_next).sigmoid_().mul_(2).sub_(1)
        ctx.save_for_backward(x, h, c, W, U, z, tanh_c)
        return o * tanh_c, c_next

    @staticmethod
    def backward(ctx: Any, dh: Tensor, dc: Tensor) -> tuple[Tensor | None, ...]:
        x, h, c, W, U, z, tanh_c = ctx.saved_tensors
        H = h.shape[1]
        i, f, o, g = z[:, :H], z[:, H : 2 * H], z[:, 2 * H : 3 * H], z[:, 3 * H :]
        dc = torch.addcmul(dc, dh * o, 1 - tanh_c.square())
        dz = torch.empty_like(z)
        torch.mul(dc, g, out=dz[:, :H])
        torch.mul(dc, c, out=dz[:, H : 2 * H])
        torch.mul(dh, tanh_c, out=dz[:, 2 * H : 3 * H])
        torch.mul(dc * i, 1 - g.square(), out=dz[:, 3 * H :])
        gates = z[:, : 3 * H]
        dz[:, : 3 * H].mul_(gates).mul_(1 - gates)
        dx = torch.bmm(W.mT.expand(len(x), -1, -1), dz) if ctx.needs_input_grad[0] else None
        dh_last = torch.bmm(U.mT.expand(len(x), -1, -1), dz) if ctx.needs_input_grad[1] else None
        dc_last = dc * f if ctx.needs_input_grad[2] else None
        dW, dU = torch.bmm(dz, x.mT).sum(0), torch.bmm(dz, h.mT).sum(0)
        return dx, dh_last, dc_last, dW, dU, dz.sum((0, 2))[:, None]


class Hidden(NamedTuple):
    """State of a stack of cells: h and c, (B, H, n), for each layer."""

    h: tuple[Tensor, ...]
    c: tuple[Tensor, ...]


class Lstm(nn.ParameterList):
    """A stack of cells: features (B, inputs, n) to (B, H, n), the same for all coordinates."""

    def __init__(
        self, inputs: int, hidden: int, layers: int, generator: torch.Generator | None
    ) -> None:
        super().__init__()
        self.hidden, self.layers = hidden, layers
        draw = partial(uniform, generator, 1 / math.sqrt(hidden))
        for _ in range(layers):
            self.extend([draw(4 * hidden, inputs), draw(4 * hidden, hidden), draw(4 * hidden, 1)])
            inputs = hidden

    def zero(self, x0: Tensor) -> Hidden:
        """A state of zeros for every coordinate of x0 (B, n)."""
        shape = (len(x0), self.hidden, x0.shape[1])
        zero = torch.zeros(shape, dtype=self[0].dtype, device=x0.device)
        return Hidden((zero,) * self.layers, (zero,) * self.layers)

    def step(self, x: Tensor, state: Hidden) -> tuple[Tensor, Hidden]:
        """One step of all layers: the features of the last one, and the next state."""
        hs, cs = [], []
        x = x.to(self[0].dtype)
        for layer, (h, c) in enumerate(zip(state.h, state.c, strict=True)):
            W, U, bias = (self[3 * layer + i] for i in range(3))
            x, c_next = LstmCell.apply(x, h, c, W, U, bias)
            hs.append(x)
            cs.append(c_next)
        return x, Hidden(tuple(hs), tuple(cs))
