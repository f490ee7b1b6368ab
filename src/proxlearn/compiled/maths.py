"""log and exp that the compiler can vectorise, and products of small matrices.

The library's log and exp are calls, one number at a time. These are plain arithmetic on the bits of
a number, so that a loop over them becomes vector instructions.
"""

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

OPTIONS: Any = {"fastmath": {"reassoc", "contract", "arcp", "nsz"}, "error_model": "numpy"}
"""Sums may be taken in any order, and 1/0 is infinite. NaN and infinity keep their meaning."""
Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a function when it is first called with arguments of some types."""
    made: Function = njit(**OPTIONS)(function)
    return made


def _bits(typing: Any, x: Any) -> Any:
    """The bits of a float32 as an int32, of a float64 as an int64."""
    target = types.int32 if x == types.float32 else types.int64

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(target))

    return target(x), build


def _number(typing: Any, x: Any) -> Any:
    """The float that has these bits."""
    target = types.float32 if x == types.int32 else types.float64

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(target))

    return target(x), build


bits: Any = intrinsic(_bits)
number: Any = intrinsic(_number)
F = types.float32
I = types.int32  # noqa: E741
LOG2E, LN2, SQRT2 = 1 / math.log(2), math.log(2), math.sqrt(2)


@compiled
def log32(v: Any) -> Any:
    """log v for v > 0, a float32, to 1e-7: v = 2^e m with m around 1, log m = 2 artanh(s)."""
    b = bits(v)
    e = F(I(b >> 23) - 127)
    m = number(I(I(b & 0x7FFFFF) | 0x3F800000))
    large = m > F(SQRT2)
    m = m * F(0.5) if large else m
    e = e + F(1) if large else e
    s = (m - F(1)) / (m + F(1))
    q = s * s
    series = F(1) + q * (F(1 / 3) + q * (F(1 / 5) + q * (F(1 / 7) + q * F(1 / 9))))
    return F(2) * s * series + e * F(LN2)


@compiled
def exp32(t: Any) -> Any:
    """exp t, a float32, to 1e-7 relatively; t is cut to [-87, 88]."""
    t = min(max(t, F(-87)), F(88))
    k = np.floor(t * F(LOG2E) + F(0.5))  # a float32, as everything here
    r = (t - k * F(0.693359375)) + k * F(2.12194440e-4)  # ln 2 in two parts
    series = F(1) + r * (
        F(1) + r * (F(1 / 2) + r * (F(1 / 6) + r * (F(1 / 24) + r * (F(1 / 120) + r * F(1 / 720)))))
    )
    return series * number(I((I(k) + 127) << 23))


PIECE = 512
"""Numbers of a row that are used at a time: eight rows of them stay in the nearest cache."""


@compiled
def gram(C: Any, weight: Any, first: int, k: int, H: Any) -> None:
    """H[s, t] = sum_i weight_i C[s, i] C[t, i] where first <= s < k or first <= t < k.

    C is (k, m). An empty weight stands for ones. Two rows by four at a time, piece by piece.
    """
    m = C.shape[1]
    H[first:k, :k] = 0.0
    one, two = np.empty(PIECE), np.empty(PIECE)
    for at in range(0, m, PIECE):
        end = min(at + PIECE, m)
        size = end - at
        for s in range(first, k, 2):
            pair = min(s + 1, k - 1)
            for i in range(size):
                w = weight[at + i] if len(weight) else 1.0
                one[i] = w * C[s, at + i]
                two[i] = w * C[pair, at + i] if pair > s else 0.0
            for t in range(0, pair + 1, 4):
                if t + 4 <= k:
                    _two_by_four(
                        one[:size], two[:size], C[t, at:end], C[t + 1, at:end],
                        C[t + 2, at:end], C[t + 3, at:end], H[s], H[pair], t,
                    )  # fmt: skip
                else:
                    for rest in range(t, k):
                        _two_by_one(one[:size], two[:size], C[rest, at:end], H[s], H[pair], rest)
    for s in range(first, k):
        for t in range(s):
            H[t, s] = H[s, t]


@compiled
def _two_by_four(
    one: Any, two: Any, c0: Any, c1: Any, c2: Any, c3: Any, H1: Any, H2: Any, t: int
) -> None:
    a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = 0.0
    for i in range(len(one)):
        a0 += one[i] * c0[i]
        a1 += one[i] * c1[i]
        a2 += one[i] * c2[i]
        a3 += one[i] * c3[i]
        b0 += two[i] * c0[i]
        b1 += two[i] * c1[i]
        b2 += two[i] * c2[i]
        b3 += two[i] * c3[i]
    H1[t] += a0
    H1[t + 1] += a1
    H1[t + 2] += a2
    H1[t + 3] += a3
    H2[t] += b0
    H2[t + 1] += b1
    H2[t + 2] += b2
    H2[t + 3] += b3


@compiled
def _two_by_one(one: Any, two: Any, c: Any, H1: Any, H2: Any, t: int) -> None:
    a = b = 0.0
    for i in range(len(one)):
        a += one[i] * c[i]
        b += two[i] * c[i]
    H1[t] += a
    H2[t] += b


@compiled
def dot(a: Any, b: Any) -> float:
    """<a, b> in float64."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@compiled
def row_dot(H: Any, i: int, v: Any, k: int) -> float:
    """<H[i, :k], v[:k]>, without the slices, which cost as much as the sum where k is small."""
    total = 0.0
    for j in range(k):
        total += H[i, j] * v[j]
    return total


@compiled
def cholesky(H: Any, k: int, first: int) -> bool:
    """The lower factor of H[:k, :k] in its place; False where H is not positive definite.

    The rows before `first` hold the factor already. Four rows at a time share what they read.
    """
    for i in range(first, k, 4):
        end = min(i + 4, k)
        if end == i + 4:
            for j in range(i):
                _four_rows(H, i, j)
        for row in range(i, end):
            for j in range(i if end == i + 4 else 0, row):
                H[row, j] = (H[row, j] - _rows_dot(H, row, j)) / H[j, j]
            rest = H[row, row] - _rows_dot(H, row, row)
            if not rest > 0:
                return False
            H[row, row] = math.sqrt(rest)
    return True


@compiled
def _rows_dot(H: Any, i: int, j: int) -> float:
    """<H[i, :j], H[j, :j]>."""
    total = 0.0
    for q in range(j):
        total += H[i, q] * H[j, q]
    return total


@compiled
def _four_rows(H: Any, i: int, j: int) -> None:
    """Column j of the factor in the rows i, ..., i+3."""
    s0 = s1 = s2 = s3 = 0.0
    for q in range(j):
        v = H[j, q]
        s0 += H[i, q] * v
        s1 += H[i + 1, q] * v
        s2 += H[i + 2, q] * v
        s3 += H[i + 3, q] * v
    inverse = 1 / H[j, j]
    H[i, j] = (H[i, j] - s0) * inverse
    H[i + 1, j] = (H[i + 1, j] - s1) * inverse
    H[i + 2, j] = (H[i + 2, j] - s2) * inverse
    H[i + 3, j] = (H[i + 3, j] - s3) * inverse


@compiled
def cholesky_solve(H: Any, k: int, v: Any) -> None:
    """v = (L L^T)^-1 v in its place."""
    for i in range(k):
        v[i] = (v[i] - row_dot(H, i, v, i)) / H[i, i]
    for i in range(k - 1, -1, -1):
        v[i] /= H[i, i]
        for j in range(i):
            v[j] -= H[i, j] * v[i]
