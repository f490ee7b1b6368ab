"""Networks that are the same for all coordinates: features (B, F, n) to (B, outputs, n).

A network is a list of layers, dense ones and long short-term memory (LSTM) cells, whose state
(B, H, n) is an argument and a result. `run` has two ways to compute it. In float32 on a CPU it is
the compiled kernel (core/network.h), which takes a block of coordinates through all layers while
they are in the cache. Elsewhere it is PyTorch. Both have the same derivatives; the tests compare
them.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import elu

from proxlearn.core import load
from proxlearn.problems.threads import share

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "linear": lambda z: z,
    "relu": torch.relu,
    "elu": elu,
}


class Layer(NamedTuple):
    """A dense layer (W, bias), or an LSTM cell (W, U, bias) of kind 'lstm'."""

    kind: str
    weights: tuple[Tensor, ...]


class Hidden(NamedTuple):
    """State of a stack of cells: h and c, (B, H, n), for each cell."""

    h: tuple[Tensor, ...]
    c: tuple[Tensor, ...]


def run(layers: Sequence[Layer], x: Tensor, state: Hidden) -> tuple[Tensor, Hidden]:
    """The output of the last layer, (B, outputs, n), and the next state."""
    weights = [w for layer in layers for w in layer.weights]
    x = x.to(weights[0].dtype)
    cells = len(state.h)
    if x.dtype == torch.float32 and x.device.type == "cpu" and x.numel() > 0:
        kinds = tuple(layer.kind for layer in layers)
        found: Any = CompiledNetwork.apply(kinds, cells, x, *state.h, *state.c, *weights)  # type: ignore[no-untyped-call]
        out, *after = found
        return out, Hidden(tuple(after[:cells]), tuple(after[cells:]))
    hs: list[Tensor] = []
    cs: list[Tensor] = []
    for layer in layers:
        if layer.kind == "lstm":
            k = len(hs)
            x, c = LstmCell.apply(x, state.h[k], state.c[k], *layer.weights)  # type: ignore[no-untyped-call]
            hs.append(x)
            cs.append(c)
        else:
            x = ACTIVATIONS[layer.kind](linear(layer.weights[0], x, layer.weights[1]))
    return x, Hidden(tuple(hs), tuple(cs))


def linear(W: Tensor, x: Tensor, bias: Tensor) -> Tensor:
    """W x + bias for features x (B, F, n); bias is (H, 1), or (B, H, 1) for one an instance."""
    return torch.baddbmm(bias, W.expand(len(x), -1, -1), x)


class LstmCell(torch.autograd.Function):
    """(x, h, c, W, U, bias) -> (h+, c+), with the gates i, f, o, g in this order.

    i, f, o = sigmoid(W x + U h + bias)      g  = tanh(W x + U h + bias)
    c+ = f * c + i * g                       h+ = o * tanh(c+)

    PyTorch's own cell works on rows (B*n, F), takes three times as long on a CPU, and keeps every
    intermediate for the backward pass. With the coordinates last every gate is a contiguous block,
    tanh(x) = 2 sigmoid(2x) - 1 lets one sigmoid serve all four gates, and only the activated gates
    are kept.
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


class CompiledNetwork(torch.autograd.Function):
    """(kinds, cells, x, h of all cells, c of all cells, all weights) -> (out, next h, next c)."""

    @staticmethod
    def forward(ctx: Any, kinds: tuple[str, ...], cells: int, *tensors: Tensor) -> Any:
        x, hs, cs, weights = _parts(kinds, cells, tensors)
        ctx.kinds, ctx.cells = kinds, cells
        ctx.save_for_backward(*tensors)
        ctx.set_materialize_grads(False)
        out = x.new_empty(len(x), len(weights[-1][-1]), x.shape[2])
        after = [[torch.empty(h.shape) for h in hs] for _ in range(2)]
        states = [tuple(map(_array, pair)) for pair in zip(*after, strict=True)]

        def work(first: int, last: int) -> None:
            _stack(kinds, x, hs, cs, weights).forward(_array(out), states, first, last)

        share(x.shape[0] * x.shape[2], work, _kernel().BLOCK)
        return (out, *after[0], *after[1])

    @staticmethod
    def backward(ctx: Any, *by: Tensor | None) -> tuple[Tensor | None, ...]:
        cells, needs = ctx.cells, ctx.needs_input_grad
        x, hs, cs, weights = _parts(ctx.kinds, cells, ctx.saved_tensors)
        given = [None if d is None else _array(d.contiguous()) for d in by]
        dx = torch.empty(x.shape) if needs[2] else None
        state = [torch.empty(h.shape) if needs[3] else None for h in (*hs, *cs)]
        incoming = list(zip(given[1 : 1 + cells], given[1 + cells :], strict=True))
        written = [None if d is None else _array(d) for d in state]
        outgoing = list(zip(written[:cells], written[cells:], strict=True))
        transposed = [_array(torch.cat(w, 1).mT.contiguous()) for w in weights]

        def work(first: int, last: int) -> Any:
            stack = _stack(ctx.kinds, x, hs, cs, weights)
            to = None if dx is None else _array(dx)
            return stack.backward(given[0], to, transposed, incoming, outgoing, first, last)

        found = share(x.shape[0] * x.shape[2], work, _kernel().BLOCK)
        by_weights = []
        for several, layer in zip(zip(*found, strict=True), weights, strict=True):
            total = torch.from_numpy(sum(several[1:], several[0]))
            by_weights += total.split([w.shape[1] for w in layer], 1)
        return (None, None, dx, *state, *by_weights)


def _parts(kinds: Sequence[str], cells: int, tensors: Sequence[Tensor]) -> Any:
    """x, h of all cells, c of all cells, and the weights of each layer."""
    x, *rest = (t.detach().contiguous() for t in tensors)
    flat = iter(rest[2 * cells :])
    weights = [tuple(next(flat) for _ in range(3 if k == "lstm" else 2)) for k in kinds]
    return x, rest[:cells], rest[cells : 2 * cells], weights


def _stack(kinds: Sequence[str], x: Tensor, hs: Any, cs: Any, weights: Any) -> Any:
    """The kernel's object for a network: it has room for one thread."""
    matrices = [_array(torch.cat(w, 1)) for w in weights]
    states = [(_array(h), _array(c)) for h, c in zip(hs, cs, strict=True)]
    return _kernel().Stack(kinds, matrices, _array(x), states)


def _array(tensor: Tensor) -> Any:
    """The same memory as a NumPy array."""
    return tensor.detach().numpy()


@cache
def _kernel() -> Any:
    return load("network")
