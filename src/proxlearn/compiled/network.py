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
PIECE = 32
"""Coordinates that go through all layers at a time."""


def _tile(typing: Any, W: Any, inputs: Any, bias: Any, out: Any, h: Any, j: Any, least: Any) -> Any:
    """out = max(W^T inputs + bias, least) for the units h, ... and the coordinates j, ..., float32.

    W is (inputs, units), `inputs` and `out` are (inputs, PIECE) and (units, PIECE).
    """
    vector, word = ir.VectorType(ir.FloatType(), LANES), ir.IntType(32)
    fused = ("contract",)  # a product and a sum may be one instruction

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        arrays = zip(signature.args[:4], args[:4], strict=True)
        W, inputs, bias, out = (context.make_array(t)(context, builder, a) for t, a in arrays)
        h, j, least = args[4:]
        width, units = tools.unpack_tuple(builder, W.shape)

        def lanes(array: Any, row: Any) -> Any:
            place = builder.add(builder.mul(row, h.type(PIECE)), j)
            return builder.bitcast(builder.gep(array.data, [place]), vector.as_pointer())

        def spread(number: Any) -> Any:
            none = ir.Constant(vector, ir.Undefined)
            one = builder.insert_element(none, number, word(0))
            return builder.shuffle_vector(one, none, ir.VectorType(word, LANES)([0] * LANES))

        def of_units(array: Any, place: Any) -> list[Any]:
            places = [builder.add(place, h.type(u)) for u in range(UNITS)]
            return [spread(builder.load(builder.gep(array.data, [q]))) for q in places]

        sums = [tools.alloca_once(builder, vector) for _ in range(UNITS)]
        for start, total in zip(of_units(bias, h), sums, strict=True):
            builder.store(start, total)
        with tools.for_range(builder, width) as loop:
            x = builder.load(lanes(inputs, loop.index), align=4)
            row = of_units(W, builder.add(builder.mul(loop.index, units), h))
            for w, total in zip(row, sums, strict=True):
                product = builder.fmul(w, x, flags=fused)
                builder.store(builder.fadd(builder.load(total), product, flags=fused), total)
        floor = spread(least)
        for u, total in enumerate(sums):
            y = builder.load(total)
            y = builder.select(builder.fcmp_unordered(">", y, floor), y, floor)  # NaN stays
            builder.store(y, lanes(out, builder.add(h, h.type(u))), align=4)
        return context.get_dummy_value()

    size = types.intp
    return types.void(W, inputs, bias, out, size, size, types.float32), build


tile: Any = intrinsic(_tile)


@compiled
def layer(W: Any, inputs: Any, bias: Any, size: int, out: Any, least: float) -> None:
    """out = max(W^T inputs + bias, least) for the first `size` coordinates or a few more."""
    for j in range(0, size, LANES):
        for h in range(0, W.shape[1], UNITS):
            tile(W, inputs, bias, out, h, j, F(least))
