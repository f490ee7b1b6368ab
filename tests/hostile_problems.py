"""Problems drawn to be hard on a solver, each instance next to its formula in NumPy float64."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import torch
from hypothesis import strategies as st

from contracts.problem_table import box, elastic_net, l1, least_squares, logistic
from proxlearn.problems.arrays import to_matrix
from proxlearn.problems.penalties import (
    L1,
    AbsoluteDeviation,
    Box,
    ElasticNet,
    GroupL1,
    NonNegative,
    NonNegativeElasticNet,
    Simplex,
    Zero,
)
from proxlearn.problems.problem import Problem
from proxlearn.problems.smooth import Autograd, LeastSquares, Logistic, NoSmooth, Quadratic, Softmax
from proxlearn.problems.vectors import to_positive, to_rows, to_weights

C = 3
EPS = np.finfo(np.float64).eps


class Plain(NamedTuple):
    """One instance: f with its gradient, r, its prox with one p, n, L, and the rounding of F."""

    smooth: Callable[[np.ndarray], tuple[float, np.ndarray]]
    penalty: Callable[[np.ndarray], float]
    prox: Callable[[np.ndarray, float], np.ndarray]
    n: int
    L: float
    noise: Callable[[np.ndarray], float]

    def objective(self, x: np.ndarray) -> float:
        return self.smooth(x)[0] + self.penalty(x)


class Hostile(NamedTuple):
    """What was drawn: how to build the problem, which may raise, and its instances in NumPy."""

    build: Callable[[], Problem]
    instances: Callable[[], list[Plain]]
    smooth: str
    penalty: str
    drawn: str
    extreme: list[bool]
    """For each instance, whether squares of its numbers may leave the range of the dtype."""


def softmax(A, b):
    def smooth(x):
        z = A @ x.reshape(C, -1).T  # (m, C)
        z = z - z.max(1, keepdims=True)
        log_p = z - np.log(np.exp(z).sum(1, keepdims=True))
        error = np.exp(log_p) - np.eye(C)[b]
        return -log_p[np.arange(len(b)), b].mean(), (error.T @ A / len(b)).ravel()

    return smooth


def quadratic(Q, c):
    return lambda x: (0.5 * x @ (Q @ x) - c @ x, Q @ x - c)


def simplex(v, p):
    order = np.sort(v)[::-1]
    shift = (np.cumsum(order) - 1) / np.arange(1, len(v) + 1)
    x = np.maximum(v - shift[np.flatnonzero(order >= shift)[-1]], 0)
    return x / x.sum()


def groups(n):
    return np.arange(n) % max(1, n // 2)


def group_l1(lam, n):
    def norms(x):
        return np.sqrt(np.bincount(groups(n), x**2))

    def prox(v, p):
        shrink = 1 - p * lam / np.maximum(norms(v), 1e-300)
        return np.maximum(shrink, 0)[groups(n)] * v

    return lambda x: lam * norms(x).sum(), prox


def deviation(lam):
    """lam |x - 1|."""
    return lambda x: lam * abs(x - 1).sum(), lambda v, p: 1 + l1(lam, 1.0)[1](v - 1, p)


def weights(n):
    """Uneven, and 0 for the first coordinate."""
    return 0.5 * np.arange(n)


PENALTIES: dict[str, tuple[Callable, Callable]] = {
    "zero": (lambda lam, n, A: Zero(), lambda lam, n: (lambda x: 0.0, lambda v, p: v)),
    "l1": (lambda lam, n, A: L1(to_positive("lam", lam, A)), lambda lam, n: l1(lam, np.ones(n))),
    "weighted l1": (
        lambda lam, n, A: L1(to_positive("lam", lam, A), to_weights("w", weights(n), n, A)),
        lambda lam, n: l1(lam, weights(n)),
    ),
    "elastic net": (
        lambda lam, n, A: ElasticNet(
            to_positive("lam", lam, A, at_least=0), to_positive("lam2", lam, A)
        ),
        lambda lam, n: elastic_net(lam, lam, np.ones(n)),
    ),
    "non-negative elastic net": (
        lambda lam, n, A: NonNegativeElasticNet(
            to_positive("lam", lam, A), torch.zeros(1, dtype=A.dtype)
        ),
        lambda lam, n: (
            lambda x: lam * x.sum(),
            lambda v, p: np.maximum(v - p * lam, 0),
        ),
    ),
    "non-negative": (lambda lam, n, A: NonNegative(), lambda lam, n: box(0, np.inf)),
    "box": (
        lambda lam, n, A: Box(*(torch.full((1, 1), v, dtype=A.dtype) for v in (-0.25, 1.0))),
        lambda lam, n: box(-0.25, 1.0),
    ),
    "simplex": (
        lambda lam, n, A: Simplex(to_positive("radius", 1.0, A)),
        lambda lam, n: (lambda x: 0.0, simplex),
    ),
    "group l1": (
        lambda lam, n, A: GroupL1(to_positive("lam", lam, A), torch.from_numpy(groups(n))),
        lambda lam, n: group_l1(lam, n),
    ),
    "absolute deviation": (
        lambda lam, n, A: AbsoluteDeviation(
            torch.ones(1, n, 1, dtype=A.dtype), to_positive("lam", lam, A)[:, None, None] * 1
        ),
        lambda lam, n: deviation(lam),
    ),
}


def _autograd(A, b):
    L = torch.linalg.matrix_norm(A.A, 2).reshape(-1) ** 2

    def half_squares(x, A, b):
        return 0.5 * ((A @ x[:, :, None])[:, :, 0] - b).square().sum(-1)

    return Autograd(half_squares, A.shape[1], L, (A.A.reshape(-1, *A.shape), b))


SMOOTH: dict[str, tuple[Callable, Callable, Callable[[int], float] | None]] = {
    "least squares": (LeastSquares, least_squares, lambda m: 1.0),
    "logistic": (Logistic, logistic, lambda m: 0.25 / m),
    "softmax": (
        lambda A, b: Softmax(
            A, torch.nn.functional.one_hot(b.long(), C).mT.to(A.dtype).contiguous(), C
        ),
        softmax,
        lambda m: 0.5 / m,
    ),
    "quadratic": (Quadratic, quadratic, None),  # L = |Q|
    "autograd": (_autograd, least_squares, lambda m: 1.0),
    "none": (
        lambda A, b: NoSmooth(A.shape[1], torch.zeros(1, dtype=A.dtype)),
        lambda A, b: lambda x: (0.0, np.zeros(A.shape[1])),
        lambda m: 0.0,
    ),
}


def noise(smooth: str, A: np.ndarray, b: np.ndarray) -> Callable[[np.ndarray], float]:
    """A bound on the rounding of f(x) in float64, when A x is formed in any order."""
    m = len(A)

    def bound(x):
        W = x.reshape(-1, A.shape[1])
        of_z = 8 * EPS * (A.shape[1] * (abs(A) @ abs(W).T) + abs(b)[:, None])  # (m, classes)
        if smooth in ("logistic", "softmax"):
            return 4 * of_z.sum() / m + 8 * EPS
        if smooth == "quadratic":
            return 16 * EPS * A.size * (abs(x) @ (abs(A) @ abs(x)) + abs(b) @ abs(x))
        r = abs(A @ x - b)
        return float(of_z[:, 0] @ (r + of_z[:, 0])) + 16 * EPS * (r @ r)

    return bound


LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "plain": lambda A: A,
    "Fortran": lambda A: np.asfortranarray(A),
    "reversed": lambda A: A[..., ::-1, :][..., ::-1, :],
    "strided": lambda A: np.repeat(A, 2, axis=-1)[..., ::2],
    "read-only": lambda A: np.frombuffer(A.tobytes(), A.dtype).reshape(A.shape),
    "csr": scipy.sparse.csr_array,
    "csc": scipy.sparse.csc_matrix,
    "coo": scipy.sparse.coo_array,
}
DTYPES = ["float64", "float64", "float32", "float16", "int64", "int8", "bool"]
SCALES = [0, 0, 0, 0, 0, -300, -160, -30, -3, 3, 30, 160, 300]
LAMS = [0.1, 0.01, 0.5, 0.0, 1e-12, 1e-6, 1e-3, 1.0, 2.0, 1e6]
"""Relative to the lam above which x = 0 for the l1 norm."""
DEFECTS = ["none", "zero A", "zero columns", "duplicated columns", "zero b", "constant b", "rows"]


@st.composite
def hostile(draw: st.DrawFn) -> Hostile:
    """A problem of one to three instances, of any kind, dtype, layout and scale."""
    smooth, penalty = draw(st.sampled_from([*SMOOTH])), draw(st.sampled_from([*PENALTIES]))
    B = draw(st.sampled_from([1, 1, 3]))
    m, n = draw(st.integers(1, 8)), draw(st.integers(1, 12))
    dtype = draw(st.sampled_from(DTYPES))
    one = B == 1 and smooth != "autograd"
    layout = draw(st.sampled_from([*LAYOUTS][: None if one and dtype != "float16" else 5]))
    scale_A, scale_b = draw(st.sampled_from(SCALES)), draw(st.sampled_from(SCALES))
    seed, defect, part = draw(
        st.tuples(st.integers(0, 999), st.sampled_from(DEFECTS), st.sampled_from(LAMS))
    )
    drawn = f"{B=} {m=} {n=} {dtype} {layout} {scale_A=} {scale_b=} {seed=} {defect} lam={part}"
    A, b = _data(np.random.default_rng(seed), (B, m, n), defect)
    with np.errstate(all="ignore"):
        if dtype.startswith("float"):
            A, b = A * 10.0**scale_A, b * 10.0**scale_b
        else:
            A, b, scale_A, scale_b = 3 * A, 3 * b, 0, 0
        broken = B > 1 and smooth == "least squares" and draw(st.booleans())
        if broken:
            A[1] *= 1e200
        if smooth in ("logistic", "softmax"):
            b = np.digitize(b, [0.0] if smooth == "logistic" else [-0.5, 0.5])
        if smooth == "quadratic":  # semidefinite in any precision
            A, b = A.mT @ A, np.einsum("bmn,bm->bn", A, b)
            A += 0 if dtype == "float64" else 1e-2 * abs(A).max() * np.eye(n)
            dtype, m = dtype if dtype == "float64" else "float32", n
        A = A.astype(dtype)
        b = b if smooth in ("logistic", "softmax") else b.astype(dtype)
        lam = part * _lam_max(smooth, A, b)
    given, problem32 = LAYOUTS[layout](A[0] if B == 1 else A), dtype in ("float16", "float32")

    def build() -> Problem:
        op = to_matrix("A", given).operator
        f = SMOOTH[smooth][0](op, to_rows("b", b, m, op))
        return Problem(f, PENALTIES[penalty][0](lam, f.n, op))

    def instances() -> list[Plain]:
        precision = np.float32 if problem32 else np.float64
        numbers = [v.astype(precision).astype(np.float64) for v in (A, b, lam)]
        return [_plain(smooth, penalty, *(v[i] for v in numbers)) for i in range(B)]

    far = max(abs(scale_A), abs(scale_b)) > (3 if problem32 else 30)
    extreme = [far or (broken and i == 1) for i in range(B)]
    return Hostile(build, instances, smooth, penalty, f"{drawn} {broken=}", extreme)


def _data(rng: np.random.Generator, shape: tuple[int, ...], defect: str):
    A = rng.normal(size=shape) * rng.choice([0, 1, 1], size=shape)
    b = A @ (rng.normal(size=shape[2]) * rng.choice([0, 1], size=shape[2]))
    b = b + 0.1 * rng.normal(size=b.shape)
    if defect == "zero A":
        A[:] = 0
    elif defect == "zero columns":
        A[:, :, ::2] = 0
    elif defect == "duplicated columns":
        A[:, :, 1:] = A[:, :, :1]
    elif defect == "rows":
        A[:, ::2] = 0
    elif defect != "none":
        b[:] = 0 if defect == "zero b" else 1
    return A, b


def _lam_max(smooth: str, A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(B,); 1 where that is not a positive number."""
    A, b = A.astype(np.float64), b.astype(np.float64)
    target = {"logistic": (0.5 - b) / b.shape[1], "softmax": np.ones_like(b) / b.shape[1]}
    lam = abs(np.einsum("bmn,bm->bn", A, target.get(smooth, b))).max(1)
    return np.where(np.isfinite(lam) & (lam > 0), lam, 1.0)


def _plain(smooth: str, penalty: str, A: np.ndarray, b: np.ndarray, lam: float) -> Plain:
    _, formula, curvature = SMOOTH[smooth]
    n = A.shape[1] * (C if smooth == "softmax" else 1)
    labels = b.astype(int) if smooth == "softmax" else b
    norm = np.linalg.norm(A, 2) if np.isfinite(A).all() else np.inf
    L = norm if curvature is None else norm**2 * curvature(len(A))
    return Plain(
        formula(A, labels), *PENALTIES[penalty][1](float(lam), n), n, L, noise(smooth, A, b)
    )
