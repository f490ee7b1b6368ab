"""proxlearn through its public API, as a user calls it.

Another implementation races in its place with `--ours MODULE:NAME`, where NAME is an object, or a
function that returns one, with the methods of `Proxlearn`. A method that does not support its
arguments raises NotImplementedError, and the row says so.
"""

from dataclasses import replace
from typing import Any

import numpy as np

import proxlearn as pl
from measure.further import FurtherTask
from measure.solvers.variant import Errors, Variant
from measure.task import Answer, Task

NAME = "proxlearn"


class Proxlearn:
    """X is dense in Fortran order or CSC, labels are 0 and 1, objectives are those of gaps.py."""

    def lasso(self, X, y, lam, tol, intercept=False, positive=False, l2=0.0) -> Any:
        """A coefficient vector and an intercept."""
        if intercept:
            from proxlearn.sklearn import ElasticNet, Lasso

            alpha, ratio = (lam + l2) / len(y), lam / (lam + l2)
            options = {"positive": positive, "tol": tol}
            model = ElasticNet(alpha, l1_ratio=ratio, **options) if l2 else Lasso(alpha, **options)
            model.fit(X, y)
            return model.coef_, model.intercept_
        signs = {"nonnegative": positive}
        problem = pl.elastic_net(X, y, lam, l2, **signs) if l2 else pl.lasso(X, y, lam, **signs)
        return pl.solve(problem, tol=tol).x, 0.0

    def logistic(self, X, y, lam, tol, intercept=False) -> Any:
        """A coefficient vector and an intercept."""
        if intercept:
            from proxlearn.sklearn import LogisticRegression

            model = LogisticRegression(C=1 / (lam * len(y)), l1_ratio=1.0, tol=tol).fit(X, y)
            return model.coef_[0], model.intercept_[0]
        return pl.solve(pl.logistic(X, y, lam), tol=tol).x, 0.0

    def path(self, X, y, lams, tol, loss="squares") -> Any:
        """Coefficients (K, n) for falling lams (K,)."""
        problem = pl.logistic(X, y, lams[0]) if loss == "logistic" else pl.lasso(X, y, lams[0])
        return pl.path(problem, lams, tol=tol).x

    def batch(self, X, Y, lam, tol) -> Any:
        """Coefficients (B, n) of problems with targets Y (B, m) that share X."""
        return pl.solve(pl.lasso(X, Y, lam), tol=tol).x

    def further(self, task: FurtherTask, tol: float) -> Any:
        """The answer of a further kind of problem, in the order that its objective takes."""
        return task.spec.ours(task, tol)

    def cv(self, X, y, alphas, folds, tol) -> Any:
        """Mean squared errors (K, folds), and coefficients and intercept at the best alpha."""
        from proxlearn.sklearn import LassoCV

        model = LassoCV(alphas=alphas, cv=folds, tol=tol).fit(X, y)
        return model.mse_path_, model.coef_, model.intercept_


def variant(task: Task, adapter: Any, name: str = NAME) -> Variant:
    """The adapter's method for this task; tolerances are the gap itself."""
    if isinstance(task, FurtherTask):
        return Variant(name, "as called", _same, adapter.further, Answer.one, grid=())
    prepare = _labels if task.loss == "logistic" else _same
    method = _method(task, adapter)
    read = None if task.kind == "cv" else (_path if len(task.lams) > 1 else _pair)
    folds = getattr(adapter, "folds", None) if task.kind == "cv" else None
    return Variant(name, "as called", prepare, method, read, folds, grid=())


def _same(task: Task) -> Task:
    return task


def _labels(task: Task) -> Task:
    return replace(task, y=(task.y > 0).astype(np.float64))


def _pair(found) -> Answer:
    return Answer.one(*found)


def _path(found) -> Answer:
    return Answer.path(found)


def _method(task: Task, adapter: Any):
    if task.kind == "cv":

        def run(task: Task, tol: float):
            return Errors(*adapter.cv(task.X, task.y, task.alphas, len(task.folds), tol))

    elif len(task.lams) > 1:

        def run(task: Task, tol: float):
            return adapter.path(task.X, task.y, task.lams, tol, task.loss)

    elif task.loss == "logistic":

        def run(task: Task, tol: float):
            return adapter.logistic(task.X, task.y, task.lam, tol, task.intercept)

    else:

        def run(task: Task, tol: float):
            options = (task.intercept, task.positive, task.l2_ratio * task.lam)
            return adapter.lasso(task.X, task.y, task.lam, tol, *options)

    return run
