"""Ways of solving a drawn problem other than `pl.solve(problem)`: starts, paths, layouts, ...

Each gives `Found`: an instance's formula, and what the package says about it.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
import torch
from scipy.sparse.linalg import aslinearoperator

import proxlearn as pl
from fuzz.draw import Instance
from fuzz.plain import LONG, Plain

ON_PATHS = (
    "lasso", "elastic_net", "logistic", "softmax", "huber", "poisson", "group_lasso",
    "sparse_group_lasso", "multitask_lasso",
)  # fmt: skip
"""Constructors with a lam > 0."""
OPTIMIZERS = ("ista", "fista", "fista-restart", "lasso", "general", "logistic")


@dataclass
class Found:
    """What a solve found for one instance."""

    plain: Plain
    x: Any
    objective: float | None  # None where the package does not say it
    gap: float
    status: str
    instance: Instance
    zero: bool = False
    """Whether x must be exactly 0."""
    constant: Any = 0
    """What the objective that `tol` is relative to has beside F."""


def each(instance: Instance, solution: pl.Solution, plains=None) -> Iterator[Found]:
    """Every instance of a solution."""
    plains = instance.plains() if plains is None else plains
    solution = in_numpy(solution)
    rows = solution.x.astype(float).reshape(len(plains), -1)
    for i, plain in enumerate(plains):
        numbers = float(solution.objective[i]), float(solution.gap[i]), str(solution.status[i])
        yield Found(plain, rows[i], *numbers, instance)


def in_numpy(solution: Any) -> Any:
    """The same with NumPy arrays."""
    names = ("x", "objective", "gap")
    return replace(solution, **{name: np.asarray(getattr(solution, name)) for name in names})


def solve(instance: Instance, rng, options) -> Iterator[Found]:
    return each(instance, pl.solve(instance.build(), tol=instance.tol, **options))


def from_start(instance: Instance, rng, options) -> Iterator[Found]:
    """From x0 of the wrong size, support and sign."""
    problem = instance.build()
    size = 10.0 ** float(rng.choice([-300, -8, 0, 0, 0, 3, 8, 30, 200, 300]))
    x0 = size * rng.normal(size=(problem.batch, problem.n))
    x0 = x0 * (rng.random(x0.shape) < rng.choice([0.05, 0.5, 1.0]))
    if rng.random() < 0.1:
        x0.flat[0] = rng.choice([np.inf, np.nan])
    x0 = x0[0] if rng.random() < 0.3 else x0
    return each(instance, pl.solve(problem, tol=instance.tol, x0=x0, **options))


def again_from_the_answer(instance: Instance, rng, options) -> Iterator[Found]:
    """From the answer for another tolerance, moved a little."""
    problem = instance.build()
    first = in_numpy(pl.solve(problem, tol=1e-2, **options)).x
    moved = first * (1 + rng.choice([0, 1e-9, 0.1]) * rng.normal(size=first.shape))
    moved = np.where(np.isfinite(moved), moved, 0)
    return each(instance, pl.solve(problem, tol=instance.tol, x0=moved, **options))


def limited(instance: Instance, rng, options) -> Iterator[Found]:
    """With little time or few iterations: what is said of an unfinished x must be true as well."""
    limit = {"time_limit": float(rng.choice([0, 1e-9, 1e-5, 1e-3]))}
    if rng.random() < 0.5:
        limit, options = {}, options | {"max_iter": int(rng.integers(1, 4))}
    return each(instance, pl.solve(instance.build(), tol=instance.tol, **limit, **options))


def in_torch(instance: Instance, rng, options) -> Iterator[Found]:
    """By the loop in PyTorch."""
    options = {"engine": "torch", "max_iter": int(rng.choice([3, 300]))}
    return each(instance, pl.solve(instance.build(), tol=instance.tol, **options))


def from_named(instance: Instance, rng, options) -> Iterator[Found]:
    """With a named optimizer as the start of the core."""
    name = str(rng.choice(OPTIMIZERS))
    return each(instance, pl.solve(instance.build(), name, tol=instance.tol, **options))


def bare(instance: Instance, rng, options) -> Iterator[Found]:
    """By a named optimizer alone."""
    name = str(rng.choice(OPTIMIZERS))
    options = {"max_iter": int(rng.choice([5, 200])), "polish": False}
    return each(instance, pl.solve(instance.build(), name, tol=instance.tol, **options))


def laid_out(instance: Instance, rng, options) -> Iterator[Found]:
    """A in another layout or format."""
    A = instance.A if instance.own else instance.A[0]
    forms: dict[str, Callable] = {
        "columns": np.asfortranarray, "rows": np.ascontiguousarray,
        "strided": lambda A: np.repeat(A, 2, axis=-1)[..., ::2],
        "reversed": lambda A: np.ascontiguousarray(A[..., ::-1, ::-1])[..., ::-1, ::-1],
        "read only": read_only, "foreign": lambda A: A.astype(A.dtype.newbyteorder()),
        "lists": lambda A: A.tolist() if A.dtype == np.float64 else A,
    }  # fmt: skip
    if not instance.own:
        forms |= {
            "csr": scipy.sparse.csr_matrix, "csc": scipy.sparse.csc_array, "coo": twice,
            "explicit zeros": with_zeros, "unsorted": unsorted,
            "long": with_long_indices, "prepared": pl.prepare,
        }  # fmt: skip
    form = str(rng.choice([*forms]))
    renamed = replace(instance, text=f"{instance.text} {form}")
    problem = instance.build(A=forms[form](A))
    return each(renamed, pl.solve(problem, tol=instance.tol, **options))


def read_only(A):
    A = A.copy()
    A.flags.writeable = False
    return A


def twice(A):
    """Every entry in two halves, which is exact in floating point for all but the smallest."""
    rows, columns = np.nonzero(A)
    values = A[rows, columns]
    half = values / 2
    parts = np.r_[half, values - half], (np.r_[rows, rows], np.r_[columns, columns])
    return scipy.sparse.coo_array(parts, shape=A.shape)


def with_zeros(A):
    """By columns with every entry stored, zeros too."""
    m, n = A.shape
    rows, ends = np.tile(np.arange(m), n), np.arange(n + 1) * m
    return scipy.sparse.csc_array((A.T.ravel(), rows, ends), shape=A.shape)


def unsorted(A):
    """By columns, the rows of each in falling order."""
    m, n = A.shape
    rows, ends = np.tile(np.arange(m)[::-1], n), np.arange(n + 1) * m
    found = scipy.sparse.csc_array((A[::-1].T.ravel(), rows, ends), shape=A.shape)
    found.has_sorted_indices = False
    return found


def with_long_indices(A):
    found = scipy.sparse.csc_array(A)
    found.indices, found.indptr = found.indices.astype(np.int64), found.indptr.astype(np.int64)
    return found


def of_tensors(instance: Instance, rng, options) -> Iterator[Found]:
    """From tensors, whose answers are tensors."""
    A = torch.from_numpy(instance.A if instance.own else instance.A[0].copy())
    form = str(rng.choice(["dense", "transposed", "csr"]))
    if form == "transposed":
        A = A.mT.contiguous().mT
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyTorch, about sparse tensors
        A = A.to_sparse_csr() if form == "csr" and not instance.own else A
    b = torch.from_numpy(instance.given()[1])
    solution = pl.solve(instance.build(A=A, b=b), tol=instance.tol, **options)
    assert isinstance(solution.x, torch.Tensor)
    assert solution.x.dtype == A.dtype
    return each(instance, solution)


def by_products(instance: Instance, rng, options) -> Iterator[Found]:
    """A given by its products alone."""
    if instance.own:
        return solve(instance, rng, options)
    problem = instance.build(A=aslinearoperator(instance.A[0]))
    return each(instance, pl.solve(problem, tol=instance.tol, max_iter=200))


def whole(instance: Instance, rng, options) -> Iterator[Found]:
    """A and b of integers or booleans."""
    kind = rng.choice(["int64", "int8", "uint8", "bool"])
    with np.errstate(all="ignore"):
        size = abs(instance.A.astype(float)).max() or 1.0
        A = (instance.A / size * 4).astype(kind)
        b = instance.b
        if instance.kind not in ("logistic", "softmax", "poisson"):
            b = np.rint(b / (abs(b.astype(float)).max() or 1.0) * 9).astype("int64")
        elif instance.kind == "poisson":
            b = np.minimum(b, 1000).astype("int64")
    exact = replace(instance, A=A.astype(float), b=b.astype(float), text=f"{instance.text} {kind}")
    problem = exact.build(A=A if exact.own else A[0], b=b if len(b) > 1 else b[0])
    return each(exact, pl.solve(problem, tol=instance.tol, **options))


def by_threads(instance: Instance, rng, options) -> Iterator[Found]:
    """By two threads: the same bits as by one."""
    problem = instance.build()
    one = pl.solve(problem, tol=instance.tol, threads=1, **options)
    two = pl.solve(problem, tol=instance.tol, threads=2, **options)
    assert np.array_equal(in_numpy(one).x, in_numpy(two).x), "two threads find another x"
    assert np.array_equal(in_numpy(one).gap, in_numpy(two).gap, equal_nan=True), "another gap"
    return each(instance, two)


def alone(instance: Instance, rng, options) -> Iterator[Found]:
    """Every instance by itself, where `solve` has seen them together."""
    problem = instance.build()
    together = in_numpy(pl.solve(problem, tol=instance.tol, **options))
    if problem.batch > 1:
        rows = together.x.reshape(problem.batch, -1)
        for i, plain in enumerate(instance.plains()):
            A = instance.A[i if instance.own else 0]
            lone = replace(instance, A=A[None], b=instance.b[i : i + 1])
            found = in_numpy(pl.solve(lone.build(), tol=instance.tol, **options))
            yield from each(lone, found, [plain])
            difference = abs(float(found.objective[0]) - float(together.objective[i]))
            allowed = float(found.gap[0]) + float(together.gap[i])
            noise = plain.noise(found.x.reshape(-1).astype(LONG))
            noise += plain.noise(rows[i].astype(LONG))
            if np.isfinite(difference):
                assert difference <= allowed + noise, f"alone another F: {difference} {allowed}"
    yield from each(instance, together)


def along_path(instance: Instance, rng, options) -> Iterator[Found]:
    """Several lam in any order, some of them twice."""
    if instance.kind not in ON_PATHS or instance.numbers["lam"] == 0:
        yield from from_start(instance, rng, options)
        return
    problem, dtype = instance.build(), str(instance.A.dtype)
    lam = float(np.asarray(instance.numbers["lam"], dtype=dtype))
    K = int(rng.integers(1, 7))
    factors = 10.0 ** rng.uniform(-3, 3, K)
    factors[rng.random(K) < 0.3] = factors[0]
    given: dict[str, Any] = {"lams": factors * lam}
    if rng.random() < 0.4:
        given = {"n_lams": K, "eps": float(rng.choice([1e-3, 0.1, 1.0]))}
    if rng.random() < 0.3:
        given["x0"] = rng.normal(size=problem.n)
    found = in_numpy(pl.path(problem, tol=instance.tol, **given, **options))
    x = found.x.astype(float).reshape(len(found.status), problem.batch, -1)
    lams = np.asarray(found.lams).reshape(len(x), -1)
    assert (np.diff(lams, axis=0) <= 0).all()
    plains = instance.plains()
    for k in range(len(x)):
        for i, plain in enumerate(plains):
            value = LONG(lams[k, i if lams.shape[1] > 1 else 0]) / LONG(lam)
            changed = replace(plain, t=plain.t * value, q=plain.q * value, l1=plain.l1 * value)
            numbers = float(found.objective[k, i]), float(found.gap[k, i]), str(found.status[k][i])
            yield Found(changed, x[k, i], *numbers, instance)


def at_the_top(instance: Instance, rng, options) -> Iterator[Found]:
    """At the largest lam of a path, a little above it, and far above it, where x is 0."""
    if instance.kind not in ON_PATHS or instance.numbers["lam"] == 0 or len(instance.b) > 1:
        yield from solve(instance, rng, options)
        return
    from proxlearn.solving.paths import lam_max

    top = float(lam_max(instance.build())[0])
    for factor in (1.0, 1 + 1e-4, 1e3):
        if not 1e-30 < factor * top < 1e30:
            continue
        numbers = instance.numbers | {"lam": factor * top}
        here = replace(instance, numbers=numbers)
        for found in each(here, pl.solve(here.build(), tol=instance.tol, **options)):
            weights = found.plain.t, found.plain.l1  # of groups or columns, and of columns
            found.zero = factor > 1 and any(bool(np.all(w > 0)) for w in weights)
            yield found


WAYS: dict[str, Callable] = {
    "solve": solve,
    "start": from_start,
    "again": again_from_the_answer,
    "limits": limited,
    "torch": in_torch,
    "named": from_named,
    "bare": bare,
    "layout": laid_out,
    "tensors": of_tensors,
    "products": by_products,
    "whole": whole,
    "threads": by_threads,
    "alone": alone,
    "path": along_path,
    "top": at_the_top,
}
"""All of them; `alone` and `threads` also compare two answers."""
