"""celer: working sets and dual extrapolation; prox Newton for logistic regression."""

from functools import partial

import numpy as np
from celer.homotopy import celer_path

from measure.solvers.variant import Variant, by_folds, same
from measure.task import Answer, Task

NAME, PACKAGE = "celer", "celer"
MAX_OUTER, MAX_EPOCHS = 10_000, 1_000_000


def variants(task: Task) -> list[Variant]:
    if task.kind == "cv":
        # Its LassoCV does not run with newer releases of scikit-learn.
        limits = {"max_iter": MAX_OUTER, "max_epochs": MAX_EPOCHS}
        return [
            by_folds(NAME, name, partial(_with_intercept, prune=prune, **limits))
            for name, prune in (("celer_path, pruning", True), ("celer_path, no pruning", False))
        ]
    if task.loss == "logistic":
        # celer has no unpenalised intercept for the logistic loss.
        return [] if task.intercept else [_path(newton=newton) for newton in (False, True)]
    if len(task.lams) > 1:
        return [_path(), _path(prune=False)]
    return [_path(), _path(p0=100), _path(prune=False)]


def _path(p0: int = 10, prune: bool = True, newton: bool = False) -> Variant:
    def run(task: Task, tol: float) -> Answer:
        logistic = task.loss == "logistic"
        limits = {"max_iter": MAX_OUTER, "max_epochs": 1000 if newton else MAX_EPOCHS}
        if task.intercept:
            return _with_intercept(task, tol, p0=p0, prune=prune, **limits)
        # Its logistic loss is the sum over the samples, where the task has the mean.
        alphas = task.lams * task.m if logistic else task.alphas
        options = {} if logistic else {"l1_ratio": task.l1_ratio, "positive": task.positive}
        return Answer.path(
            celer_path(
                task.X, task.y, "logreg" if logistic else "lasso", alphas=alphas, tol=tol, p0=p0,
                prune=prune, use_PN=newton, **limits, **options,
            )[1].T
        )  # fmt: skip

    kind = ", prox Newton" if newton else (f", p0 {p0}" + ("" if prune else ", no pruning"))
    return Variant(NAME, "celer_path" + kind, same, run)


def _with_intercept(task: Task, tol: float, **options) -> Answer:
    """Centred data, as its estimators do; sparse columns are centred implicitly."""
    mean, middle = np.asarray(task.X.mean(0)).ravel(), task.y.mean()
    if task.sparse:
        X, offsets = task.X, {"X_offset": mean, "X_scale": np.ones(task.n)}
    else:
        X, offsets = np.asfortranarray(task.X - mean), {}
    options |= {"l1_ratio": task.l1_ratio, "positive": task.positive, "tol": tol}
    coefs = celer_path(X, task.y - middle, "lasso", alphas=task.alphas, **options, **offsets)[1].T
    return Answer(coefs, middle - coefs @ mean)
