"""scikit-learn: SAGA for several classes, MultiTaskLasso, PoissonRegressor."""

import numpy as np
from sklearn.linear_model import MultiTaskLasso, PoissonRegressor

from measure.further import FurtherTask
from measure.solvers.scikit import model
from measure.solvers.variant import MAX_ITER, Variant, same
from measure.task import Answer


def variants(task: FurtherTask) -> list[Variant]:
    if task.kind == "multinomial":
        return [_saga()]
    if task.kind == "multitask":
        return [_tasks()]
    if task.kind == "poisson-l2":
        return [_poisson("newton-cholesky"), _poisson("lbfgs")]
    return []


def _saga() -> Variant:
    def prepare(task: FurtherTask):
        return task, np.ascontiguousarray(task.X)

    def run(prepared, tol: float) -> Answer:
        task, X = prepared
        fit = model(task, 1 / (task.m * task.numbers["C"]), tol, "saga")
        fit = fit.set_params(fit_intercept=True).fit(X, task.y)
        return Answer.one(np.column_stack([fit.coef_, fit.intercept_]))

    return Variant("scikit-learn", "saga", prepare, run)


def _tasks() -> Variant:
    def run(task: FurtherTask, tol: float) -> Answer:
        options = {"fit_intercept": False, "tol": tol, "max_iter": MAX_ITER}
        return Answer.one(MultiTaskLasso(task.lam / task.m, **options).fit(task.X, task.y).coef_.T)

    return Variant("scikit-learn", "MultiTaskLasso", same, run)


def _poisson(solver: str) -> Variant:
    def run(task: FurtherTask, tol: float) -> Answer:
        options = {"solver": solver, "tol": tol, "max_iter": MAX_ITER}
        fit = PoissonRegressor(alpha=task.lam, **options).fit(task.X, task.y)
        return Answer.one(np.append(fit.coef_, fit.intercept_))

    return Variant("scikit-learn", solver, same, run)
