"""Checks of a Gram matrix that a user passes as `precompute`; the solver makes its own."""

from typing import Any

import numpy as np
import scipy.sparse

from proxlearn.core.reduction import weighted_mean
from proxlearn.errors import InputError
from proxlearn.sklearn.fitting import warn


def check_gram(precompute: Any, X: Any, sample_weight: Any, fit_intercept: bool) -> None:
    """Raise an error where a Gram matrix cannot be that of X, with the words of scikit-learn.

    One element is compared. A Gram matrix of X before centring gets a warning, as in scikit-learn,
    since it is not that of the problem. Values other than an array need no check.
    """
    if precompute is None or isinstance(precompute, str | np.bool_) or scipy.sparse.issparse(X):
        return
    gram, (m, n) = np.asarray(precompute), X.shape
    if gram.shape != (n, n):
        raise InputError(f"precompute has shape {gram.shape}; expected ({n}, {n}), the Gram matrix")
    w = np.ones(m) if sample_weight is None else np.broadcast_to(sample_weight, m)
    w = np.asarray(w, dtype=np.float64) * (m / np.sum(w))
    if fit_intercept and not np.allclose(weighted_mean(X, w / m), 0.0, atol=1e-6):
        warn(
            "Gram matrix was provided but X was centered to fit intercept: recomputing Gram matrix."
        )
        return
    first, second = n // 2, min(n // 2 + 1, n - 1)
    columns = X[:, [first, second]].astype(np.float64)
    expected, given = float((w * columns[:, 0]) @ columns[:, 1]), float(gram[first, second])
    single = X.dtype == np.float32 or gram.dtype == np.float32
    size = np.sqrt((w @ columns[:, 0] ** 2) * (w @ columns[:, 1] ** 2))
    if abs(given - expected) > (1e-4 if single else 1e-7) * max(abs(expected), size):
        raise InputError(
            "Gram matrix passed in via 'precompute' parameter did not pass validation when a "
            "single element was checked - please check that it was computed properly. For element "
            f"({first},{second}) we computed {expected} but the user-supplied value was {given}."
        )
