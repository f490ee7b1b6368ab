"""Random and hostile instances of every constructor: instance i of a seed is always the same."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import torch

import proxlearn as pl
from fuzz.plain import LONG, Plain
from proxlearn.problems.arrays import to_matrix
from proxlearn.problems.vectors import to_rows

KINDS = (
    "lasso", "elastic_net", "nnls", "simplex_ls", "sum_at_most", "group_lasso",
    "logistic", "softmax", "box", "positive", "huber", "poisson",
    "sparse_group_lasso", "multitask_lasso",
)  # fmt: skip
DEFECTS = (
    "none", "none", "none", "zero columns", "duplicate columns", "opposite columns",
    "constant target", "zero target", "exact fit", "zero rows", "non-negative A",
)  # fmt: skip
TOLERANCES = {"float64": (1e-3, 1e-6, 1e-6, 1e-9), "float32": (1e-3, 1e-4)}
CLASSES = 3
TASKS = 2


@dataclass(frozen=True)
class Instance:
    """A drawn problem of B instances, how to build it, and each of them in extended precision."""

    kind: str
    text: str
    tol: float
    A: np.ndarray  # (1, m, n) or (B, m, n)
    b: np.ndarray  # (B, m)
    numbers: dict
    sparse: bool = False
    by_columns: bool = False

    @property
    def own(self) -> bool:
        """Whether each instance has an A of its own."""
        return len(self.A) > 1

    def given(self) -> tuple[Any, np.ndarray]:
        """A and b as the constructor takes them."""
        b = self.b if len(self.b) > 1 else self.b[0]
        if self.own:
            return self.A, b
        A = np.asfortranarray(self.A[0]) if self.by_columns else self.A[0]
        return (scipy.sparse.csr_array(A) if self.sparse else A), b

    def build(self, A: Any = None, b: Any = None) -> pl.Problem:
        """The problem; with other arrays of the same numbers where they are given."""
        arrays = self.given()
        A, b = (arrays[0] if A is None else A), (arrays[1] if b is None else b)
        return construct(self.kind, A, b, self.numbers)

    def plains(self) -> list[Plain]:
        """Each instance in extended precision."""
        B, dtype, kind = len(self.b), str(self.A.dtype), self.kind
        one = [self.A[i if self.own else 0] for i in range(B)]
        return [plain(kind, one[i], self.b[i], self.numbers, dtype) for i in range(B)]


def draw(seed: int, number: int) -> Instance:
    """Instance `number` of a seed."""
    rng = np.random.default_rng([seed, number])
    kind = str(rng.choice(KINDS))
    m, n = (int(rng.integers(1, 9)) for _ in range(2))
    m, n = (1 if rng.random() < 0.1 else size for size in (m, n))
    B = int(rng.choice([1, 1, 1, 3]))
    own = B > 1 and rng.random() < 0.5
    dtype = "float32" if rng.random() < 0.2 else "float64"
    defect = str(rng.choice(DEFECTS))
    A, b = data(rng, kind, B if own else 1, B, m, n, defect)
    A, b, scales = scaled(rng, A, b, dtype, kind)
    A, b = A.astype(dtype), b.astype(dtype)
    sparse = not own and rng.random() < 0.25
    numbers = parameters(rng, kind, A, b, n)
    tol = float(rng.choice(TOLERANCES[dtype]))
    by_columns = bool(rng.random() < 0.5)  # single problems in this order have a way of their own
    text = f"{kind} B={B} own={own} m={m} n={n} {dtype} {defect} {scales} {sparse=} {tol=:g}"
    text = f"{text} {by_columns=}"

    return Instance(kind, text, tol, A, b, numbers, sparse, by_columns)


def data(rng, kind, batch_A, B, m, n, defect):
    A = rng.normal(size=(batch_A, m, n)) * (rng.random((batch_A, m, n)) < rng.choice([0.5, 1.0]))
    if defect == "zero columns":
        A[:, :, rng.random(n) < 0.5] = 0
    if defect == "duplicate columns":
        A = A[:, :, rng.integers(0, n, n)]
    if defect == "opposite columns":
        A = A[:, :, rng.integers(0, n, n)] * rng.choice([-1, 1], n)
    if defect == "zero rows":
        A[:, rng.random(m) < 0.5] = 0
    if defect == "non-negative A":
        A = abs(A)
    x = rng.normal(size=(B, n)) * (rng.random((B, n)) < 0.5)
    if kind in ("nnls", "positive", "simplex_ls", "sum_at_most"):
        x = abs(x)
    if kind in ("simplex_ls", "sum_at_most"):
        x = (x + 1e-3) / (x + 1e-3).sum(1, keepdims=True)
    if kind == "box":
        x = x.clip(-0.3, 0.5)
    b = np.einsum("bmn,bn->bm", np.broadcast_to(A, (B, m, n)), x)
    if defect != "exact fit":
        b = b + rng.choice([1e-6, 0.1, 1.0]) * rng.normal(size=b.shape)
    if defect == "constant target":
        b[:] = 1.0
    if defect == "zero target":
        b[:] = 0.0
    if kind == "logistic":
        b = (b > 0).astype(float)
    if kind == "poisson":
        b = np.round(np.exp(b)) if rng.random() < 0.7 else abs(b)
    if kind == "softmax":
        b = np.digitize(b, [-0.3, 0.3]).astype(float)
    return A, b


def scaled(rng, A, b, dtype, kind):
    """A and b at other scales: common, for each column, for each entry."""
    reach = 150 if dtype == "float64" else 15
    mode = str(rng.choice(["plain", "plain", "common", "common", "columns", "entries"]))
    spread = float(rng.choice([1, 3, 10, reach / 2, reach]))
    labels = kind in ("logistic", "softmax", "poisson")
    e_A, e_b = np.zeros(1), np.zeros(1)
    if mode == "common":
        e_A, e_b = rng.uniform(-reach, reach, 2) * rng.integers(0, 2, 2)
    if mode == "columns":
        e_A = rng.uniform(-spread, spread, A.shape[2])
    if mode == "entries":
        e_A, e_b = rng.uniform(-spread, spread, A.shape), rng.uniform(-spread, spread, b.shape)
    A = A * 10.0**e_A
    return A, (b if labels else b * 10.0**e_b), f"{mode} {spread:g}"


def parameters(rng, kind, A, b, n) -> dict:
    """What else the constructor takes, relative to the lam above which x is 0."""
    A, b = A.astype(float), b.astype(float)
    dtype_tiny = 1e-35
    with np.errstate(all="ignore"):
        if kind == "logistic":
            top = abs(np.einsum("bmn,bm->bn", np.broadcast_to(A, (len(b), *A.shape[1:])), b - 0.5))
            top = top.max() / b.shape[1]
        elif kind == "poisson":
            top = abs(np.einsum("bmn,bm->bn", np.broadcast_to(A, (len(b), *A.shape[1:])), b - 1))
            top = top.max() / b.shape[1]
        elif kind == "softmax":
            top = abs(A).max()
        else:
            pulled = np.einsum("bmn,bm->bn", np.broadcast_to(A, (len(b), *A.shape[1:])), b)
            top = abs(pulled).max()
        square = float((A * A).max())
    part = float(rng.choice([1e-9, 1e-4, 0.01, 0.1, 0.5, 1.0, 2.0]))
    lam = part * top if np.isfinite(part * top) and part * top > dtype_tiny**8 else 1.0
    lam2 = float(rng.choice([1e-6, 0.1, 10.0])) * square
    lam2 = lam2 if np.isfinite(lam2) and lam2 > 0 else 1.0
    width = n * (CLASSES if kind == "softmax" else 1)
    weights = None
    if rng.random() < 0.4:
        weights = rng.uniform(0.1, 3, width)
        if rng.random() < 0.5:
            weights[rng.random(width) < 0.3] = 0
    size = 1.0
    with np.errstate(all="ignore"):
        natural = float(abs(b).max() / abs(A).max()) if abs(A).max() > 0 else 1.0
    if np.isfinite(natural) and natural > 0 and rng.random() < 0.7:
        size = natural
    delta = float(rng.choice([1e-3, 0.1, 1.0, 10.0]) * abs(b).max())
    if kind == "huber" and np.isfinite(delta * abs(A).max()) and delta > 0:
        lam = min(lam, part * float(abs(A).sum(1).max()) * delta) or 1.0
    if kind == "sum_at_most":
        size *= float(rng.choice([0.1, 1.0, 10.0]))
    groups = np.sort(rng.integers(0, max(1, n // 2), n))
    groups = np.unique(groups, return_inverse=True)[1]
    upper = np.where(rng.random(n) < rng.choice([0.0, 0.5, 1.0]), np.inf, 0.5 * size)
    lower = np.where(rng.random(n) < 0.5, 0.0, rng.choice([-0.3, 0.1]) * size)
    return {
        "lam": lam if kind != "elastic_net" or rng.random() < 0.8 else 0.0,
        "lam2": lam2, "delta": delta or 1.0, "weights": weights, "groups": groups, "radius": size,
        "lower": lower, "upper": np.maximum(upper, lower),
        "l1": float(rng.choice([0.0, lam])), "l2": float(rng.choice([0.0, lam2])),
    }  # fmt: skip


def is_by_columns(A) -> bool:
    return isinstance(A, np.ndarray) and A.flags.f_contiguous


def construct(kind: str, A, b, p: dict) -> pl.Problem:
    if kind in ("lasso", "logistic", "poisson", "softmax"):
        more = {"classes": p.get("classes", CLASSES)} if kind == "softmax" else {}
        return getattr(pl, kind)(A, b, p["lam"], weights=p["weights"], **more)
    if kind == "huber":
        return pl.huber(A, b, p["lam"], p["delta"], weights=p["weights"])
    if kind == "elastic_net":
        return pl.elastic_net(A, b, p["lam"], p["lam2"], weights=p["weights"])
    if kind == "nnls":
        return pl.nnls(A, b)
    if kind in ("simplex_ls", "sum_at_most"):
        return pl.simplex_ls(A, b, p["radius"], at_most=kind == "sum_at_most")
    if kind == "group_lasso":
        return pl.group_lasso(A, b, p["lam"], p["groups"], p.get("group_weights"))
    if kind == "sparse_group_lasso":
        rows = {"weights": p.get("group_weights"), "l1_weights": p["weights"]}
        return pl.sparse_group_lasso(A, b, p["lam"], p["groups"], 0.25, **rows)
    if kind == "multitask_lasso":
        stack = torch.stack if isinstance(b, torch.Tensor) else np.stack
        return pl.multitask_lasso(A, stack([b, _reversed(b)], -1), p["lam"], p.get("row_weights"))
    if kind == "positive" and p["l1"] > 0 and is_by_columns(A):
        more = {
            "weights": None if p["weights"] is None else p["weights"] + 0.1,
            "nonnegative": True,
        }
        if p["l2"] > 0:
            return pl.elastic_net(A, b, p["l1"], p["l2"], **more)
        return pl.lasso(A, b, p["l1"], **more)
    op = to_matrix("A", A).operator
    f = pl.smooth.LeastSquares(op, to_rows("b", b, op.shape[0], op))

    def row(values) -> torch.Tensor:
        return torch.as_tensor(np.asarray(values, dtype=float)).to(op.dtype)

    if kind == "box":
        r = pl.penalties.Box(row(p["lower"])[None], row(p["upper"])[None])
    else:
        weights = None if p["weights"] is None else row(p["weights"] + 0.1)[None]
        r = pl.penalties.NonNegativeElasticNet(row([p["l1"]]), row([p["l2"]]), weights)
    return pl.Problem(f, r, single=np.ndim(b) == 1)


def _reversed(b):
    return b.flip(-1) if isinstance(b, torch.Tensor) else b[..., ::-1]


def plain(kind: str, A, b, p: dict, dtype: str) -> Plain:
    """The instance that the constructor describes, its numbers rounded to A's precision."""

    def stored(value) -> np.ndarray:
        return np.asarray(value, dtype=float).astype(dtype).astype(LONG)

    classes = p.get("classes", CLASSES) if kind == "softmax" else 1
    n = A.shape[1] * classes
    one, zero = np.ones(n, LONG), np.zeros(n, LONG)
    t, q, lower, upper = zero, zero, -one * np.inf, one * np.inf
    groups, radius = None, None
    weights = one if p["weights"] is None else stored(p["weights"])
    if kind in ("lasso", "elastic_net", "logistic", "softmax", "huber", "poisson"):
        t = stored(p["lam"]) * weights
    if kind == "elastic_net":
        q = stored(p["lam2"]) * weights
    if kind == "positive":
        w = one if p["weights"] is None else stored(p["weights"] + 0.1)
        t, q, lower = stored(p["l1"]) * w, stored(p["l2"]) * w, zero
    if kind == "nnls":
        lower = zero
    if kind == "box":
        lower, upper = stored(p["lower"]), stored(p["upper"])
    if kind in ("simplex_ls", "sum_at_most"):
        radius, lower = LONG(stored(p["radius"])), zero
    if kind == "group_lasso":
        groups, of_groups = penalised(p, stored)
        t = stored(p["lam"]) * of_groups
    more = {}
    if kind == "sparse_group_lasso":
        groups, of_groups = penalised(p, stored)
        t = 0.75 * stored(p["lam"]) * of_groups
        more = {"l1": 0.25 * stored(p["lam"]) * weights}
    if kind == "multitask_lasso":  # A once for each task, and groups of the pairs (column, task)
        width = A.shape[1]
        rows = one if p.get("row_weights") is None else stored(p["row_weights"])
        groups, t = np.arange(width * TASKS) // TASKS, stored(p["lam"]) * rows
        A, b = np.kron(np.eye(TASKS), A), np.concatenate([b, b[::-1]])
        A = A.reshape(len(b), TASKS, width).swapaxes(1, 2).reshape(len(b), TASKS * width)
        q, lower, upper = (np.repeat(v, TASKS) for v in (q, lower, upper))
    loss = kind if kind in ("logistic", "softmax", "huber", "poisson") else "squares"
    if loss == "huber":
        more = {"delta": LONG(stored(p["delta"]))}
    at_most = kind == "sum_at_most"
    return Plain(
        loss, A.astype(LONG), b.astype(LONG), t, q, lower, upper, groups, radius, at_most, classes,
        **more,
    )  # fmt: skip


def penalised(p: dict, stored) -> tuple[np.ndarray, np.ndarray]:
    """The group of each coordinate, and weights: those in no group are groups of weight 0."""
    groups = np.array(p["groups"])
    count = groups.max() + 1
    given = p.get("group_weights")
    weights = np.ones(count, LONG) if given is None else stored(given)
    alone = np.flatnonzero(groups < 0)
    groups[alone] = count + np.arange(len(alone))
    return groups, np.concatenate([weights, np.zeros(len(alone), LONG)])
