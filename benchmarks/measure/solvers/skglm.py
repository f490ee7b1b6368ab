"""skglm: coordinate descent with Anderson acceleration or a Gram matrix; prox Newton."""

from functools import partial

import numpy as np
from skglm.datafits import Logistic, Quadratic
from skglm.penalties import L1, L1_plus_L2
from skglm.solvers import AndersonCD, GramCD, ProxNewton

from measure.solvers.variant import Variant, by_folds, same
from measure.task import Answer, Task

NAME, PACKAGE = "skglm", "skglm"
GRAM_UP_TO = 3000


def variants(task: Task) -> list[Variant]:
    if task.kind == "cv":
        # It has no cross-validation of paths.
        solvers = {"AndersonCD": _anderson, "AndersonCD, p0 100": _large}
        return [by_folds(NAME, k, partial(solve, solver=v)) for k, v in solvers.items()]
    if task.loss == "logistic":
        return [_path("ProxNewton", _newton), _path("AndersonCD", _anderson)]
    found = [_path("AndersonCD", _anderson), _path("AndersonCD, p0 100", _large)]
    if not task.sparse and not task.intercept and task.n <= GRAM_UP_TO and len(task.lams) == 1:
        found += [_path("GramCD, greedy", _greedy), _path("GramCD, cyclic", _cyclic)]
    return found


def _anderson(task: Task, tol: float, p0: int = 10):
    options = {"max_iter": 1000, "max_epochs": 100_000, "p0": p0}
    return AndersonCD(tol=tol, fit_intercept=task.intercept, **options)


def _large(task: Task, tol: float):
    return _anderson(task, tol, p0=min(100, task.n))


def _newton(task: Task, tol: float):
    return ProxNewton(tol=tol, fit_intercept=task.intercept, max_iter=1000)


def _greedy(task: Task, tol: float):
    return GramCD(tol=tol, fit_intercept=False, max_iter=100_000, greedy_cd=True)


def _cyclic(task: Task, tol: float):
    return GramCD(tol=tol, fit_intercept=False, max_iter=100_000, greedy_cd=False, use_acc=True)


def _path(settings: str, solver) -> Variant:
    return Variant(NAME, settings, same, partial(solve, solver=solver))


def solve(task: Task, tol: float, solver) -> Answer:
    """Each lam starts from the minimiser of the one before; one lam starts from 0."""
    logistic = task.loss == "logistic"
    method, fit = solver(task, tol), Logistic() if logistic else Quadratic()
    w, found = np.zeros(task.n + task.intercept), []
    for alpha in task.lams.tolist() if logistic else task.alphas.tolist():
        if task.l2_ratio:
            penalty = L1_plus_L2(alpha, task.l1_ratio, task.positive)
        else:
            penalty = L1(alpha, task.positive)
        start = w.copy()
        product = task.X @ start[: task.n] + start[task.n :].sum()
        w = method.solve(task.X, task.y, fit, penalty, start, product, run_checks=False)[0]
        found.append(w)
    stacked = np.stack(found)
    return Answer(stacked[:, : task.n], stacked[:, task.n :].sum(1))
