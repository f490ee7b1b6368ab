"""Strictly feasible directions of the dual of one-sided constraints.

Where x_j may grow without limit at no cost (NNLS, a box without an upper bound), a dual point u has
a finite value only if a_j^T u >= 0. The residual of an iterate nearly satisfies that and never
quite does. A direction v with a_j^T v > 0 for all these columns repairs it: u + theta v is feasible
for a small theta (arXiv 1907.10831).
"""

from typing import NamedTuple

import torch
from torch import Tensor

from proxlearn.core.dual_cone import hull_weights
from proxlearn.problems.operators import Operator

SMALLEST = 1e-10
"""Cosine between v and a column below which v counts as no direction: the bound would be useless,
because rounding costs it machine precision divided by this cosine."""
LARGEST = 1_000_000
"""Entries of A up to which the point nearest 0 in the hull of the columns is computed. The
active-set method for it takes 0.3 s at 1000x500 and 1 to 4 s at 2000x1000 (one core, November
2026), and should not take much longer than the solve itself."""


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

    The sides (B, n) or (1, n) are 1, -1 or 0. The answer is None where A does not keep its columns.
    It is remembered for an A and sides that all instances share.
    """
    if len(sides) > 1 and bool((sides == sides[:1]).all()):
        sides = sides[:1]
    key = sides.to(torch.int8).cpu().numpy().tobytes() if len(sides) == 1 else None
    if key is not None and key in A.remembered:
        known: Direction = A.remembered[key]
        return known
    wide = A if A.dtype == torch.float64 else A.convert(torch.float64)
    norms = wide.column_norms()
    if norms is None:
        return None
    batch = max(A.batch, len(sides))
    norms = norms.expand(batch, -1)
    signs = sides.double().expand(batch, -1)
    weights = torch.where((signs != 0) & (norms > 0), signs / norms, 0.0)
    v = _unit(wide.forward(weights))
    failed = ~_strict(wide.adjoint(v), weights)
    if bool(failed.any()) and A.entries <= LARGEST:
        v = _repaired(wide, v, weights, failed)
    pulled = wide.adjoint(v)
    v = torch.where(_strict(pulled, weights)[:, None], v, torch.nan)
    found = Direction(v, pulled, norms)
    if key is not None:
        A.remembered[key] = found
    return found


def _strict(pulled: Tensor, weights: Tensor) -> Tensor:
    """Instances whose v makes an angle below 90 degrees with every column that matters, (B,)."""
    return ((weights * pulled > SMALLEST) | (weights == 0)).all(-1)


def _repaired(A: Operator, v: Tensor, weights: Tensor, failed: Tensor) -> Tensor:
    """`v` with a better direction for the instances that failed."""
    v = v.clone()
    for i in failed.nonzero()[:, 0]:
        index = (weights[i] != 0).nonzero()[:, 0]
        one = A.select(i[None])
        columns = one.gather(index[None])
        assert columns is not None
        scaled = columns[0] * weights[i, index][:, None]  # (k, m), rows of length 1
        combination = torch.from_numpy(hull_weights(scaled.cpu().numpy().T)).to(v)
        v[i] = _unit((combination @ scaled)[None])[0]
    return v


def _unit(v: Tensor) -> Tensor:
    norm = v.norm(dim=-1, keepdim=True)
    return torch.where(norm > 0, v / norm, torch.zeros_like(v))
