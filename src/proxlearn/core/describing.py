"""Arrays in the shapes and layouts that the core reads."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from proxlearn.core import kernel
from proxlearn.core.losses import LOSSES
from proxlearn.core.penalty_kinds import SEPARABLE, Groups, PenaltyKind, Simplex
from proxlearn.core.single import Glm

Array = npt.NDArray[np.float64]

FULL = 2 / 3
"""Part of a sparse A that is not 0, from which on a dense copy takes no more memory.

It is made for least squares with an intercept: the squares of a sparse column about its mean are a
difference of sums, and rounding is all that is left of it where the mean is a million times the
deviations.
"""


def describe(
    A: Any,
    b: Any,
    loss: str,
    *,
    l1: Any = 0.0,
    l2: Any = 0.0,
    lower: Any = -np.inf,
    upper: Any = np.inf,
    sample_weight: Any = None,
    intercept: bool = False,
    largest: float | None = None,
    options: dict[str, Any] | None = None,
    level: Any = 0.0,
    groups: Any = None,
    simplex: Simplex | None = None,
) -> Glm:
    """Bring arrays to the shapes and layouts that the core reads; A is copied only if it must be.

    Parameters
    ----------
    A : array (m, n) or (B, m, n), or scipy sparse matrix (m, n)
        Dense arrays of float32 and float64 in C or Fortran order are used in place.
    b : array (m,) or (B, m)
        Targets; labels 0 and 1 of "logistic", 0 to C-1 of "softmax"; counts >= 0 of "poisson".
    loss : str
        A name of `proxlearn.core.losses.LOSSES`.
    l1, l2, lower, upper : numbers, (n,), or (B, n)
    sample_weight : array (m,) or (B, m), optional
        By default 1/m for losses that are means (`LossKind.mean`), and 1 for the others.
    intercept : bool
        Whether an unpenalised constant is added to the predictions.
    largest : float, optional
        The largest magnitude of A's entries, where it is known already.
    options : dict of numbers or arrays (B,), optional
        What else the loss takes.
    level : number, (G,), or (B, G)
        Multiplies the lengths of the groups, where there are some.
    groups : Groups, or array (n,) of whole numbers, optional
        The group of each coordinate, from 0 to G-1: the penalty is then
        ``sum_j l1_j |x_j| + sum_g level_g |x_g|``, without l2 and bounds.
    simplex : Simplex, optional
        Says that x >= 0 and that the sum of x is `level`, or at most that.

    Returns
    -------
    Glm
        The problems, for `solve_glm` and `path_glm`.
    """
    A = A if kernel.is_matrix(A) else _layout(A)
    kind = LOSSES[loss]
    centred = kind.quadratic and intercept and scipy.sparse.issparse(A)
    if centred and A.nnz >= FULL * math.prod(A.shape):
        A = _layout(A.toarray(order="F"))
    weights = _number_or_rows(sample_weight)
    if weights is None:
        weights = 1.0 / A.shape[-2] if kind.mean else 1.0
    penalty: PenaltyKind = simplex or SEPARABLE
    if groups is not None:
        penalty = groups if isinstance(groups, Groups) else Groups(np.asarray(groups, np.intp))
    glm = Glm(
        A, kind.prepare(_rows(b)), loss, weights,
        _number_or_rows(l1), _number_or_rows(l2),
        _number_or_rows(lower), _number_or_rows(upper), intercept, largest,
        {name: np.atleast_1d(options[name]) for name in options} if options else {},
        penalty, _number_or_rows(level), penalty.tasks,
    )  # fmt: skip
    free = intercept and penalty is SEPARABLE and not (np.all(glm.l1) or np.all(glm.l2))
    return without_constant_columns(glm) if free else glm


def without_constant_columns(glm: Glm) -> Glm:
    """The same problem with coefficients of 0 for columns that are constant beside an intercept.

    The intercept can do all that such a column could. After centring only rounding is left of it,
    and without a penalty its coefficient would be as large as one divided by that rounding.
    """
    weights = np.ones((1, 1)) if isinstance(glm.sample_weight, float) else glm.sample_weight
    if glm.A.ndim != 2:
        return glm
    held = np.stack([constant_columns(glm.A, np.flatnonzero(s)) for s in weights])
    if not held.any():
        return glm
    held = np.tile(held, glm.copies)
    return replace(glm, lower=np.where(held, 0.0, glm.lower), upper=np.where(held, 0.0, glm.upper))


def constant_columns(A: Any, used: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    """Which columns (n,) have the same entry in all used rows, or in all where one is given."""
    used = np.arange(A.shape[0]) if len(used) == 1 else used
    if scipy.sparse.issparse(A):
        constant = np.diff(A.indptr) >= len(used)  # a column of zeros needs no centring
        few = A[:, np.flatnonzero(constant)].toarray()[used]
    else:
        constant = (A[used[0]] == A[used[-1]]) & (A[used[0]] == A[used[len(used) // 2]])
        few = A[:, constant][used]
    constant[constant] = (few == few[:1]).all(axis=0)
    found: npt.NDArray[np.bool_] = constant
    return found


def _rows(value: Any) -> Array:
    """Vectors of float64 as rows, in C order."""
    rows = np.ascontiguousarray(value, dtype=np.float64)
    return rows[None] if rows.ndim == 1 else rows


def _number_or_rows(value: Any) -> Any:
    """A number as a float; vectors as rows."""
    if value is None or type(value) is float:
        return value
    return float(value) if np.ndim(value) == 0 else _rows(value)


def _layout(A: Any) -> Any:
    """A as the core reads it: contiguous in float32 or float64, or sparse by columns."""
    if isinstance(A, np.ndarray):
        if A.dtype not in (np.float32, np.float64):
            A = A.astype(np.float64)
        first = A if A.ndim == 2 else A[0]
        good = first.flags.c_contiguous or first.flags.f_contiguous
        return A if good else np.ascontiguousarray(A)
    if not scipy.sparse.issparse(A):
        return _layout(np.asarray(A))
    A = A.tocsc()
    if not A.has_canonical_format:
        A = A.copy()
        A.sum_duplicates()
    return A
