"""Defaults of LogisticRegressionCV that change from one version of scikit-learn to the next.

The estimator does what the installed scikit-learn does, so that a program whose import is changed
to proxlearn's keeps its meaning, and gives scikit-learn's warnings where a default will change.
"""

from typing import Any

import numpy as np
import sklearn

from proxlearn.sklearn.fitting import warn

VERSION = tuple(int(part) for part in sklearn.__version__.split(".")[:2])


def warn_of_changing_defaults(estimator: Any) -> None:
    """Give the warnings of scikit-learn for defaults that a later version changes."""
    words = []
    if _is_default(estimator.l1_ratios) and (1, 8) <= VERSION < (1, 10):
        words.append(
            "The default value for l1_ratios will change from None to (0.0,) in version 1.10 of "
            "scikit-learn: with use_legacy_attributes, attributes then have an axis for them. "
            "Give a value, such as l1_ratios=(0,), to avoid this warning."
        )
    if _is_default(estimator.scoring) and (1, 9) <= VERSION < (1, 11):
        words.append(
            "The default value of the parameter 'scoring' will change from None, i.e. accuracy, to "
            "'neg_log_loss' in version 1.11 of scikit-learn. Give a value to avoid this warning."
        )
    if _is_default(estimator.use_legacy_attributes) and (1, 8) <= VERSION < (1, 10):
        words.append(
            "The default value of use_legacy_attributes will change from True to False in "
            "scikit-learn 1.10, which simplifies the fitted attributes. Give a value to avoid this "
            "warning."
        )
    for text in words:
        warn(text, FutureWarning)


def wants_legacy_attributes(estimator: Any) -> bool:
    """Whether the attributes have the shapes of scikit-learn before version 1.10."""
    if _is_default(estimator.use_legacy_attributes):
        return VERSION < (1, 10)
    return bool(estimator.use_legacy_attributes)


def scoring_of(estimator: Any) -> Any:
    """The scorer, or the name of one."""
    if _is_default(estimator.scoring):
        return "accuracy" if VERSION < (1, 11) else "neg_log_loss"
    return "accuracy" if estimator.scoring is None else estimator.scoring


def set_legacy_attributes(model: Any) -> None:
    """Give a fitted LogisticRegressionCV the shapes of scikit-learn before version 1.10.

    Where no `l1_ratios` were given, there is no axis for them.
    """
    rows = model.coefs_paths_.shape[3]
    names = model.classes_[1:] if rows == 1 else model.classes_
    scores = model.scores_.swapaxes(1, 2)
    paths = model.coefs_paths_.transpose(3, 0, 2, 1, 4)
    counts = model.n_iter_.swapaxes(1, 2)[None]
    if model.l1_ratios is None or isinstance(model.l1_ratios, str):
        scores, paths, counts = scores[..., 0], paths[..., 0, :], counts[..., 0]
    model.scores_ = {name: scores.copy() for name in names}
    model.coefs_paths_ = dict(zip(names, paths, strict=True))
    model.n_iter_ = counts
    model.C_ = np.full(rows, model.C_)
    model.l1_ratio_ = np.full(rows, model.l1_ratio_)


def _is_default(value: Any) -> bool:
    return isinstance(value, str) and value == "warn"
