"""Problems with their minimum, found by a solver of its own: FISTA in NumPy, to the last digits."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from scipy.special import expit, log_softmax, xlogy

import proxlearn as pl
from proxlearn.problems.operators import Dense
from proxlearn.problems.penalties import Box
from proxlearn.problems.problem import Problem
from proxlearn.problems.smooth import LeastSquares

M, D, C = 24, 7, 3
B = 2
GROUPS = np.array([0, 1, 0, 2, 2, 1, 1])


@dataclass(frozen=True)
class Instance:
    """One problem in NumPy: f with its gradient, r, its prox with one p, n and L."""

    smooth: Callable[[np.ndarray], tuple[float, np.ndarray]]
    penalty: Callable[[np.ndarray], float]
    prox: Callable[[np.ndarray, float], np.ndarray]
    n: int
    L: float

    def objective(self, x: np.ndarray) -> float:
        return self.smooth(x)[0] + self.penalty(x)


def minimise(problem: Instance, iterations: int = 50_000) -> np.ndarray:
    """FISTA with restarts, until the prox-gradient step moves nothing but the last digits."""
    x = y = problem.prox(np.zeros(problem.n), 1.0)
    t, p = 1.0, 1 / problem.L
    for _ in range(iterations):
        new = problem.prox(y - p * problem.smooth(y)[1], p)
        if abs(new - y).max() <= 1e-15 * (1 + abs(new).max()):
            return new
        if (y - new) @ (new - x) > 0:
            t = 1.0
        t_new = (1 + np.sqrt(1 + 4 * t * t)) / 2
        x, y, t = new, new + (t - 1) / t_new * (new - x), t_new
    assert abs(problem.prox(x - p * problem.smooth(x)[1], p) - x).max() < 1e-9
    return x


def least_squares(A, b):
    return lambda x: (0.5 * ((A @ x - b) ** 2).sum(), A.T @ (A @ x - b))


def huber(A, b):
    delta = 0.3

    def smooth(x):
        e = A @ x - b
        line = delta * (abs(e) - delta / 2)
        value = np.where(abs(e) <= delta, e**2 / 2, line).sum()
        return value, A.T @ np.clip(e, -delta, delta)

    return smooth


def logistic(A, b):
    s = 2 * b - 1
    return lambda x: (
        np.logaddexp(0, -s * (A @ x)).mean(),
        A.T @ (-s * expit(-s * (A @ x))) / len(b),
    )


def poisson(A, b):
    def smooth(x):
        z = A @ x
        value = (np.exp(z) - b * z + xlogy(b, b) - b).mean()
        return value, A.T @ (np.exp(z) - b) / len(b)

    return smooth


def softmax(A, b):
    def smooth(x):
        log_p = log_softmax(A @ x.reshape(C, -1).T, axis=1)  # (m, C)
        error = np.exp(log_p) - np.eye(C)[b]
        return -log_p[np.arange(len(b)), b].mean(), (error.T @ A / len(b)).ravel()

    return smooth


def l1(lam, w):
    return (
        lambda x: lam * (w * abs(x)).sum(),
        lambda v, p: np.sign(v) * np.maximum(abs(v) - p * lam * w, 0),
    )


def elastic_net(lam, lam2, w):
    return (
        lambda x: (w * (lam * abs(x) + lam2 / 2 * x**2)).sum(),
        lambda v, p: l1(lam, w)[1](v, p) / (1 + p * lam2 * w),
    )


def positive(lam, lam2):
    return (
        lambda x: (lam * x + lam2 / 2 * x**2).sum(),
        lambda v, p: np.maximum(v - p * lam, 0) / (1 + p * lam2),
    )


def box(low, high):
    return lambda x: 0.0, lambda v, p: np.clip(v, low, high)


def project_simplex(v, p):
    u = np.sort(v)[::-1]
    shift = (np.cumsum(u) - 1) / np.arange(1, len(v) + 1)
    return np.maximum(v - shift[np.flatnonzero(u > shift)[-1]], 0)


def project_sum_at_most(v, p):
    positive = np.maximum(v, 0)
    return positive if positive.sum() <= 1 else project_simplex(v, p)


def group_l1(lam, w, groups=GROUPS):
    norms = lambda x: np.sqrt(np.bincount(groups, x**2))  # noqa: E731

    def prox(v, p):
        shrink = 1 - p * lam * w / np.maximum(norms(v), 1e-300)
        return np.maximum(shrink, 0)[groups] * v

    return lambda x: lam * (w * norms(x)).sum(), prox


def sparse_group_l1(lam, ratio, w):
    value, shrink = group_l1((1 - ratio) * lam, w)
    alone, cut = l1(ratio * lam, np.ones(len(GROUPS)))
    return lambda x: value(x) + alone(x), lambda v, p: shrink(cut(v, p), p)


@dataclass(frozen=True)
class Row:
    """The library's problem of B instances, and each of them in NumPy with its minimiser."""

    problem: Problem
    instances: tuple[Instance, ...]
    minimisers: torch.Tensor
    minima: torch.Tensor


def data(intercept: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A (B, m, d), targets (B, m) and weights (d,): 0 for the intercept, else uneven."""
    rng = np.random.default_rng(7)
    A = rng.standard_normal((B, M, D)) / np.sqrt(M)
    w = np.array([1, 0.5, 2, 1, 1, 1.5, 1]) if intercept else np.ones(D)
    if intercept:
        A[:, :, 0], w[0] = 1, 0
    b = A @ (rng.standard_normal(D) * (rng.random(D) < 0.6)) + 0.3 * rng.standard_normal((B, M))
    return A, b + (2 if intercept else 0), w


def assemble(problem: Problem, smooth: list, penalty: list, L: Callable) -> Row:
    n = problem.n
    instances = [Instance(smooth[i], *penalty[i], n, L(i)) for i in range(B)]
    x = [minimise(instance) for instance in instances]
    minima = [instance.objective(xi) for instance, xi in zip(instances, x, strict=True)]
    return Row(problem, tuple(instances), torch.tensor(np.array(x)), torch.tensor(minima))


def glm(kind: str, intercept: bool) -> Row:
    A, b, w = data(intercept)
    curvature = {
        "lasso": 1.0,
        "elastic": 1.0,
        "huber": 1.0,
        "poisson": 40 / M,
        "logistic": 0.25 / M,
        "softmax": 0.5 / M,
    }[kind]
    lam = np.array([0.1, 0.3]) if kind in ("lasso", "elastic", "huber") else np.array([0.004, 0.01])
    weights = w if intercept else None
    if kind == "lasso":
        problem = pl.lasso(A, b, lam, weights=weights)
        smooth, penalty = least_squares, [l1(lam[i], w) for i in range(B)]
    elif kind == "elastic":
        problem = pl.elastic_net(A, b, lam, 0.1, weights=weights)
        smooth, penalty = least_squares, [elastic_net(lam[i], 0.1, w) for i in range(B)]
    elif kind == "huber":
        problem = pl.huber(A, b, lam, 0.3, weights=weights)
        smooth, penalty = huber, [l1(lam[i], w) for i in range(B)]
    elif kind == "poisson":
        b = np.round(np.exp(b / 2))
        problem = pl.poisson(A, b, lam, weights=weights)
        smooth, penalty = poisson, [l1(lam[i], w) for i in range(B)]
    elif kind == "logistic":
        b = (b > np.median(b, axis=1, keepdims=True) - 0.2).astype(float)
        problem = pl.logistic(A, b, lam, weights=weights)
        smooth, penalty = logistic, [l1(lam[i], w) for i in range(B)]
    else:
        b = np.digitize(b, np.quantile(b, [0.25, 0.6]))
        w = np.tile(w, C)
        problem = pl.softmax(A, b, lam, weights=w if intercept else None)
        smooth, penalty = softmax, [l1(lam[i], w) for i in range(B)]
    norms = np.linalg.norm(A, 2, axis=(1, 2)) ** 2 * curvature
    return assemble(problem, [smooth(A[i], b[i]) for i in range(B)], penalty, lambda i: norms[i])


def constrained(kind: str) -> Row:
    A, b, _ = data(intercept=False)
    w = np.array([1.0, 2.0, 0.5])
    f = LeastSquares(Dense(torch.tensor(A)), torch.tensor(b))
    low, high = np.full(D, -0.2), np.linspace(0.0, 0.6, D)
    bounds = torch.tensor(low)[None], torch.tensor(high)[None]
    problem, penalty = {
        "simplex": lambda: (pl.simplex_ls(A, b), (lambda x: 0.0, project_simplex)),
        "sum-at-most": lambda: (
            pl.simplex_ls(A, b, at_most=True),
            (lambda x: 0.0, project_sum_at_most),
        ),
        "box": lambda: (Problem(f, Box(*bounds)), box(low, high)),
        "nnls": lambda: (pl.nnls(A, b), box(0, np.inf)),
        "non-negative": lambda: (
            pl.elastic_net(A, b, 0.1, 0.2, nonnegative=True),
            positive(0.1, 0.2),
        ),
        "group": lambda: (pl.group_lasso(A, b, 0.4, GROUPS, weights=w), group_l1(0.4, w)),
        "sparse-group": lambda: (
            pl.sparse_group_lasso(A, b, 0.4, GROUPS, 0.3, weights=w),
            sparse_group_l1(0.4, 0.3, w),
        ),
    }[kind]()
    norms = np.linalg.norm(A, 2, axis=(1, 2)) ** 2
    smooth = [least_squares(A[i], b[i]) for i in range(B)]
    return assemble(problem, smooth, [penalty] * B, lambda i: norms[i])


def several_targets() -> Row:
    """Multi-task LASSO: one problem of the matrix A (x) I with the rows of X as groups."""
    A, b, _ = data(intercept=False)
    Y = np.stack([b, b[:, ::-1] + 0.5, 0.3 * b], axis=2)  # (B, M, T)
    T, w = Y.shape[2], np.linspace(0.5, 2.0, D)
    problem = pl.multitask_lasso(A, Y, 0.4, weights=w)
    smooth = [least_squares(np.kron(A[i], np.eye(T)), Y[i].ravel()) for i in range(B)]
    penalty = group_l1(0.4, w, np.repeat(np.arange(D), T))
    norms = np.linalg.norm(A, 2, axis=(1, 2)) ** 2
    return assemble(problem, smooth, [penalty] * B, lambda i: norms[i])


GLMS = ("lasso", "elastic", "huber", "logistic", "poisson", "softmax")
BUILDERS: dict[str, Callable[[], Row]] = {
    **{kind: lambda k=kind: glm(k, False) for kind in GLMS},
    **{f"{kind}-intercept": lambda k=kind: glm(k, True) for kind in GLMS},
    **{
        kind: lambda k=kind: constrained(k)
        for kind in (
            "simplex",
            "sum-at-most",
            "box",
            "nnls",
            "non-negative",
            "group",
            "sparse-group",
        )
    },
    "several-targets": several_targets,
}
ROWS: dict[str, Callable[[], Row]] = {name: cache(build) for name, build in BUILDERS.items()}
