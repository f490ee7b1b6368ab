"""SPAMS: LARS, coordinate descent and FISTA in C++, for dense data without intercept."""

import numpy as np
from scipy.sparse import csc_matrix

from measure.solvers.variant import EXACT, Variant
from measure.task import Answer, Task

try:
    import spams
except ImportError:  # it has wheels for some systems only; the table then says "-"
    spams = None

NAME, PACKAGE = "SPAMS", "spams-bin"
MAX_ITER, GRAM_UP_TO = 100_000, 3000


def variants(task: Task) -> list[Variant]:
    if spams is None or task.sparse or task.intercept or len(task.lams) > 1:
        return []
    if task.loss == "logistic":
        return [_fista()]
    found = [_fista()]
    if task.n <= GRAM_UP_TO:
        found = [_lars(False), _lars(True), *found]
    if not task.positive and not task.l2_ratio:
        found.insert(0, _descent())
    return found


def _columns(task: Task):
    return task, np.asfortranarray(task.X), np.asfortranarray(task.y[:, None])


def _lars(cholesky: bool) -> Variant:
    def run(prepared, tol: float):
        task, X, y = prepared
        options = {"mode": 2, "numThreads": 1, "cholesky": cholesky, "pos": task.positive}
        lambdas = {"lambda1": task.lam, "lambda2": task.l2_ratio * task.lam}
        return spams.lasso(y, D=X, **lambdas, **options)

    name = "lasso, Cholesky" if cholesky else "lasso"
    return Variant(NAME, name, _columns, run, lambda found: Answer.one(found.toarray()), grid=EXACT)


def _descent() -> Variant:
    """Its coordinate descent needs columns of norm 1; standardised ones have the norm sqrt(m)."""

    def prepare(task: Task):
        return task, np.asfortranarray(task.X / np.sqrt(task.m)), np.asfortranarray(task.y[:, None])

    def run(prepared, tol: float):
        task, X, y = prepared
        options = {"mode": 2, "itermax": MAX_ITER, "tol": tol, "numThreads": 1}
        root = np.sqrt(task.m)
        found = spams.cd(y, X, csc_matrix((task.n, 1)), lambda1=task.lam / root, **options)
        return found / root

    return Variant(NAME, "cd", prepare, run, lambda found: Answer.one(found.toarray()))


def _fista() -> Variant:
    def run(prepared, tol: float):
        task, X, y = prepared
        logistic = task.loss == "logistic"
        options = {"max_it": MAX_ITER, "tol": tol, "numThreads": 1, "it0": 10, "pos": task.positive}
        options |= {"loss": "logistic" if logistic else "square", "L0": 0.1}
        options |= {"regul": "elastic-net" if task.l2_ratio else "l1", "lambda1": task.lam}
        if task.l2_ratio:
            options |= {"lambda2": task.l2_ratio * task.lam}
        return spams.fistaFlat(y, X, np.zeros((task.n, 1), order="F"), **options)

    return Variant(NAME, "fistaFlat", _columns, run, Answer.one)
