"""Strictly feasible directions of the dual of one-sided constraints.

Where x_j may grow without limit at no cost (NNLS, a box without an upper bound), a dual point u has
a finite value only if a_j^T u >= 0. The residual of an iterate nearly satisfies that and never
quite does. A direction v with a_j^T v > 0 for all these columns repairs it: u + theta v is feasible
for a small theta (arXiv 1907.10831).
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from proxlearn.core.dual_cone import strictly_feasible
from proxlearn.problems.operators import Operator


class Direction(NamedTuple):
    """Unit vectors v with sides_j a_j^T v > 0; NaN for the instances that have none."""

    v: Tensor
    """(B, m)"""
    pulled: Tensor
    """A^T v, (B, n)"""
    norms: Tensor
    """||a_j||, (B, n)"""


def interior_direction(A: Operator, sides: Tensor) -> Direction | None:
    """A direction v (B, m) with ``sides_j a_j^T v > 0`` wherever sides_j is not 0.

    The sides (B, n) or (1, n) are 1, -1 or 0. The compiled core computes it, from the columns; the
    answer is None where A does not keep them. It is remembered for an A and sides that all
    instances share.
    """
    if len(sides) > 1 and bool((sides == sides[:1]).all()):
        sides = sides[:1]
    signs = sides.to(torch.int8).cpu().numpy()
    key = signs.tobytes() if len(sides) == 1 else None
    if key is not None and key in A.remembered:
        known: Direction = A.remembered[key]
        return known
    columns = A.convert(torch.float64, "cpu").array()
    if columns is None:
        return None
    each = [
        _direction(columns[i] if A.batch > 1 else columns, signs[i if len(signs) > 1 else 0])
        for i in range(max(A.batch, len(signs)))
    ]
    found = Direction(
        *(torch.from_numpy(np.stack(p)).to(A.device) for p in zip(*each, strict=True))
    )
    if key is not None:
        A.remembered[key] = found
    return found


def _direction(A: Any, side: Any) -> tuple[Any, Any, Any]:
    """v (m,), A^T v (n,) and the lengths of the columns (n,) of one instance."""
    lower, upper = np.where(side > 0, 0.0, -np.inf), np.where(side < 0, 0.0, np.inf)
    inward = strictly_feasible(A, 1.0, (0.0, 0.0, lower, upper), None)
    if inward is None:
        m, n = A.shape
        return np.full(m, np.nan), np.full(n, np.nan), np.full(n, np.nan)
    size = -np.linalg.norm(inward.direction)  # the core's direction leads the other way
    return inward.direction / size, inward.slope / size, inward.length
