"""scikit-learn: coordinate descent with and without a Gram matrix, LARS, liblinear, SAGA."""

import inspect

import numpy as np
from sklearn import config_context
from sklearn.linear_model import Lasso, LogisticRegression, lars_path, lars_path_gram, lasso_path

from contest.task import Task
from contest.variant import EXACT, LARS_UP_TO, SINGLE, Peer, Variant, one_by_one

NAME, MAX_ITER, SAGA_ITER = "scikit-learn", 10_000, 3000


def peer(task: Task) -> Peer:
    if task.loss == "logistic":
        variants = (_liblinear(), _saga_path() if task.path else _saga())
    elif task.shared:
        variants = (_shared_gram(), _shared_lars(), *_descent())
    else:
        lars = (_lars(),) if task.n <= LARS_UP_TO else ()
        variants = (*_descent(), _with_gram(), *lars)
    return Peer(NAME, variants)


def _cd(A, b, lam, tol, precompute=False):
    options = {"precompute": precompute, "copy_X": False, "tol": tol, "max_iter": MAX_ITER}
    return lasso_path(A, b, alphas=[lam / len(b)], **options)[1][:, 0]


def _descent() -> tuple[Variant, ...]:
    return (
        one_by_one("lasso_path, float64", _cd),
        one_by_one("lasso_path, float32", _cd, np.float32, SINGLE),
    )


def _with_gram() -> Variant:
    return one_by_one("lasso_path, Gram", lambda A, b, lam, tol: _cd(A, b, lam, tol, A.T @ A))


def _lars() -> Variant:
    def one(A, b, lam, tol):
        options = {"method": "lasso", "return_path": False, "max_iter": MAX_ITER}
        return lars_path(A, b, alpha_min=lam / len(b), **options)[2]

    return one_by_one("lars_path", one, grid=EXACT)


def _shared_gram() -> Variant:
    """One Lasso for all signals, which are its targets, on one Gram matrix; as SparseCoder does."""

    def prepare(task: Task):
        A = np.asfortranarray(task.A)
        return A, A.T @ A, np.asfortranarray(task.b.T), _only(task.lam) / task.m

    def solve(prepared, tol):
        A, gram, B, alpha = prepared
        options = {"fit_intercept": False, "precompute": gram, "copy_X": False}
        with config_context(assume_finite=True):
            model = Lasso(alpha, **options, tol=tol, max_iter=MAX_ITER).fit(A, B)
        return model.coef_.reshape(B.shape[1], -1)

    return Variant("Lasso, all targets, one Gram", prepare, solve)


def _shared_lars() -> Variant:
    def prepare(task: Task):
        return task.A.T @ task.A, task.b @ task.A, task.lam / task.m, task.m

    def solve(prepared, tol):
        gram, correlations, alphas, m = prepared
        options = {"n_samples": m, "method": "lasso", "return_path": False, "max_iter": MAX_ITER}
        return np.stack(
            [
                lars_path_gram(c, gram, alpha_min=alpha, **options)[2]
                for c, alpha in zip(correlations, alphas, strict=True)
            ]
        )

    return Variant("lars_path_gram, one Gram", prepare, solve, EXACT)


def _only(lam: np.ndarray) -> float:
    """The lam that all problems have."""
    assert np.ptp(lam) == 0
    return float(lam[0])


def _model(m, lam, tol, solver, max_iter, **options) -> LogisticRegression:
    """Its objective is ours divided by lam: C weighs the sum of the losses, ours is their mean."""
    old = inspect.signature(LogisticRegression).parameters["penalty"].default != "deprecated"
    l1 = {"penalty": "l1"} if old else {"l1_ratio": 1.0}
    return LogisticRegression(
        C=1 / (m * lam),
        fit_intercept=False,
        tol=tol,
        solver=solver,
        max_iter=max_iter,
        random_state=0,
        **l1,
        **options,
    )


def _liblinear() -> Variant:
    def one(A, b, lam, tol):
        return _model(len(b), lam, tol, "liblinear", MAX_ITER).fit(A, b).coef_[0]

    def prepare(task: Task):  # liblinear reads rows
        A = [task.A] * task.count if task.shared else list(task.A)
        return list(zip(A, task.targets(), task.lam.tolist(), strict=True))

    def solve(problems, tol):
        return np.stack([one(A, b, lam, tol) for A, b, lam in problems])

    return Variant("liblinear", prepare, solve)


def _saga() -> Variant:
    def solve(task, tol):
        def one(A, b, lam):
            return _model(len(b), lam, tol, "saga", SAGA_ITER).fit(A, b).coef_[0]

        return np.stack([one(*parts) for parts in zip(task.A, task.b, task.lam, strict=True)])

    return Variant("saga", lambda task: task, solve)


def _saga_path() -> Variant:
    def solve(task, tol):
        model, found = _model(task.m, 1.0, tol, "saga", SAGA_ITER, warm_start=True), []
        for lam in task.lam:
            model.set_params(C=1 / (task.m * lam))
            found.append(model.fit(task.A, task.b[0]).coef_[0].copy())
        return np.stack(found)

    return Variant("saga, warm starts", lambda task: task, solve, whole=True)
