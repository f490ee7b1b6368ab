"""The penalties that the contract runs over, each next to its formula in NumPy and in cvxpy."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

import conic as cp
from proxlearn.problems.penalties import (
    L1,
    AbsoluteDeviation,
    Box,
    ElasticNet,
    GroupL1,
    NonNegative,
    NonNegativeElasticNet,
    Penalty,
    Simplex,
    SparseGroupL1,
    SumAtMost,
    Zero,
)

B = 3
LAM = np.array([0.3, 1.0, 2.0])
RADIUS = np.array([1.0, 0.5, 3.0])


@dataclass(frozen=True)
class Row:
    """A penalty of n variables; `value` and `model` are its i-th instance, written independently.

    `into` maps any points (k, n) into the set where r is finite, `groups` says which coordinates
    need the same p.
    """

    penalty: Penalty
    n: int
    value: Callable[[int, np.ndarray], np.ndarray]
    model: Callable[[int, "cp.Variable"], "tuple[cp.Expression | float, list]"]
    into: Callable[[int, np.ndarray], np.ndarray] = field(default=lambda i, x: x)
    groups: np.ndarray | None = None
    conic: float = 1e-6
    """Accuracy of the conic solver on this penalty."""

    def metric(self, seed: int, spread: float = 1.0) -> Tensor:
        """p (B, n), a value a coordinate, over `spread` decades each way around 1."""
        groups = np.arange(self.n) if self.groups is None else self.groups
        rng = np.random.default_rng(seed)
        each = 10.0 ** rng.uniform(-spread, spread, (B, groups.max() + 1))
        return torch.as_tensor(each[:, groups])

    def objective(self, i: int, x: np.ndarray, v: np.ndarray, p: np.ndarray) -> np.ndarray:
        """What the prox minimises, at the points x (k, n)."""
        return self.value(i, x) + 0.5 * ((x - v) ** 2 / p).sum(-1)


def tensor(value) -> Tensor:
    return torch.as_tensor(np.asarray(value, dtype=np.float64))


def zero(n: int) -> Row:
    return Row(Zero(), n, lambda i, x: np.zeros(len(x)), lambda i, x: (0.0, []))


def l1(weighted: bool, unpenalised: bool = False) -> Callable[[int], Row]:
    def build(n: int) -> Row:
        w = 0.5 + np.arange(B * n).reshape(B, n) % 5 if weighted else np.ones((B, n))
        if unpenalised:
            w[:, 0] = 0
        return Row(
            L1(tensor(LAM), tensor(w) if weighted else None),
            n,
            lambda i, x: LAM[i] * (w[i] * abs(x)).sum(-1),
            lambda i, x: (LAM[i] * w[i] @ cp.abs(x), []),
        )

    return build


def elastic_net(weighted: bool) -> Callable[[int], Row]:
    def build(n: int) -> Row:
        w = np.arange(n)[None] + np.zeros((B, 1)) if weighted else np.ones((B, n))
        lam2 = 0.7
        return Row(
            ElasticNet(tensor(LAM), tensor([lam2]), tensor(w[:1]) if weighted else None),
            n,
            lambda i, x: (w[i] * (LAM[i] * abs(x) + lam2 / 2 * x**2)).sum(-1),
            lambda i, x: (LAM[i] * w[i] @ cp.abs(x) + lam2 / 2 * w[i] @ cp.square(x), []),
        )

    return build


def indicator(inside: Callable[[int, np.ndarray], np.ndarray]) -> Callable:
    return lambda i, x: np.where(inside(i, x).all(-1), 0.0, np.inf)


def non_negative(n: int) -> Row:
    return Row(
        NonNegative(),
        n,
        indicator(lambda i, x: x >= 0),
        lambda i, x: (0.0, [x >= 0]),
        lambda i, x: abs(x),
    )


def non_negative_elastic_net(lam2: float) -> Callable[[int], Row]:
    def build(n: int) -> Row:
        w = 0.5 + np.arange(B * n).reshape(B, n) % 5
        inside = indicator(lambda i, x: x >= 0)
        return Row(
            NonNegativeElasticNet(tensor(LAM), tensor([lam2]), tensor(w)),
            n,
            lambda i, x: (w[i] * (LAM[i] * x + lam2 / 2 * x**2)).sum(-1) + inside(i, x),
            lambda i, x: (LAM[i] * w[i] @ x + lam2 / 2 * w[i] @ cp.square(x), [x >= 0]),
            lambda i, x: abs(x),
        )

    return build


def box(bounds: Callable[[int], tuple[np.ndarray, np.ndarray]]) -> Callable[[int], Row]:
    def build(n: int) -> Row:
        lower, upper = bounds(n)
        full = np.broadcast_to(lower, (B, n)), np.broadcast_to(upper, (B, n))

        def model(i: int, x: cp.Variable) -> tuple[float, list]:
            low, high = full[0][i], full[1][i]
            below, above = np.isfinite(low), np.isfinite(high)
            return 0.0, [x[below] >= low[below], x[above] <= high[above]]

        return Row(
            Box(tensor(lower), tensor(upper)),
            n,
            indicator(lambda i, x: (x >= full[0][i]) & (x <= full[1][i])),
            model,
            lambda i, x: np.clip(x, full[0][i], full[1][i]),
        )

    return build


def simplex(n: int) -> Row:
    return Row(
        Simplex(tensor(RADIUS)),
        n,
        indicator(lambda i, x: (x >= 0) & (abs(x.sum(-1) - RADIUS[i]) < 1e-9 * RADIUS[i])[:, None]),
        lambda i, x: (0.0, [x >= 0, cp.sum(x) == RADIUS[i]]),
        lambda i, x: RADIUS[i] * (abs(x) + 1e-300) / (abs(x) + 1e-300).sum(-1, keepdims=True),
    )


def sum_at_most(n: int) -> Row:
    def inside(i, x):
        total = x.clip(0).sum(-1, keepdims=True)
        return x.clip(0) * np.minimum(1.0, RADIUS[i] / np.where(total > 0, total, 1.0))

    return Row(
        SumAtMost(tensor(RADIUS)),
        n,
        indicator(lambda i, x: (x >= 0) & (x.sum(-1) < (1 + 1e-9) * RADIUS[i])[:, None]),
        lambda i, x: (0.0, [x >= 0, cp.sum(x) <= RADIUS[i]]),
        inside,
    )


def group_l1(weighted: bool) -> Callable[[int], Row]:
    def build(n: int) -> Row:
        # Two or three coordinates each, interleaved, and numbered against their order.
        groups = np.arange(n)[::-1] % max(1, n // 2)
        G = groups.max() + 1
        w = 1 + np.arange(B * G).reshape(B, G) % 3 if weighted else np.ones((B, G))
        members = [np.flatnonzero(groups == g) for g in range(G)]
        return Row(
            GroupL1(tensor(LAM), torch.as_tensor(groups.copy()), tensor(w) if weighted else None),
            n,
            lambda i, x: sum(
                LAM[i] * w[i, g] * np.linalg.norm(x[:, k], axis=1) for g, k in enumerate(members)
            ),
            lambda i, x: (
                LAM[i] * sum(w[i, g] * cp.norm(x[k]) for g, k in enumerate(members)),
                [],
            ),
            groups=groups,
        )

    return build


def sparse_group_l1(weighted: bool, unpenalised: bool = False) -> Callable[[int], Row]:
    def build(n: int) -> Row:
        groups = np.arange(n)[::-1] % max(1, n // 2)
        G, ratio = groups.max() + 1, 0.3
        w = 1 + np.arange(B * G).reshape(B, G) % 3 if weighted else np.ones((B, G))
        v = 0.5 + np.arange(B * n).reshape(B, n) % 2 if weighted else np.ones((B, n))
        if unpenalised:
            w[:, 0], v[:, groups == 0] = 0, 0
        members = [np.flatnonzero(groups == g) for g in range(G)]
        return Row(
            SparseGroupL1(
                tensor(LAM), torch.as_tensor(groups.copy()), tensor([ratio]),
                tensor(w) if weighted else None, tensor(v) if weighted else None,
            ),
            n,
            lambda i, x: LAM[i] * ratio * (v[i] * abs(x)).sum(1) + sum(
                LAM[i] * (1 - ratio) * w[i, g] * np.linalg.norm(x[:, k], axis=1)
                for g, k in enumerate(members)
            ),
            lambda i, x: (
                LAM[i] * (ratio * cp.norm1(cp.multiply(v[i], x))
                + (1 - ratio) * sum(w[i, g] * cp.norm(x[k]) for g, k in enumerate(members))),
                [],
            ),
            groups=groups,
            conic=1e-5,
        )  # fmt: skip

    return build


def absolute_deviation(centres: int, weighted: bool) -> Callable[[int], Row]:
    def build(n: int) -> Row:
        rng = np.random.default_rng(n)
        c = np.round(rng.normal(size=(B if weighted else 1, n, centres)), 1)
        w = 0.2 + rng.random((1, n, centres)) if weighted else np.ones((1, n, centres))
        c[:, 0, -1] = c[:, 0, 0]  # a centre that counts twice
        full, each = np.broadcast_to(c, (B, n, centres)), w[0]

        def model(i: int, x: cp.Variable) -> tuple[cp.Expression, list]:
            terms = [each[:, j] @ cp.abs(x - full[i, :, j]) for j in range(centres)]
            return sum(terms), []

        return Row(
            AbsoluteDeviation(tensor(c), tensor(w) if weighted else None),
            n,
            lambda i, x: (each * abs(x[:, :, None] - full[i])).sum((1, 2)),
            model,
        )

    return build


ROWS: dict[str, Callable[[int], Row]] = {
    "zero": zero,
    "l1": l1(weighted=False),
    "l1-weighted": l1(weighted=True),
    "l1-intercept": l1(weighted=True, unpenalised=True),
    "elastic-net": elastic_net(weighted=False),
    "elastic-net-weighted": elastic_net(weighted=True),
    "non-negative": non_negative,
    "non-negative-l1": non_negative_elastic_net(0.0),
    "non-negative-elastic-net": non_negative_elastic_net(0.7),
    "box-one": box(lambda n: (np.full((1, 1), -0.5), np.full((1, 1), 0.25))),
    "box": box(lambda n: (-np.ones((1, n)), np.arange(B * n).reshape(B, n) % 3 - 0.5)),
    "box-half-open": box(
        lambda n: (np.where(np.arange(n) % 2, -np.inf, -1.0)[None], np.full((1, n), 0.5))
    ),
    "box-upper-infinite": box(
        lambda n: (np.full((1, n), -0.2), np.where(np.arange(n) % 2, np.inf, 1.0)[None])
    ),
    "simplex": simplex,
    "sum-at-most": sum_at_most,
    "group-l1": group_l1(weighted=False),
    "group-l1-weighted": group_l1(weighted=True),
    "sparse-group-l1": sparse_group_l1(weighted=False),
    "sparse-group-l1-weighted": sparse_group_l1(weighted=True),
    "sparse-group-l1-intercept": sparse_group_l1(weighted=True, unpenalised=True),
    "absolute-deviation": absolute_deviation(3, weighted=False),
    "absolute-deviation-weighted": absolute_deviation(4, weighted=True),
}
