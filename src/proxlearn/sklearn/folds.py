"""Cross-validation on shared data: a fold is a vector of sample weights, so X is never copied."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from proxlearn.core.glm import Answer
from proxlearn.errors import InputError
from proxlearn.sklearn.fitting import Array

Indices = npt.NDArray[np.intp]
Fold = tuple[Indices, Indices]


def split(
    cv: Any, X: Any, y: Any, arguments: dict[str, Any], classifier: bool = False
) -> list[Fold]:
    """Indices of the samples to fit and of those held out, for each fold of `cv`."""
    from sklearn.model_selection import check_cv

    folds = list(check_cv(cv, y, classifier=classifier).split(X, y, **arguments))
    if not folds:
        raise InputError("cv has no folds; expected at least one")
    m = X.shape[0]
    return [(_indices(train, m), _indices(test, m)) for train, test in folds]


def _indices(rows: Any, m: int) -> Indices:
    """The numbers of samples that a splitter gives, or those of a mask."""
    rows = np.asarray(rows)
    if rows.dtype != bool:
        numbers: Indices = rows
        return numbers
    if rows.shape != (m,):
        raise InputError(f"a fold of cv is a mask of shape {rows.shape}; expected ({m},)")
    return np.flatnonzero(rows)


def training_weights(folds: Sequence[Fold], w: Array | None, m: int) -> Array:
    """Weights of the samples in the fit of each fold, (folds, m): 0 for those held out."""
    weights = np.empty((len(folds), m))
    for row, (train, _) in zip(weights, folds, strict=True):
        row[:] = np.bincount(train, minlength=m)  # a fold may repeat a sample
        if w is not None:
            row *= w
    if not weights.any(axis=1).all() or any(w is not None and not w[t].any() for _, t in folds):
        raise InputError("all samples of a fold have weight 0; use other folds")
    return weights


def path_predictions(X: Any, coefs: Array, constants: Array, test: Indices) -> Array:
    """Predictions for held-out samples with coefficients (K, n) and constants (K,), (rows, K)."""
    coefs = coefs.T
    support = np.flatnonzero(coefs.any(axis=1))
    if 2 * len(support) < len(coefs):
        # Only columns whose coefficient is not 0 for some of the K values are multiplied.
        held_out = X[test][:, support] if len(test) < len(support) else X[:, support][test]
        coefs = coefs[support]
    else:
        held_out = X[test]
    predictions: Array = np.asarray(held_out @ coefs) + constants
    return predictions


def of_fold(answers: list[Answer], fold: int) -> tuple[Array, Array]:
    """Coefficients (K, n) and constants (K,) of a fold in the answers of a path."""
    coefs = np.stack([answer.x[fold] for answer in answers])
    return coefs, np.array([answer.intercept[fold] for answer in answers])
