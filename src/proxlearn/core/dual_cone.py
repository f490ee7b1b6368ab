"""Directions into the dual cone of non-negative least squares."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from proxlearn.core import kernel

Array = npt.NDArray[np.float64]


def strictly_feasible(
    A: Any, s: Array, rows: tuple[Array, ...], mean: Array | None
) -> tuple[Array, Array] | None:
    """A direction p with A^T (s p) < 0 on the columns that have a lower bound alone, if any has.

    The dual of non-negative least squares has no scaling that makes a point feasible; moving
    along p does. The sum of the columns, each of length 1, serves where their angles are acute.
    """
    l1, l2, lower, upper = rows
    one_sided = (l1 == 0) & (l2 == 0) & (upper == np.inf) & (lower > -np.inf)
    square = A.multiply(A).sum(axis=0) if scipy.sparse.issparse(A) else np.einsum("ij,ij->j", A, A)
    length = np.sqrt(np.asarray(square, dtype=np.float64).ravel())
    needed = one_sided & (length > 0)
    if not needed.any():
        return None
    weights = np.where(needed, 1.0 / np.where(length > 0, length, 1.0), 0.0)

    def slopes(combination: Array) -> tuple[Array, Array]:
        p = -np.asarray(A @ combination, dtype=np.float64)
        p = p if mean is None else p + mean @ combination
        weighted = s * p
        slope = np.asarray(weighted @ A, dtype=np.float64)
        return p, slope if mean is None else slope - mean * weighted.sum()

    def inside(p: Array, slope: Array) -> bool:
        size = np.linalg.norm(s * p)
        return bool((slope[needed] < -1e-12 * length[needed] * size).all())

    p, slope = slopes(weights)
    if not inside(p, slope) and mean is None:
        p, slope = slopes(_nearest_to_zero(A, s, needed, weights))
    if not inside(p, slope):
        return None
    return np.ascontiguousarray(p), np.ascontiguousarray(np.where(needed, slope, -1e-300))


def _nearest_to_zero(A: Any, s: Array, needed: Any, weights: Array) -> Array:
    """Non-negative weights of columns whose sum is the point of their convex hull nearest to 0.

    That point has a positive product with every column, unless 0 is in the hull. Found as the
    non-negative least squares solution of [A; 1^T] x = [0; 1].
    """
    scaled = A[:, needed] * weights[needed] if not scipy.sparse.issparse(A) else None
    if scaled is None:
        scaled = A.tocsc()[:, np.flatnonzero(needed)] @ scipy.sparse.diags_array(weights[needed])
        scaled = scaled.toarray()
    stacked = np.vstack([np.sqrt(s)[:, None] * scaled, np.ones(scaled.shape[1])])
    target = np.append(np.zeros(len(s)), 1.0)
    zeros, free = np.zeros(stacked.shape[1]), np.full(stacked.shape[1], np.inf)
    penalty = kernel.Separable(zeros, zeros, zeros, free)
    loss = kernel.Squares(target, np.ones(len(target)))
    solver = kernel.Solver(kernel.Dense(np.asfortranarray(stacked)), loss, penalty)
    solver.solve(1e-10, 200)
    combination, found = np.zeros(len(weights)), np.empty(stacked.shape[1])
    solver.solution(found)
    combination[needed] = found
    return combination * weights
