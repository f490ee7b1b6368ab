"""scikit-learn: coordinate descent with and without a Gram matrix, LARS, liblinear, SAGA."""

import inspect
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import ElasticNet, LassoCV, LogisticRegression, enet_path, lars_path

from measure.solvers.variant import EXACT, MAX_ITER, Errors, Variant, by_folds, same
from measure.task import Answer, Task

NAME, PACKAGE = "scikit-learn", "scikit-learn"
GRAM_UP_TO, LARS_UP_TO = 3000, 12_000
"""Columns up to which a Gram matrix and LARS are tried."""
LIBLINEAR_SCALES = (1e5, 1e6)
"""liblinear penalises the intercept; dividing it by such a number makes that harmless."""


def variants(task: Task) -> list[Variant]:
    if task.kind == "cv":
        if task.sparse:
            return [_cross_validation(False)]
        lars = [by_folds(NAME, "lars_path", _lars_intercept, grid=EXACT)] if _fits(task) else []
        return [*lars, _cross_validation(False), _cross_validation("auto")]
    if task.kind == "logistic-path":
        return [_liblinear_path(), _saga_path()]
    if task.loss == "logistic":
        scales = LIBLINEAR_SCALES if task.intercept else (1.0,)
        return [*(_liblinear(scale) for scale in scales), _saga()]
    gram = not task.sparse and task.n <= GRAM_UP_TO
    if task.intercept:
        return [_estimator(False), *([_estimator(True)] if gram else [])]
    found = [_descent(False), *([_descent(True)] if gram else [])]
    if _fits(task) and task.l2_ratio == 0 and not task.positive:
        lars = Variant(NAME, "lars_path", same, _lars, grid=EXACT)
        found.insert(0 if len(task.lams) > 1 else len(found), lars)
    return found


def _fits(task: Task) -> bool:
    """Whether LARS suits the data."""
    return not task.sparse and task.n <= LARS_UP_TO


def _descent(gram: bool) -> Variant:
    """Coordinate descent as a function, for one lam or many, without checks of the arrays."""

    def run(task: Task, tol: float):
        X, y = task.X, task.y
        precompute = np.ascontiguousarray(X.T @ X) if gram else False
        options = {"tol": tol, "max_iter": MAX_ITER, "positive": task.positive}
        return enet_path(
            X, y, l1_ratio=task.l1_ratio, alphas=task.alphas, precompute=precompute,
            copy_X=False, check_input=False, **options,
        )[1]  # fmt: skip

    name = "enet_path, Gram" if gram else "enet_path"
    return Variant(NAME, name, same, run, lambda coefs: Answer.path(coefs.T))


def _estimator(gram: bool) -> Variant:
    def run(task: Task, tol: float):
        return ElasticNet(
            alpha=task.alphas[0], l1_ratio=task.l1_ratio, fit_intercept=task.intercept,
            precompute=gram, positive=task.positive, tol=tol, max_iter=MAX_ITER,
        ).fit(task.X, task.y)  # fmt: skip

    name = "Lasso, Gram" if gram else "Lasso"
    return Variant(NAME, name, same, run, _fitted)


def _fitted(model) -> Answer:
    return Answer.one(model.coef_, model.intercept_)


def _lars(task: Task, tol: float) -> Answer:
    """LARS follows the exact path; between two of its points coefficients are linear in lam."""
    options = {"method": "lasso", "max_iter": 100_000, "alpha_min": task.alphas[-1]}
    if len(task.lams) == 1:
        return Answer.one(lars_path(task.X, task.y, return_path=False, **options)[2])
    alphas, _, coefs = lars_path(task.X, task.y, **options)
    at = np.interp(-task.alphas, -alphas, np.arange(len(alphas)))
    low = np.minimum(at.astype(int), max(len(alphas) - 2, 0))
    high = np.minimum(low + 1, len(alphas) - 1)
    share = at - low
    return Answer.path((coefs[:, low] * (1 - share) + coefs[:, high] * share).T)


def _lars_intercept(task: Task, tol: float) -> Answer:
    mean, middle = task.X.mean(0), task.y.mean()
    centred = replace(task, X=np.asfortranarray(task.X - mean), y=task.y - middle)
    coefs = _lars(centred, tol).coefs
    return Answer(coefs, middle - coefs @ mean)


def model(task: Task, lam: float, tol: float, solver: str, **options) -> LogisticRegression:
    """l1 logistic regression; C weighs the sum of the losses, where the task has their mean."""
    old = inspect.signature(LogisticRegression).parameters["penalty"].default != "deprecated"
    l1 = {"penalty": "l1"} if old else {"l1_ratio": 1.0}
    return LogisticRegression(
        C=1 / (task.m * lam), fit_intercept=task.intercept, tol=tol, solver=solver,
        max_iter=MAX_ITER, random_state=0, **l1, **options,
    )  # fmt: skip


def _by_rows(task: Task):
    """liblinear and SAGA read rows."""
    return task, sp.csr_matrix(task.X) if task.sparse else np.ascontiguousarray(task.X)


def _liblinear(scale: float) -> Variant:
    def run(prepared, tol: float):
        task, X = prepared
        found = model(task, task.lam, tol, "liblinear", intercept_scaling=scale)
        return found.fit(X, task.y)

    name = "liblinear" if scale == 1 else f"liblinear, scaling {scale:g}"
    return Variant(NAME, name, _by_rows, run, _fitted)


def _saga() -> Variant:
    def run(prepared, tol: float):
        task, X = prepared
        return model(task, task.lam, tol, "saga").fit(X, task.y)

    return Variant(NAME, "saga", _by_rows, run, _fitted)


def _liblinear_path() -> Variant:
    def run(prepared, tol: float):
        task, X = prepared
        fits = (model(task, lam, tol, "liblinear").fit(X, task.y) for lam in task.lams)
        return [fit.coef_[0] for fit in fits]

    return Variant(NAME, "liblinear", _by_rows, run, Answer.path)


def _saga_path() -> Variant:
    def run(prepared, tol: float):
        task, X = prepared
        fit, found = model(task, task.lam, tol, "saga", warm_start=True), []
        for lam in task.lams:
            fit.set_params(C=1 / (task.m * lam))
            found.append(fit.fit(X, task.y).coef_[0].copy())
        return found

    return Variant(NAME, "saga, warm starts", _by_rows, run, Answer.path)


def _cross_validation(gram) -> Variant:
    def run(task: Task, tol: float) -> Errors:
        options = {"precompute": gram, "tol": tol, "max_iter": MAX_ITER}
        fit = LassoCV(alphas=task.alphas, cv=len(task.folds), **options).fit(task.X, task.y)
        return Errors(fit.mse_path_, fit.coef_, fit.intercept_)

    def folds(task: Task, tol: float) -> list[Answer]:
        return [_intercept_path(part, tol, gram) for part in task.parts()]

    name = "LassoCV" if gram is False else "LassoCV, Gram"
    return Variant(NAME, name, same, run, folds=folds)


def _intercept_path(task: Task, tol: float, gram) -> Answer:
    """What LassoCV computes on one training part: it centres the data and calls enet_path."""
    mean, middle = np.asarray(task.X.mean(0)).ravel(), task.y.mean()
    options = {"tol": tol, "max_iter": MAX_ITER, "alphas": task.alphas, "l1_ratio": 1.0}
    if task.sparse:
        options |= {"X_offset": mean, "X_scale": np.ones(task.n)}
        X = task.X
    else:
        X = np.asfortranarray(task.X - mean)
        options |= {"precompute": gram}
    coefs = enet_path(X, task.y - middle, **options)[1].T
    return Answer(coefs, middle - coefs @ mean)
