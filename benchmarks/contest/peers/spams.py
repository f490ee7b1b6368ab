"""SPAMS: LARS, coordinate descent and FISTA in C++, many signals of one dictionary at a time."""

import numpy as np
from scipy.sparse import csc_matrix

from contest.task import Task
from contest.variant import EXACT, LARS_UP_TO, Peer, Variant, one_by_one

try:
    import spams
except ImportError:
    spams = None

NAME, MAX_ITER = "SPAMS", 20_000


def peer(task: Task, threads: int) -> Peer:
    if spams is None:
        return Peer(NAME, absent="not installed: pip install spams-bin, where it has wheels")
    if task.path:
        return Peer(NAME, absent="has no path for the logistic loss")
    if task.loss == "logistic":
        return Peer(NAME, (_logistic(),))
    if task.shared:
        return Peer(NAME, tuple(_shared(key, threads) for key in METHODS))
    keys = METHODS if task.n <= LARS_UP_TO else ("cd", "fistaFlat")
    return Peer(NAME, tuple(_single(key) for key in keys))


def _lars(A, B, lam, tol, threads, cholesky=False):
    options = {"mode": 2, "numThreads": threads, "cholesky": cholesky}
    return spams.lasso(B, D=A, lambda1=lam, **options).toarray()


def _cholesky(A, B, lam, tol, threads):
    return _lars(A, B, lam, tol, threads, cholesky=True)


def _descent(A, B, lam, tol, threads):
    start = csc_matrix((A.shape[1], B.shape[1]))
    options = {"mode": 2, "itermax": MAX_ITER, "tol": tol, "numThreads": threads}
    return spams.cd(B, A, start, lambda1=lam, **options).toarray()


def _fista(A, B, lam, tol, threads, loss="square", L0=1.0):
    start = np.zeros((A.shape[1], B.shape[1]), order="F")
    options = {"max_it": MAX_ITER, "tol": tol, "numThreads": threads, "it0": 10, "L0": L0}
    return spams.fistaFlat(B, A, start, loss=loss, regul="l1", lambda1=lam, **options)


METHODS = {"lasso": _lars, "lasso, Cholesky": _cholesky, "cd": _descent, "fistaFlat": _fista}


def _grid(key: str) -> dict[str, tuple[float, ...]]:
    return {"grid": EXACT} if METHODS[key] in (_lars, _cholesky) else {}


def _single(key: str) -> Variant:
    def one(A, b, lam, tol):
        return METHODS[key](A, np.asfortranarray(b[:, None]), lam, tol, 1)[:, 0]

    return one_by_one(key, one, **_grid(key))


def _shared(key: str, threads: int) -> Variant:
    def prepare(task: Task):
        assert np.ptp(task.lam) == 0
        return np.asfortranarray(task.A), np.asfortranarray(task.b.T), float(task.lam[0])

    def solve(prepared, tol):
        A, B, lam = prepared
        return METHODS[key](A, B, lam, tol, threads).T

    return Variant(f"{key}, all signals", prepare, solve, whole=True, **_grid(key))


def _logistic() -> Variant:
    def one(A, b, lam, tol):
        signs = np.asfortranarray(2 * b[:, None] - 1)
        return _fista(A, signs, lam, tol, 1, loss="logistic", L0=0.1)[:, 0]

    return one_by_one("fistaFlat", one)
