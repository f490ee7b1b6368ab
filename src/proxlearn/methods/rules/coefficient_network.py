"""Networks that are the same for all coordinates: features (B, F, n) to (B, outputs, n).

A network is a list of layers, dense ones and long short-term memory (LSTM) cells, whose state
(B, H, n) is an argument and a result. `run` has two ways to compute it. In float32 on a CPU it is
the compiled kernel (core/network.h), which takes a block of coordinates through all layers while
they are in the cache. Elsewhere it is PyTorch, whose derivatives the tests compare with those of
the kernel.
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
            W, U, bias = layer.weights
            x, c = lstm_cell(x, state.h[k], state.c[k], W, U, bias)
            hs.append(x)
            cs.append(c)
        else:
            x = ACTIVATIONS[layer.kind](linear(layer.weights[0], x, layer.weights[1]))
    return x, Hidden(tuple(hs), tuple(cs))


def linear(W: Tensor, x: Tensor, bias: Tensor) -> Tensor:
    """W x + bias for features x (B, F, n); bias is (H, 1), or (B, H, 1) for one an instance."""
    return torch.baddbmm(bias, W.expand(len(x), -1, -1), x)


def lstm_cell(
    x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, bias: Tensor
) -> tuple[Tensor, Tensor]:
    """The next (h, c) of a cell, whose gates i, f, o, g are in this order.

    i, f, o = sigmoid(W x + U h + bias)      g  = tanh(W x + U h + bias)
    c+ = f * c + i * g                       h+ = o * tanh(c+)
    """
    i, f, o, g = linear(W, x, linear(U, h, bias)).chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


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
