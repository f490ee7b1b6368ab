"""f of one instance, in float32 for the iterations and in float64 after: three kinds of data.

A dense A, a sparse one (compressed by rows and by columns), and the Gram matrix of an A that the
instances share, where an iteration of least squares does not look at A at all. For each kind:

    instance   the i-th instance of a batch, arrays with a leading axis of 1 being shared
    gradient   g = grad f(y), float32; f(y), |u|^2 and <u, b> with u = grad phi(A y)
    value      f(x), float64
    pull       g = grad f(x), float64
    dual       phi*(s u)
    grow       the columns of active coordinates, and their Gram matrix
"""

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from proxlearn.compiled.losses import dloss, dloss32, dual_loss, dual_loss32
from proxlearn.compiled.maths import OPTIONS, F, compiled, dot, gram

BLOCK = 4096
"""Numbers of A in a block of rows, which stays in the nearest cache between its two uses."""

ROUNDED = 1e-14
"""Of |b|^2, by which sums that stand for residuals may be wrong where the residuals are unknown."""


class Dense(NamedTuple):
    """A (B, m, n), its float32 copy (empty: made when needed), b (B, m); or of one instance."""

    loss: int
    A: Any
    A32: Any
    b: Any
    b32: Any


class Sparse(NamedTuple):
    """A by rows and by columns, shared by the instances, and b (B, m)."""

    loss: int
    starts: Any
    places: Any
    values32: Any
    t_starts: Any
    t_places: Any
    t_values: Any
    b: Any
    b32: Any


class Gram(NamedTuple):
    """G = A^T A (n, n), c = A^T b (B, n), |b|^2 (B, 1); the loss is least squares."""

    loss: int
    G: Any
    G32: Any
    c: Any
    bb: Any


@compiled
def _one(a: Any, i: int) -> Any:
    return a[i if len(a) > 1 else 0]


@compiled
def dense_instance(d: Dense, i: int) -> Dense:
    A, b = _one(d.A, i), _one(d.b, i)
    A32 = _one(d.A32, i) if len(d.A32) else A.astype(np.float32)
    return Dense(d.loss, A, A32, b, _one(d.b32, i))


@compiled
def sparse_instance(d: Sparse, i: int) -> Sparse:
    return Sparse(
        d.loss, d.starts, d.places, d.values32, d.t_starts, d.t_places, d.t_values,
        _one(d.b, i), _one(d.b32, i),
    )  # fmt: skip


@compiled
def gram_instance(d: Gram, i: int) -> Gram:
    return Gram(d.loss, d.G, d.G32, _one(d.c, i), _one(d.bb, i))


@compiled
def _dots(A: Any, y: Any, z: Any) -> None:
    """z = A y, four rows at a time."""
    m, n = A.shape
    whole = m - m % 4
    for i in range(0, whole, 4):
        a0, a1, a2, a3 = A[i], A[i + 1], A[i + 2], A[i + 3]
        z0 = z1 = z2 = z3 = F(0)
        for j in range(n):
            z0 += a0[j] * y[j]
            z1 += a1[j] * y[j]
            z2 += a2[j] * y[j]
            z3 += a3[j] * y[j]
        z[i], z[i + 1], z[i + 2], z[i + 3] = z0, z1, z2, z3
    for i in range(whole, m):
        a0, z0 = A[i], F(0)
        for j in range(n):
            z0 += a0[j] * y[j]
        z[i] = z0


@compiled
def add_rows(A: Any, u: Any, g: Any) -> None:
    """g += A^T u, four rows at a time, in the precision of g."""
    m, n = A.shape
    whole = m - m % 4
    for i in range(0, whole, 4):
        a0, a1, a2, a3 = A[i], A[i + 1], A[i + 2], A[i + 3]
        u0, u1, u2, u3 = u[i], u[i + 1], u[i + 2], u[i + 3]
        for j in range(n):
            g[j] += u0 * a0[j] + u1 * a1[j] + u2 * a2[j] + u3 * a3[j]
    for i in range(whole, m):
        a0, u0 = A[i], u[i]
        for j in range(n):
            g[j] += u0 * a0[j]


@compiled
def dense_gradient(d: Dense, y: Any, z: Any, u: Any, g: Any) -> tuple[float, float, float]:
    """One pass over A: each block of rows gives A y, then u, then its part of A^T u."""
    m, n = d.A32.shape
    value = uu = ub = 0.0
    g[:] = F(0)
    rows = max(BLOCK // n // 4, 1) * 4
    for first in range(0, m, rows):
        end = min(first + rows, m)
        A, z_some, u_some = d.A32[first:end], z[first:end], u[first:end]
        _dots(A, y, z_some)
        v, squares, across = dloss32(d.loss, z_some, d.b32[first:end], m, u_some)
        add_rows(A, u_some, g)
        value += v
        uu += squares
        ub += across
    return value, uu, ub


@compiled
def dense_normal(d: Dense, q: Any, z: Any, g: Any) -> None:
    m, n = d.A32.shape
    g[:] = F(0)
    rows = max(BLOCK // n // 4, 1) * 4
    for first in range(0, m, rows):
        end = min(first + rows, m)
        _dots(d.A32[first:end], q, z[first:end])
        add_rows(d.A32[first:end], z[first:end], g)


@compiled
def no_normal(d: Any, q: Any, z: Any, g: Any) -> None:
    """A sparse A has a norm that is known."""
    g[:] = F(0)


@compiled
def gram_normal(d: Gram, q: Any, z: Any, g: Any) -> None:
    _dots(d.G32, q, g)


@compiled
def dense_value(d: Dense, index: Any, w: Any, columns: Any, u: Any) -> float:
    z = np.zeros(len(u))
    if len(columns):
        for t in range(len(index)):
            column, v = columns[t], w[t]
            for i in range(len(z)):
                z[i] += v * column[i]
    else:
        for i in range(len(z)):
            row, total = d.A[i], 0.0
            for t in range(len(index)):
                total += row[index[t]] * w[t]
            z[i] = total
    return dloss(d.loss, z, d.b, u)


@compiled
def dense_pull(d: Dense, index: Any, w: Any, u: Any, g: Any) -> tuple[float, float]:
    g[:] = 0.0
    add_rows(d.A, u, g)
    return 0.0, 0.0


@compiled
def dense_grow(
    d: Dense, index: Any, first: int, k: int, columns: Any, H: Any, formed: bool
) -> None:
    for i in range(d.A.shape[0]):
        row = d.A[i]
        for t in range(first, k):
            columns[t, i] = row[index[t]]
    if formed:
        gram(columns, columns[0, :0], first, k, H)


@compiled
def sparse_gradient(d: Sparse, y: Any, z: Any, u: Any, g: Any) -> tuple[float, float, float]:
    m = len(u)
    for i in range(m):
        total = F(0)
        for e in range(d.starts[i], d.starts[i + 1]):
            total += d.values32[e] * y[d.places[e]]
        z[i] = total
    out = dloss32(d.loss, z, d.b32, m, u)
    g[:] = F(0)
    for i in range(m):
        for e in range(d.starts[i], d.starts[i + 1]):
            g[d.places[e]] += d.values32[e] * u[i]
    return out


@compiled
def sparse_value(d: Sparse, index: Any, w: Any, columns: Any, u: Any) -> float:
    z = np.zeros(len(u))
    for t in range(len(index)):
        for e in range(d.t_starts[index[t]], d.t_starts[index[t] + 1]):
            z[d.t_places[e]] += d.t_values[e] * w[t]
    return dloss(d.loss, z, d.b, u)


@compiled
def sparse_pull(d: Sparse, index: Any, w: Any, u: Any, g: Any) -> tuple[float, float]:
    for j in range(len(g)):
        total = 0.0
        for e in range(d.t_starts[j], d.t_starts[j + 1]):
            total += d.t_values[e] * u[d.t_places[e]]
        g[j] = total
    return 0.0, 0.0


@compiled
def sparse_grow(
    d: Sparse, index: Any, first: int, k: int, columns: Any, H: Any, formed: bool
) -> None:
    for t in range(first, k):
        columns[t] = 0.0
        for e in range(d.t_starts[index[t]], d.t_starts[index[t] + 1]):
            columns[t, d.t_places[e]] = d.t_values[e]
    if formed:
        gram(columns, columns[0, :0], first, k, H)


@compiled
def gram_gradient(d: Gram, y: Any, z: Any, u: Any, g: Any) -> tuple[float, float, float]:
    """g = G y - c over the non-zeros of y; |u|^2 = y^T G y - 2 c^T y + |b|^2."""
    n, c = len(g), d.c
    for j in range(n):
        g[j] = F(-c[j])
    for i in range(n):
        if y[i] != 0:
            row, t = d.G32[i], y[i]
            for j in range(n):
                g[j] += t * row[j]
    yg = cy = F(0)
    for j in range(n):
        yg += y[j] * g[j]
        cy += y[j] * F(c[j])
    bb = d.bb[0]
    uu = float(yg) - float(cy) + bb
    return 0.5 * uu, uu, float(cy) - bb


@compiled
def gram_value(d: Gram, index: Any, w: Any, columns: Any, u: Any) -> float:
    """|u|^2/2 = (x^T G x - 2 c^T x + |b|^2)/2."""
    total: float = d.bb[0]
    for t in range(len(index)):
        i, slope = index[t], 0.0
        for q in range(t):
            slope += d.G[i, index[q]] * w[q]
        total += w[t] * (2 * (slope - d.c[i]) + d.G[i, i] * w[t])
    return max(0.5 * total, 0.0)


@compiled
def gram_pull(d: Gram, index: Any, w: Any, u: Any, g: Any) -> tuple[float, float]:
    """g = G x - c, four rows of G at a time; |u|^2 and <u, b>."""
    G, k = d.G, len(index)
    whole = k - k % 4
    for j in range(len(g)):
        g[j] = -d.c[j]
    for t in range(0, whole, 4):
        i0, i1, i2, i3 = index[t], index[t + 1], index[t + 2], index[t + 3]
        w0, w1, w2, w3 = w[t], w[t + 1], w[t + 2], w[t + 3]
        for j in range(len(g)):
            g[j] += w0 * G[i0, j] + w1 * G[i1, j] + w2 * G[i2, j] + w3 * G[i3, j]
    for t in range(whole, k):
        i0, w0 = index[t], w[t]
        for j in range(len(g)):
            g[j] += w0 * G[i0, j]
    cx = xg = 0.0
    for t in range(k):
        cx += w[t] * d.c[index[t]]
        xg += w[t] * g[index[t]]
    bb: float = d.bb[0]
    return max(xg - cx + bb, 0.0), cx - bb


@compiled
def gram_grow(d: Gram, index: Any, first: int, k: int, columns: Any, H: Any, formed: bool) -> None:
    for a in range(k):
        row = d.G[index[a]]
        for b in range(0 if a >= first else first, k):
            H[a, b] = row[index[b]]


@compiled
def gram_dual(d: Gram, u: Any, s: float, uu: float, ub: float) -> float:
    """And what the rounding of numbers as large as |b|^2 may have taken from the gap."""
    bb: float = d.bb[0]
    return 0.5 * s * s * uu + s * ub + ROUNDED * bb


@compiled
def rows_dual(d: Any, u: Any, s: float, uu: float, ub: float) -> float:
    return dual_loss(d.loss, u, d.b, s)


@compiled
def rows_dual32(d: Any, u: Any, s: float, uu: float, ub: float) -> float:
    return dual_loss32(d.loss, u, d.b32, s, uu, ub)


@compiled
def gram_correlation(d: Gram, t: int, i: int, columns: Any) -> float:
    value: float = d.c[i]
    return value


@compiled
def rows_correlation(d: Any, t: int, i: int, columns: Any) -> float:
    return dot(columns[t], d.b)


def instance(d: Any, i: int) -> Any:
    """The i-th instance."""


def gradient(d: Any, y: Any, z: Any, u: Any, g: Any) -> Any:
    """g = grad f(y), float32; f(y), |u|^2 and <u, b>."""


def normal(d: Any, q: Any, z: Any, g: Any) -> Any:
    """g = A^T A q, float32."""


def dual32(d: Any, u: Any, s: float, uu: float, ub: float) -> Any:
    """phi*(s u), float32."""


def value(d: Any, index: Any, w: Any, columns: Any, u: Any) -> Any:
    """f(x), float64, and u, for the x with the values w in the places `index`.

    `columns` are those of these coordinates, where they are known, else empty.
    """


def pull(d: Any, index: Any, w: Any, u: Any, g: Any) -> Any:
    """g = grad f(x), float64, after `value`; |u|^2 and <u, b> where u is not kept."""


def dual(d: Any, u: Any, s: float, uu: float, ub: float) -> Any:
    """phi*(s u), float64, after `pull`."""


def grow(d: Any, index: Any, first: int, k: int, columns: Any, H: Any, formed: bool) -> Any:
    """Columns and, if `formed`, Gram matrix of the active coordinates first, ..., k-1 too."""


def correlation(d: Any, t: int, i: int, columns: Any) -> Any:
    """<a_i, b>, where i is the t-th active coordinate."""


def by_kind(function: Any, dense: Any, sparse: Any, gram: Any) -> None:
    """Calls of `function` with data of a kind are calls of that kind's function."""
    kinds = {Dense: dense, Sparse: sparse, Gram: gram}

    def choose(d: Any, *rest: Any) -> Any:
        return kinds[d.instance_class].py_func

    overload(function, jit_options=OPTIONS, strict=False)(choose)


by_kind(instance, dense_instance, sparse_instance, gram_instance)
by_kind(gradient, dense_gradient, sparse_gradient, gram_gradient)
by_kind(normal, dense_normal, no_normal, gram_normal)
by_kind(dual32, rows_dual32, rows_dual32, gram_dual)
by_kind(value, dense_value, sparse_value, gram_value)
by_kind(pull, dense_pull, sparse_pull, gram_pull)
by_kind(dual, rows_dual, rows_dual, gram_dual)
by_kind(grow, dense_grow, sparse_grow, gram_grow)
by_kind(correlation, rows_correlation, rows_correlation, gram_correlation)
