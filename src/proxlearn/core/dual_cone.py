"""Directions into the dual cone of non-negative least squares."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from proxlearn.core import kernel

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Inward:
    """A direction p (m,) that leads into the dual cone."""

    direction: Array
    """p, (m,)."""
    slope: Array
    """A^T (s p), (n,)."""
    side: Array
    """(n,): 1 for columns with a lower bound alone, -1 for an upper bound alone, 0 elsewhere."""
    length: Array
    """|a_j|, (n,)."""


def strictly_feasible(A: Any, s: Any, rows: tuple[Any, ...], mean: Array | None) -> Inward | None:
    """A direction p with A^T (s p) < 0 on the columns that have a lower bound alone.

    The dual of non-negative least squares has no scaling that makes a point feasible; moving
    along p does. The sum of the columns, each of length 1, serves where their angles are acute.
    """
    l1, l2, lower, upper = (np.broadcast_to(row, A.shape[1]) for row in rows)
    below, above = (lower > -np.inf) & (upper == np.inf), (lower == -np.inf) & (upper < np.inf)
    one_sided = (l1 == 0) & (l2 == 0) & (below | above)
    side = np.where(above, -1.0, 1.0)  # a column with an upper bound is minus one with a lower
    square = (
        A.multiply(A).sum(axis=0)
        if scipy.sparse.issparse(A)
        else np.einsum("ij,ij->j", A, A, dtype=float)
    )
    length = np.sqrt(np.asarray(square, dtype=np.float64).ravel())
    needed = one_sided & (length > 0)
    if not needed.any():
        return None
    weights = np.where(needed, side / np.where(length > 0, length, 1.0), 0.0)

    def slopes(combination: Array) -> tuple[Array, Array]:
        p = -np.asarray(A @ combination, dtype=np.float64)
        p = p if mean is None else p + mean @ combination
        weighted = s * p
        slope = np.asarray(weighted @ A, dtype=np.float64)
        return p, slope if mean is None else slope - mean * weighted.sum()

    def inside(p: Array, slope: Array) -> bool:
        size = np.linalg.norm(s * p)
        return bool(((side * slope)[needed] < -1e-12 * length[needed] * size).all())

    p, slope = slopes(weights)
    if not inside(p, slope) and mean is None:
        p, slope = slopes(_nearest_to_zero(A, s, needed, weights))
    if not inside(p, slope):
        return None
    return Inward(
        np.ascontiguousarray(p), np.ascontiguousarray(slope), np.where(needed, side, 0.0), length
    )


def _nearest_to_zero(A: Any, s: Any, needed: Any, weights: Array) -> Array:
    """Weights of the columns with s whose sum is the point of their convex hull nearest to 0."""
    scaled = A[:, needed] * weights[needed] if not scipy.sparse.issparse(A) else None
    if scaled is None:
        scaled = A.tocsc()[:, np.flatnonzero(needed)] @ scipy.sparse.diags_array(weights[needed])
        scaled = scaled.toarray()
    root = np.sqrt(np.broadcast_to(s, A.shape[0]))
    combination = np.zeros(len(weights))
    combination[needed] = hull_weights(root[:, None] * scaled)
    return combination * weights


def hull_weights(columns: Array) -> Array:
    """Non-negative weights (k,) of columns (m, k) whose sum leads to the point of their convex
    hull that is nearest to 0, or a positive multiple of it.

    That point has a positive product with every column, unless 0 is in the hull. Found as the
    non-negative least squares solution of [columns; 1^T] x = [0; 1].
    """
    m, k = columns.shape
    stacked = np.vstack([columns, np.ones(k)])
    penalty = kernel.Separable(k, 0.0, 0.0, 0.0, np.inf)
    loss = kernel.Squares(np.append(np.zeros(m), 1.0), 1.0)
    solver = kernel.Solver(kernel.Dense(np.asfortranarray(stacked)), loss, penalty)
    solver.solve(1e-10, 200)
    found: Array = np.empty(k)
    solver.solution(found)
    return found
