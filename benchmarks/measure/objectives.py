"""What fitted models leave of their objective, relative to a lower bound on its minimum."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import logsumexp

import proxlearn.sklearn

TIGHT = 1e-10
"""The relative gap of the fit that gives the bound."""


def objective(model: Any, X: Any, y: Any) -> float:
    """The objective of a fitted `Lasso`, `ElasticNet` or `LogisticRegression`, as its page says."""
    w = model.coef_
    if hasattr(model, "classes_"):
        share, weight = model.l1_ratio, model.C
        Z = model.decision_function(X)
        Z = np.column_stack([np.zeros(len(Z)), Z]) if Z.ndim == 1 else Z
        rows = np.arange(len(Z)), np.searchsorted(model.classes_, y)
        loss = weight * float((logsumexp(Z, axis=1) - Z[rows]).sum())
        alpha = 1.0
    else:
        share, alpha = getattr(model, "l1_ratio", 1.0), model.alpha
        loss = 0.5 * float(np.mean(np.square(y - model.predict(X))))
    penalty = share * np.abs(w).sum() + 0.5 * (1.0 - share) * np.square(w).sum()
    return loss + alpha * float(penalty)


def gaps_left(models: Sequence[Any], X: Any, y: Any) -> list[float]:
    """The relative distance of each model's objective to a lower bound on the minimum."""
    own = getattr(proxlearn.sklearn, type(models[0]).__name__)
    tight = own(**{**models[0].get_params(), "tol": TIGHT}).fit(X, y)
    values = [objective(model, X, y) for model in models]
    bound = objective(tight, X, y) - tight.dual_gap_
    return [max(value - bound, 0.0) / abs(value) for value in values]
