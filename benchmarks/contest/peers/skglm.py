"""skglm: Anderson-accelerated coordinate descent, with a Gram matrix too; prox Newton."""

import numpy as np
from skglm.datafits import Logistic, Quadratic
from skglm.penalties import L1
from skglm.solvers import AndersonCD, GramCD, ProxNewton

from contest.task import Task
from contest.variant import SINGLE, Peer, Variant, one_by_one

NAME = "skglm"


def peer(task: Task) -> Peer:
    if task.path:
        return Peer(NAME, (_path("AndersonCD", _anderson), _path("ProxNewton", _newton)))
    if task.loss == "logistic":
        return Peer(NAME, (_logistic("AndersonCD", _anderson), _logistic("ProxNewton", _newton)))
    whole = task.n
    return Peer(
        NAME,
        (
            _lasso("AndersonCD, p0 10", lambda tol: _anderson(tol)),
            _lasso("AndersonCD, p0 100", lambda tol: _anderson(tol, p0=min(100, whole))),
            _lasso("AndersonCD, all columns", lambda tol: _anderson(tol, p0=whole)),
            _lasso("AndersonCD, p0 10, float32", lambda tol: _anderson(tol), np.float32),
            _lasso("GramCD, greedy", lambda tol: _gram(tol, greedy_cd=True)),
            _lasso("GramCD, cyclic", lambda tol: _gram(tol, greedy_cd=False, use_acc=True)),
        ),
    )


def _anderson(tol, p0=10):
    return AndersonCD(tol=tol, p0=p0, fit_intercept=False, max_epochs=1000)


def _gram(tol, **options):
    return GramCD(tol=tol, fit_intercept=False, max_iter=5000, **options)


def _newton(tol):
    return ProxNewton(tol=tol, fit_intercept=False)


def _lasso(settings, solver, dtype: type = np.float64) -> Variant:
    def one(A, b, lam, tol):
        start = np.zeros(A.shape[1], dtype), np.zeros(len(b), dtype)
        penalty = L1(lam / len(b))
        return solver(tol).solve(A, b, Quadratic(), penalty, *start, run_checks=False)[0]

    grid = {"grid": SINGLE} if dtype is np.float32 else {}
    return one_by_one(settings, one, dtype, **grid)


def _logistic(settings, solver) -> Variant:
    def one(A, b, lam, tol):
        return solver(tol).solve(A, 2 * b - 1, Logistic(), L1(lam), run_checks=False)[0]

    return one_by_one(settings, one)


def _path(settings, solver) -> Variant:
    def prepare(task: Task):
        return np.asfortranarray(task.A), 2 * task.b[0] - 1, task.lam

    def solve(prepared, tol):
        A, signs, lams = prepared
        w, found = np.zeros(A.shape[1]), []
        for lam in lams.tolist():
            start = w.copy(), A @ w
            w = solver(tol).solve(A, signs, Logistic(), L1(lam), *start, run_checks=False)[0]
            found.append(w)
        return np.stack(found)

    return Variant(f"{settings}, warm starts", prepare, solve, whole=True)
