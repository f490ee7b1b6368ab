"""More kinds of problems: several classes, groups, several targets, Huber, Poisson, constraints.

An answer is judged by its objective. The relative gap is (F - bound) / F with the lower bound on F*
that proxlearn certifies at a thousandth of the usual target, so that a peer needs no dual point.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import logsumexp, xlogy
from sklearn.datasets import load_digits

import proxlearn as pl
from measure.data import FOLDER, Data, load, simulated
from measure.task import Answer, Task
from proxlearn.solving.paths import lam_max

CERTIFIED = 1e-9
"""Relative gap of the lower bound on F*."""
RATIO = 0.5
"""The l1 part of a sparse-group penalty."""
TARGETS = 10
"""Targets of a multi-task problem."""


@dataclass(frozen=True, eq=False)
class FurtherTask(Task):
    """A task with the numbers that its kind needs beside X, y and lam."""

    numbers: dict[str, Any] = field(default_factory=dict)

    @property
    def spec(self) -> "Kind":
        """The kind of problem."""
        return FURTHER[self.kind]

    @cached_property
    def bound(self) -> float:
        """A lower bound on F*."""
        objective, gap = self.spec.certified(self)
        return objective - gap

    def gap(self, answer: Answer) -> float:
        w = answer.coefs[0]
        F = self.spec.objective(self, w) if np.isfinite(w).all() else np.inf
        return max(F - self.bound, 0.0) / F if np.isfinite(F) else np.inf

    def tiny(self) -> "FurtherTask":
        """A small problem of the same kind, on which solvers compile."""
        return self.spec.make("tiny", simulated("tiny", 40, 14), self.numbers["value"])


@dataclass(frozen=True)
class Kind:
    """A kind of problem: its rows, its objective and how proxlearn is called."""

    name: str
    title: str
    rows: tuple[tuple[str, float], ...]
    """Names of data with lam / lam_max, or with the number that the title names."""
    make: Callable[[str, Data, float], FurtherTask]
    objective: Callable[[FurtherTask, np.ndarray], float]
    """F at an answer, infinite where it is not feasible."""
    problem: Callable[[FurtherTask], pl.Problem] | None = None
    fit: Callable[[FurtherTask, float], tuple[np.ndarray, float, float]] | None = None
    """For kinds without a problem of their own: coefficients, objective and gap of an estimator."""

    def ours(self, task: FurtherTask, tol: float) -> np.ndarray:
        """The answer of proxlearn as a user calls it."""
        if self.problem is None:
            assert self.fit is not None
            return self.fit(task, tol)[0]
        return pl.solve(self.problem(task), tol=tol).x

    def certified(self, task: FurtherTask) -> tuple[float, float]:
        """F of proxlearn's answer and its gap."""
        if self.problem is None:
            assert self.fit is not None
            w, _, gap = self.fit(task, CERTIFIED)
            return self.objective(task, w), gap
        found = pl.solve(self.problem(task), tol=CERTIFIED, max_iter=10_000)
        return float(found.objective[0]), float(found.gap[0])


def rows(kind: str) -> Iterator[tuple[str, float]]:
    """Data and number of each row of a kind."""
    yield from FURTHER[kind].rows


def make(name: str, kind: str, data: str, value: float, folder: Path = FOLDER) -> FurtherTask:
    """The task of a row."""
    return FURTHER[kind].make(name, _load(data, folder), value)


def _load(name: str, folder: Path) -> Data:
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return _classes(name, X, y)
    if name == "khan, 4 classes":
        held = np.load(folder / "wide" / "khan.npz")
        return _classes(name, held["X"], held["y"])
    if name in PLAIN:
        m, n = (int(part) for part in name.split("x"))
        draw = np.random.default_rng(m + n)
        X = np.asfortranarray(draw.random((m, n)))
        w = np.maximum(draw.standard_normal(n), 0.0)
        return Data(name, X, X @ (w / w.sum()) + 0.1 * draw.standard_normal(m), np.ones(m))
    return load(name, folder)


PLAIN = ("200x10", "200x50", "100x200", "1000x400")
"""Non-negative data, as spectra are: X uniform in [0, 1], the target a mixture with noise."""


def _classes(name: str, X: np.ndarray, y: np.ndarray) -> Data:
    X = np.asarray(X, dtype=np.float64)
    keep = X.std(0) > 1e-12
    X = (X[:, keep] - X[:, keep].mean(0)) / X[:, keep].std(0)
    return Data(name, np.asfortranarray(X), y.astype(np.float64), np.ones(len(y)))


def _scaled(y: np.ndarray) -> np.ndarray:
    return (y - y.mean()) / y.std()


def _task(kind: str, name: str, X, y, lam: float, value: float, **numbers) -> FurtherTask:
    held = {"value": value, **numbers}
    return FurtherTask(name, kind, X, y, np.array([lam]), loss=kind, numbers=held)


# Softmax with an l1 penalty and intercepts: C sum_i loss_i + |W|_1, an answer is (classes, n + 1).


def _multinomial(name: str, data: Data, C: float) -> FurtherTask:
    labels = data.target if data.target.max() < 20 else np.argsort(np.argsort(data.target)) % 3
    labels = np.unique(np.round(labels), return_inverse=True)[1].astype(float) % 10
    return _task("multinomial", name, data.X, labels, 1.0, C, C=C, classes=int(labels.max()) + 1)


def _multinomial_objective(task: FurtherTask, w: np.ndarray) -> float:
    W = w.reshape(task.numbers["classes"], -1)
    z = task.X @ W[:, :-1].T + W[:, -1]
    losses = logsumexp(z, axis=1) - z[np.arange(task.m), task.y.astype(int)]
    return float(task.numbers["C"] * losses.sum() + np.abs(W[:, :-1]).sum())


def _multinomial_fit(task: FurtherTask, tol: float) -> tuple[np.ndarray, float, float]:
    from proxlearn.sklearn import LogisticRegression

    model = LogisticRegression(C=task.numbers["C"], l1_ratio=1.0, tol=tol).fit(task.X, task.y)
    w = np.column_stack([model.coef_, model.intercept_])
    return w, 0.0, float(np.max(model.dual_gap_))


# Groups of neighbouring columns.


def _grouped(kind: str, size: int | None = None):
    def make(name: str, data: Data, share: float) -> FurtherTask:
        width = 7 if data.shape[1] % 5 else 5
        y = _scaled(data.target)
        groups = np.arange(data.shape[1]) // width
        ratio = RATIO if kind == "sparse-group" else 0.0
        one = pl.sparse_group_lasso(data.X, y, 1.0, groups, RATIO)
        one = one if ratio else pl.group_lasso(data.X, y, 1.0, groups)
        lam = share * float(lam_max(one)[0])
        return _task(kind, name, data.X, y, lam, share, groups=groups, width=width, ratio=ratio)

    return make


def _grouped_objective(task: FurtherTask, w: np.ndarray) -> float:
    r, ratio = task.y - task.X @ w, task.numbers["ratio"]
    lengths = np.sqrt(np.add.reduceat(w * w, np.arange(0, task.n, task.numbers["width"])))
    return float(0.5 * r @ r + task.lam * ((1 - ratio) * lengths.sum() + ratio * np.abs(w).sum()))


def _group_problem(task: FurtherTask) -> pl.Problem:
    return pl.group_lasso(task.X, task.y, task.lam, task.numbers["groups"])


def _sparse_group_problem(task: FurtherTask) -> pl.Problem:
    return pl.sparse_group_lasso(task.X, task.y, task.lam, task.numbers["groups"], RATIO)


# Several targets that share their columns; an answer is (n, T), row by row.


def _tasks(name: str, data: Data, share: float) -> FurtherTask:
    draw = np.random.default_rng(1)
    signal = data.X[:, :: max(1, data.shape[1] // 20)]
    Y = signal @ draw.standard_normal((signal.shape[1], TARGETS))
    Y += Y.std() / 3 * draw.standard_normal(Y.shape)
    lam = share * np.linalg.norm(data.X.T @ Y, axis=1).max()
    return _task("multitask", name, data.X, Y, float(lam), share)


def _tasks_objective(task: FurtherTask, w: np.ndarray) -> float:
    W = w.reshape(task.n, -1)
    R = task.y - task.X @ W
    return float(0.5 * (R * R).sum() + task.lam * np.linalg.norm(W, axis=1).sum())


# Huber's loss: the target has one outlier in twenty samples.


def _huber(name: str, data: Data, share: float) -> FurtherTask:
    draw = np.random.default_rng(2)
    y = _scaled(data.target)
    y = y + np.where(draw.random(len(y)) < 0.05, 10 * draw.standard_normal(len(y)), 0.0)
    lam = share * np.abs(data.X.T @ np.clip(y, -DELTA, DELTA)).max()
    return _task("huber", name, data.X, y, float(lam), share)


DELTA = 0.5
"""The error at which Huber's loss becomes linear; the target has standard deviation 1."""


def _huber_objective(task: FurtherTask, w: np.ndarray) -> float:
    e = np.abs(task.y - task.X @ w)
    loss = np.where(e <= DELTA, 0.5 * e * e, DELTA * e - 0.5 * DELTA**2)
    return float(loss.sum() + task.lam * np.abs(w).sum())


# Counts: half the mean deviance.


def _counts(data: Data) -> np.ndarray:
    z = data.X[:, :10] @ np.linspace(-0.5, 0.5, 10)
    return np.random.default_rng(3).poisson(np.exp(np.clip(z, -5, 3))).astype(float)


def _poisson(name: str, data: Data, share: float) -> FurtherTask:
    y = _counts(data)
    lam = share * np.abs(data.X.T @ (y - 1)).max() / len(y)
    return _task("poisson", name, data.X, y, float(lam), share)


def _deviance(task: FurtherTask, z: np.ndarray) -> float:
    return float((np.exp(z) - task.y * z + xlogy(task.y, task.y) - task.y).mean())


def _poisson_objective(task: FurtherTask, w: np.ndarray) -> float:
    return _deviance(task, task.X @ w) + task.lam * float(np.abs(w).sum())


def _poisson_l2(name: str, data: Data, alpha: float) -> FurtherTask:
    return _task("poisson-l2", name, data.X, _counts(data), alpha, alpha)


def _poisson_l2_objective(task: FurtherTask, w: np.ndarray) -> float:
    return _deviance(task, task.X @ w[:-1] + w[-1]) + 0.5 * task.lam * float(w[:-1] @ w[:-1])


def _poisson_l2_fit(task: FurtherTask, tol: float) -> tuple[np.ndarray, float, float]:
    from proxlearn.sklearn import PoissonRegressor

    model = PoissonRegressor(alpha=task.lam, tol=tol).fit(task.X, task.y)
    return np.append(model.coef_, model.intercept_), 0.0, float(model.dual_gap_)


# Constraints.


def _nonnegative(name: str, data: Data, value: float) -> FurtherTask:
    X = np.abs(data.X) if name == "tiny" else data.X
    return _task("nnls", name, X, data.target, 0.0, value)


def _squares(task: FurtherTask, w: np.ndarray) -> float:
    r = task.y - task.X @ w
    return float(0.5 * r @ r) if w.min() >= 0 else np.inf


def _simplex(name: str, data: Data, value: float) -> FurtherTask:
    return _task("simplex", name, np.abs(data.X), data.target, 0.0, value)


def _simplex_objective(task: FurtherTask, w: np.ndarray) -> float:
    return _squares(task, w) if abs(w.sum() - 1) <= 1e-12 else np.inf


def _each(names: tuple[str, ...], values: tuple[float, ...]) -> tuple[tuple[str, float], ...]:
    return tuple((name, value) for name in names for value in values)


SHARES = (0.5, 0.1, 0.02)
FURTHER = {
    kind.name: kind
    for kind in (
        Kind("multinomial", "l1 multinomial with intercept; C in place of lambda",
             _each(("digits", "khan, 4 classes"), (0.1, 1.0, 10.0)),
             _multinomial, _multinomial_objective, fit=_multinomial_fit),
        Kind("group", "group LASSO", _each(("200x1000", "gravier"), SHARES),
             _grouped("group"), _grouped_objective, _group_problem),
        Kind("sparse-group", "sparse-group LASSO", _each(("200x1000", "gravier"), SHARES),
             _grouped("sparse-group"), _grouped_objective, _sparse_group_problem),
        Kind("multitask", "multi-task LASSO, 10 targets",
             _each(("500x300", "200x1000", "gravier"), SHARES), _tasks, _tasks_objective,
             lambda task: pl.multitask_lasso(task.X, task.y, task.lam)),
        Kind("huber", "Huber's loss with l1", _each(("500x300", "200x1000", "spambase"), SHARES),
             _huber, _huber_objective, lambda task: pl.huber(task.X, task.y, task.lam, DELTA)),
        Kind("poisson", "Poisson with l1", _each(("500x300", "200x1000", "10000x100"), SHARES),
             _poisson, _poisson_objective, lambda task: pl.poisson(task.X, task.y, task.lam)),
        Kind("poisson-l2", "Poisson with l2 and intercept; alpha in place of lambda",
             _each(("500x300", "spambase", "10000x100"), (1.0, 0.01)),
             _poisson_l2, _poisson_l2_objective, fit=_poisson_l2_fit),
        Kind("nnls", "non-negative least squares", _each(("200x10", *PLAIN[1:]), (0.0,)),
             _nonnegative, _squares, lambda task: pl.nnls(task.X, task.y)),
        Kind("simplex", "least squares on the simplex", _each(PLAIN, (0.0,)),
             _simplex, _simplex_objective, lambda task: pl.simplex_ls(task.X, task.y)),
    )
}  # fmt: skip
"""The kinds of problems by name."""
