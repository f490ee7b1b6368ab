"""celer: working sets and dual extrapolation; prox Newton for logistic regression."""

import numpy as np
from celer import LassoCV
from celer.homotopy import celer_path

from measure.solvers.variant import Errors, Variant
from measure.task import Answer, Task

NAME, PACKAGE = "celer", "celer"
MAX_OUTER, MAX_EPOCHS = 10_000, 1_000_000


def variants(task: Task) -> list[Variant]:
    if task.kind == "cv":
        return [_cross_validation()]
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
    return Variant(NAME, "celer_path" + kind, lambda task: task, run)


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


def _cross_validation() -> Variant:
    limits = {"max_iter": MAX_OUTER, "max_epochs": MAX_EPOCHS}

    def run(task: Task, tol: float) -> Errors:
        options = {"alphas": task.alphas, "cv": len(task.folds), "tol": tol}
        fit = LassoCV(**options, **limits).fit(task.X, task.y)
        return Errors(fit.mse_path_, fit.coef_, fit.intercept_)

    def folds(task: Task, tol: float) -> list[Answer]:
        return [_with_intercept(part, tol, prune=True, **limits) for part in task.parts()]

    return Variant(NAME, "LassoCV", lambda task: task, run, folds=folds)
