"""Layers of a small network, for some coordinates at a time.

What a layer reads and writes stays in the nearest cache, and a tile of its sums in registers: the
compiler does not find that by itself, so the instructions of a tile are written out.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from proxlearn.compiled.maths import F, compiled

tools: Any = cgutils
LANES, UNITS = 16, 4
"""Coordinates and units of a tile. Coordinates come in multiples of the one, units of the other."""


def _tile(typing: Any, W: Any, inputs: Any, bias: Any, out: Any, h: Any, j: Any) -> Any:
    """out[h:h+UNITS, j:j+LANES] = W[h:h+UNITS] inputs[:, j:j+LANES] + bias[h:h+UNITS], float32."""
    vector, word = ir.VectorType(ir.FloatType(), LANES), ir.IntType(32)
    fused = ("contract",)  # a product and a sum may be one instruction

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        arrays = zip(signature.args[:4], args[:4], strict=True)
        W, inputs, bias, out = (context.make_array(t)(context, builder, a) for t, a in arrays)
        h, j = args[4:]
        width = tools.unpack_tuple(builder, W.shape)[1]
        length = tools.unpack_tuple(builder, inputs.shape)[1]

        def place(array: Any, row: Any, columns: Any, column: Any) -> Any:
            return builder.gep(array.data, [builder.add(builder.mul(row, columns), column)])

        def lanes(array: Any, row: Any) -> Any:
            return builder.bitcast(place(array, row, length, j), vector.as_pointer())

        def spread(number: Any) -> Any:
            none = ir.Constant(vector, ir.Undefined)
            one = builder.insert_element(none, builder.load(number), word(0))
            return builder.shuffle_vector(one, none, ir.VectorType(word, LANES)([0] * LANES))

        rows = [builder.add(h, h.type(u)) for u in range(UNITS)]
        sums = [tools.alloca_once(builder, vector) for _ in rows]
        for row, total in zip(rows, sums, strict=True):
            builder.store(spread(builder.gep(bias.data, [row])), total)
        with tools.for_range(builder, width) as loop:
            x = builder.load(lanes(inputs, loop.index), align=4)
            for row, total in zip(rows, sums, strict=True):
                product = builder.fmul(spread(place(W, row, width, loop.index)), x, flags=fused)
                builder.store(builder.fadd(builder.load(total), product, flags=fused), total)
        for row, total in zip(rows, sums, strict=True):
            builder.store(builder.load(total), lanes(out, row), align=4)
        return context.get_dummy_value()

    return types.void(W, inputs, bias, out, types.intp, types.intp), build


tile: Any = intrinsic(_tile)


@compiled
def layer(W: Any, inputs: Any, bias: Any, size: int, out: Any, relu: bool) -> None:
    """out = W inputs + bias for the first `size` coordinates or a few more, then the ReLU."""
    for j in range(0, size, LANES):
        for h in range(0, len(W), UNITS):
            tile(W, inputs, bias, out, h, j)
    if relu:
        for h in range(len(W)):
            o = out[h]
            for j in range(size):
                o[j] = max(o[j], F(0))
