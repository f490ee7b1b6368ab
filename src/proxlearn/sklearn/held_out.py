"""Scores of the coefficients of a cross-validation on held-out samples."""

import inspect
from typing import Any

import numpy as np

from proxlearn.sklearn.fitting import Array
from proxlearn.sklearn.folds import Fold, path_predictions


def accuracies(X: Any, labels: Any, coefs: Array, folds: list[Fold], given: Any) -> Array:
    """Accuracies of two classes, (folds, Cs), of coefficients (folds, Cs, 1, n + 1)."""
    scores = np.empty(coefs.shape[:2])
    weights = np.ones(()) if given is None else np.asarray(given)
    for k, (_, test) in enumerate(folds):
        made = path_predictions(X, coefs[k, :, 0, :-1], coefs[k, :, 0, -1], test)
        own = weights[test] if weights.ndim else None
        scores[k] = np.average((made > 0) == labels[test, None], axis=0, weights=own)
    return scores


def scores_of(
    fitted: Any, scorer: Any, X: Any, labels: Any, coefs: Array, folds: list[Fold], arguments: Any
) -> Array:
    """Scores (folds, Cs) by a scorer of scikit-learn, of coefficients (folds, Cs, rows, n + 1).

    `fitted` is a classifier that predicts with whatever coefficients it is given.
    """
    scorer = _with_all_labels(scorer, fitted.classes_)
    scores = np.empty(coefs.shape[:2])
    for k, (_, test) in enumerate(folds):
        held_out, truth = X[test], fitted.classes_[labels[test]]
        own = {
            name: np.asarray(value)[test] if np.ndim(value) else value
            for name, value in arguments.items()
        }
        for i, values in enumerate(coefs[k]):
            fitted.coef_, fitted.intercept_ = values[:, :-1], values[:, -1]
            scores[k, i] = scorer(fitted, held_out, truth, **own)
    return scores


def _with_all_labels(scorer: Any, classes: Any) -> Any:
    """A scorer that knows all classes, also where the held-out samples lack some."""
    from sklearn.metrics import make_scorer

    function = getattr(scorer, "_score_func", None)
    known = inspect.signature(function).parameters if function is not None else {}
    if "labels" not in known:
        return scorer
    kept = dict(getattr(scorer, "_kwargs", {}))
    if len(classes) == 2 and "pos_label" in known:
        kept.setdefault("pos_label", classes[-1])
    kept.setdefault("labels", classes)
    return make_scorer(
        function,
        greater_is_better=scorer._sign == 1,
        response_method=scorer._response_method,
        **kept,
    )
