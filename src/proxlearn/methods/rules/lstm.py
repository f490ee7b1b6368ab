"""A long short-term memory cell for coordinates: features (B, F, n), state (B, H, n).

PyTorch's own cell works on rows (B*n, F), takes three times as long on a CPU, and keeps every
intermediate for the backward pass. With the coordinates last every gate is a contiguous block,
tanh(x) = 2 sigmoid(2x) - 1 lets one sigmoid serve all four gates, and only the activated gates
are kept.
"""

import hashlib
import math
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from proxlearn.methods.rules.learned import uniform
from proxlearn.problems.problem import Problem

STARTS = ("zero", "gaussian", "fresh")
"""Initial hidden states; `Lstm.start` says what each is."""


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

    def start(
        self, kind: str, problem: Problem, x0: Tensor, seed: int, scale: float = 1.0
    ) -> Hidden:
        """The state before the first iteration of a run.

        'zero' is a state of zeros. 'gaussian' is one standard normal draw for every coordinate,
        shared by all instances. 'fresh' is a draw of its own for every instance, as in the paper's
        code, which draws a new state for every run. Here the draw follows from `seed` and from the
        instance's own data, so that the same problem gets the same state alone and in a batch.
        """
        zero = self.zero(x0)
        if kind == "zero":
            return zero
        shared = kind == "gaussian"
        seeds = [seed] if shared else instance_seeds(problem, seed)
        shape = (2, self.layers, self.hidden, x0.shape[1])
        dtype = self[0].dtype if shared else torch.float32
        generators = [torch.Generator().manual_seed(s) for s in seeds]
        draws = torch.stack([torch.randn(shape, dtype=dtype, generator=g) for g in generators], 2)
        draws = (scale * draws).to(dtype=self[0].dtype, device=x0.device)
        h, c = draws.expand(-1, -1, len(x0), -1, -1)
        return Hidden(tuple(h), tuple(c))

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


def instance_seeds(problem: Problem, seed: int) -> list[int]:
    """A seed for every instance, from `seed` and the vectors of its smooth term, such as b.

    Matrices are left out: they are large, and instances that share b need no different seeds. The
    vectors are rounded to float32, so that the precision of the problem does not matter.
    """
    vectors = [
        v.expand(problem.batch, -1).to(torch.float32).cpu().contiguous().numpy()
        for v in problem.f.numbers()
        if v.ndim == 2 and v.layout == torch.strided and len(v) in (1, problem.batch)
    ]
    found = []
    for i in range(problem.batch):
        text = hashlib.blake2b(str(seed).encode(), digest_size=7)
        for v in vectors:
            text.update(v[i].tobytes())
        found.append(int.from_bytes(text.digest(), "little"))
    return found
