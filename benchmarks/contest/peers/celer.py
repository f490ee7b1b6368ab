"""celer: working sets, dual extrapolation; Newton for logistic regression."""

import numpy as np
from celer.homotopy import celer_path

from contest.task import Task
from contest.variant import SINGLE, Peer, Variant, one_by_one

NAME, MAX_ITER = "celer", 100


def peer(task: Task) -> Peer:
    if task.path:
        return Peer(NAME, (_path(False), _path(True)))
    if task.loss == "logistic":
        return Peer(NAME, tuple(_logistic(newton) for newton in (False, True)))
    settings = [(p0, prune) for p0 in (10, 100) for prune in (False, True)]
    return Peer(
        NAME,
        (
            *(_lasso(p0, prune) for p0, prune in settings),
            _lasso(10, True, np.float32),
            _lasso(100, True, np.float32),
        ),
    )


def _lasso(p0: int, prune: bool, dtype: type = np.float64) -> Variant:
    def one(A, b, lam, tol):
        options = {"tol": tol, "p0": p0, "prune": prune, "max_iter": MAX_ITER}
        options["max_epochs"] = 50_000 if dtype is np.float64 else 1000  # rounding may never end
        return celer_path(A, b, "lasso", alphas=[dtype(lam / len(b))], **options)[1][:, 0]

    grid = {"grid": SINGLE} if dtype is np.float32 else {}
    kind = "pruning" if prune else "no pruning"
    return one_by_one(f"p0 {p0}, {kind}, {dtype.__name__}", one, dtype, **grid)


def _name(newton: bool) -> str:
    return "prox Newton" if newton else "coordinate descent"


def _logistic(newton: bool) -> Variant:
    def one(A, b, lam, tol):  # the sum of the losses, where ours is the mean
        options = {"use_PN": newton, "tol": tol, "prune": True, "max_iter": MAX_ITER}
        alphas = [lam * len(b)]
        return celer_path(A, 2 * b - 1, "logreg", alphas=alphas, **options)[1][:, 0]

    return one_by_one(_name(newton), one)


def _path(newton: bool) -> Variant:
    def prepare(task: Task):
        return np.asfortranarray(task.A), 2 * task.b[0] - 1, task.lam * task.m

    def solve(prepared, tol):
        A, signs, alphas = prepared
        options = {"use_PN": newton, "tol": tol, "prune": True, "max_iter": MAX_ITER}
        return celer_path(A, signs, "logreg", alphas=alphas, **options)[1].T

    return Variant(f"celer_path, {_name(newton)}", prepare, solve, whole=True)
