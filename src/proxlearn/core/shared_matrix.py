"""Least squares problems that differ in b alone, prepared for the active-set method of the core.

The method works on the Gram matrix of all columns, so that A must have few enough of them. Columns
are centred and multiplied by the square roots of the sample weights once, in float64.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.linalg import LinAlgError, cholesky

from proxlearn.core import kernel
from proxlearn.core.dual_cone import strictly_feasible

Array = npt.NDArray[np.float64]

LANES = 8
"""Numbers that the core takes at a time; the rows of its arrays are padded to a multiple."""
PANEL = 16
"""Columns of A in a panel of A^T b, and numbers of float32 that the core takes at a time."""
MOST_COLUMNS = 2048
"""Columns up to which the Gram matrix is used: it takes 32 MiB then."""
MOST_ENTRIES = 2**24
"""Entries of A up to which its columns are copied: 128 MiB."""
PART = 0.4
"""Part of the largest violation that others must have to join with it. On patches, LASSO 500x300
and NNLS 100x200, 0.35 and 0.5 take as long, 0.2 and 0.7 up to 1.4 times (November 2026)."""
FIRST_NEW = 8
"""Most variables that join at first; on the same data 4 and 16 take up to 1.2 times as long."""


@dataclass(frozen=True)
class Shared:
    """What `SharedProblems` of the core reads; see gram_factor.h for the letters."""

    H: Array
    columns: Array
    panels: Array
    rows: Array
    """l1, l2, either, norms, price and limits, (6, wide)."""
    factor: Array | None
    inverse: Array | None
    unit: npt.NDArray[np.float32] | None
    """The Gram matrix of columns of length 1, (n, small), where a greedy start pays."""
    curve: npt.NDArray[np.float32] | None
    direction: Array | None
    slope: Array | None
    radius: float
    sum_weight: float
    level: float
    rounding: float
    most_new: int
    part: float
    one_sided: bool
    one_sign: bool
    quadratic: bool
    reported: int
    nearest: Array
    """A x at the feasible point nearest to 0, (m,)."""


def padded(array: Array, multiple: int) -> Array:
    """The array with zeros behind its last axis, up to a multiple of a length."""
    extra = -array.shape[-1] % multiple
    if extra == 0:
        return np.ascontiguousarray(array)
    out = np.zeros((*array.shape[:-1], array.shape[-1] + extra))
    out[..., : array.shape[-1]] = array
    return out


def is_covered(A: Any, rows: tuple[Any, ...]) -> bool:
    """True where every coordinate has an l1 penalty or is non-negative, and A is not too large."""
    m, n = A.shape
    l1, _, lower, upper = rows
    bounds = np.all((lower == 0) | ((lower == -np.inf) & (np.asarray(l1) > 0)))
    return bool(bounds and np.all(upper == np.inf) and n <= MOST_COLUMNS and m * n <= MOST_ENTRIES)


def prepared(
    A: Any, s: Array | None, rows: tuple[Any, ...], mean: Array | None, tol: float,
    radius: float = 0.0, slack: bool = False,
) -> Shared:  # fmt: skip
    """Prepare A (m, n), dense or sparse, with weights s (m,) and columns centred at `mean`.

    `rows` are l1, l2, lower and upper, numbers or (n,). With a radius, x is on the simplex of that
    radius, or with `slack` its sum is at most the radius.
    """
    columns = _columns(A, s, mean)
    if slack:
        columns = np.vstack([columns, np.zeros(columns.shape[1])])
    n, m = columns.shape
    gram = kernel.gram_of_rows(columns)
    nearest = columns.sum(axis=0) * (0.0 if slack else radius / n)
    weight = _sum_weight(gram.diagonal())
    if radius > 0:
        gram += weight  # as if a row of A had the square root of the weight in every column
    l1, l2, lower, _ = (
        np.broadcast_to(np.asarray(row, dtype=np.float64), (A.shape[1],)) for row in rows
    )
    norms = np.sqrt(gram.diagonal())
    price = np.divide(1.0, norms, out=np.zeros(n), where=norms > 0)
    table = np.zeros((6, n))
    table[:3, : A.shape[1]] = l1, l2, lower < 0
    table[3], table[4] = norms, price
    limited = (table[0] > 0) & (table[1] == 0)
    table[5, limited] = 1.0 / table[0, limited]
    one_sided = radius == 0 and bool(((l1 == 0) & (l2 == 0)).any())
    direction = slope = None
    if one_sided:
        ones = np.ones(A.shape[0]) if s is None else s
        inward = strictly_feasible(A, ones, (l1, l2, lower, np.full(n, np.inf)), mean)
        if inward is not None:
            root = inward.direction if s is None else np.sqrt(s) * inward.direction
            direction, slope = padded(root, LANES), padded(inward.slope, PANEL)
    bounded = bool((l1 > 0).all())
    unit = curve = None
    if bounded and radius == 0:
        unit = padded(gram * price * price[:, None], PANEL).astype(np.float32)
        curve = padded(1.0 / (1.0 + table[1] * price * price), PANEL).astype(np.float32)
    factor = inverse = None
    if not (bounded or slack) and 2 * n <= m:
        factor, inverse = _factor(gram + np.diag(table[1]))
    return Shared(
        H=padded(gram, PANEL), columns=padded(columns, LANES), panels=_panels(columns),
        rows=padded(table, PANEL), direction=direction, slope=slope,
        factor=factor, inverse=inverse, unit=unit, curve=curve,
        radius=radius, sum_weight=weight, level=0.01 * tol * float((l1 * price[: len(l1)]).min()),
        rounding=(m + 4 * n) * float(np.finfo(float).eps), most_new=FIRST_NEW, part=PART,
        one_sided=one_sided, one_sign=bool((lower == 0).all()), quadratic=bool((l2 > 0).any()),
        reported=A.shape[1], nearest=nearest,
    )  # fmt: skip


def _sum_weight(squares: Array) -> float:
    """The weight of the sum of x as a row of A: that of the smallest column, if it can be seen."""
    least = float(np.min(squares[squares > 0], initial=np.inf))
    return max(least, 1e-8 * float(squares.max())) if least < np.inf else 1.0


def _columns(A: Any, s: Array | None, mean: Array | None) -> Array:
    """The columns of A in float64, centred and weighted, (n, m)."""
    if scipy.sparse.issparse(A):
        A = A.toarray()
    columns = np.ascontiguousarray(A.T, dtype=np.float64)
    if mean is not None:
        columns = columns - mean[:, None]
    if s is not None:
        columns = columns * np.sqrt(s)
    return columns


def _panels(columns: Array) -> Array:
    """A in panels of 16 columns, (n / 16, m, 16)."""
    n, m = columns.shape
    count = -(-n // PANEL)
    if n < count * PANEL:
        columns = np.vstack([columns, np.zeros((count * PANEL - n, m))])
    return np.ascontiguousarray(columns.reshape(count, PANEL, m).transpose(0, 2, 1))


def _factor(gram: Array) -> tuple[Array, Array] | tuple[None, None]:
    """The Cholesky factor by columns, (n, ld), and 1 / its diagonal; (None, None) if singular."""
    try:
        L = cholesky(gram, lower=True, check_finite=False)
    except LinAlgError:
        return None, None
    diagonal = L.diagonal()
    if not (diagonal > 1e-6 * np.sqrt(gram.diagonal())).all():
        return None, None
    return padded(L.T, LANES), 1.0 / diagonal


def compiled(shared: Shared, tol: float) -> Any:
    """The solver of the core; one for each thread."""
    return kernel.SharedProblems(shared, tol)
