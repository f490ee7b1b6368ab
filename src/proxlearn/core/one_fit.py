"""The fit of an estimator to small dense data in one call of the compiled core."""

import math
from typing import Any

import numpy as np
import scipy.sparse

from proxlearn.core import kernel
from proxlearn.core.answers import Answer
from proxlearn.core.single import Limits

SEPARABLE = frozenset({"l1", "l2", "lower"})


def fit_at_once(
    A: Any, b: Any, weights: Any, penalty: dict[str, Any], intercept: bool, limits: Limits
) -> Answer | None:
    """Fit one target b (m,) with l1 > 0, and l2 or x >= 0 besides; None where it takes another way.

    The weights of the samples are (m,), or None where all are 1. A small sparse A becomes a dense
    one, so that sparse and dense data have the same coefficients. This way exists because a fit of
    few coefficients spends most of its time in Python, not in arithmetic.
    """
    if b.ndim != 1 or limits.seconds != math.inf or not penalty.keys() <= SEPARABLE:
        return None
    if scipy.sparse.issparse(A):
        if math.prod(A.shape) > kernel.LARGEST_COPY or A.dtype != np.float64:
            return None
        A = A.toarray(order="F")
    lower = penalty.get("lower", -math.inf)
    if not isinstance(lower, float) or lower not in (0.0, -math.inf):
        return None
    found = kernel.fit_plain(
        A, np.ascontiguousarray(b, dtype=np.float64), weights, penalty.get("l1", 0.0),
        penalty.get("l2", 0.0), lower == 0.0, intercept, limits.tol, limits.max_iter,
    )  # fmt: skip
    if found is None:
        return None
    x, constant, objective, gap, status, iterations, passes, _ = found
    ended = np.array([status], dtype=np.int8)
    return Answer(x[None], np.array([constant]), objective, gap, ended, iterations, passes)
