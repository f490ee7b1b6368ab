"""Problems from arrays: every kind of input gives the same problem, bad input one clear line."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import proxlearn as pl

M, N = 5, 6
RNG = np.random.default_rng(0)
A = RNG.standard_normal((M, N)) * (RNG.random((M, N)) < 0.7)
LABELS = np.array([0, 1, 1, 0, 1])
CLASSES = np.array([0, 2, 1, 0, 2])
TARGET = RNG.standard_normal(M)
GROUPS = np.array([0, 1, 1, 0, 2, 2])

CONSTRUCTORS = {
    "lasso": lambda A, b=TARGET, lam=0.1, **k: pl.lasso(A, b, lam, **k),
    "elastic_net": lambda A, b=TARGET, lam=0.1, **k: pl.elastic_net(A, b, lam, 0.2, **k),
    "nnls": lambda A, b=TARGET: pl.nnls(A, b),
    "simplex_ls": lambda A, b=TARGET, lam=1.0: pl.simplex_ls(A, b, lam),
    "group_lasso": lambda A, b=TARGET, lam=0.1, **k: pl.group_lasso(A, b, lam, GROUPS, **k),
    "logistic": lambda A, b=LABELS, lam=0.1, **k: pl.logistic(A, b, lam, **k),
    "softmax": lambda A, b=CLASSES, lam=0.1, **k: pl.softmax(A, b, lam, classes=3, **k),
}
PENALISED = [name for name in CONSTRUCTORS if name != "nnls"]
over_constructors = pytest.mark.parametrize("name", CONSTRUCTORS)

SOURCES = {
    "lists": lambda A: A.tolist(),
    "tensor": torch.tensor,
    "fortran": np.asfortranarray,
    "strided": lambda A: np.repeat(A, 2, axis=1)[:, ::2],
    "reversed": lambda A: A[:, ::-1].copy()[:, ::-1],
    "big-endian": lambda A: A.astype(">f8"),
    "long-double": lambda A: A.astype(np.longdouble),
    "transposed-tensor": lambda A: torch.tensor(A.T.copy()).T,
    "scipy-csr": sp.csr_array,
    "scipy-csc": sp.csc_matrix,
    "scipy-coo": sp.coo_array,
    "scipy-lil": sp.lil_matrix,
    "torch-coo": lambda A: torch.tensor(A).to_sparse(),
    "linear-operator": aslinearoperator,
    "callables": lambda A: LinearOperator(
        A.shape, matvec=lambda x: A @ x, rmatvec=lambda r: A.T @ r, dtype=A.dtype
    ),
}


def read_only(A):
    A = A.copy()
    A.setflags(write=False)
    return A


def values(problem, seed=0):
    x = torch.randn(problem.batch, problem.n, generator=torch.Generator().manual_seed(seed))
    x = problem.r.prox(x.to(problem.dtype), torch.ones(problem.batch, 1, dtype=problem.dtype))
    return problem.objective(x), problem.f.grad(x)


@over_constructors
def test_every_kind_of_array_gives_the_same_problem(name):
    expected = CONSTRUCTORS[name](A)
    wanted = values(expected)
    for source, make in {**SOURCES, "read-only": read_only}.items():
        problem = CONSTRUCTORS[name](make(A))
        assert problem.dtype == torch.float64, source
        assert (problem.batch, problem.n, problem.single) == (1, expected.n, True), source
        for got, want in zip(values(problem), wanted, strict=True):
            torch.testing.assert_close(got, want)


@over_constructors
@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("f4", "float32"), ("f2", "float32"), ("i8", "float64"), ("u1", "float64"), ("?", "float64")],
)
def test_precision_is_that_of_A(name, dtype, expected):
    whole = np.round(abs(A) * 2).clip(0, 1 if dtype == "?" else 9)
    problem = CONSTRUCTORS[name](whole.astype(dtype))
    assert problem.dtype == getattr(torch, expected)
    objective, grad = values(problem)
    assert objective.dtype == grad.dtype == problem.dtype
    same = CONSTRUCTORS[name](whole).to(problem.dtype)
    torch.testing.assert_close(objective, values(same)[0])


@pytest.mark.parametrize("kind", ["f4", "i8", "f2", "?", ">i4", list, torch.tensor])
def test_targets_of_every_kind(kind):
    whole = np.array([0, 1, 1, 0, 1])
    b = kind(whole) if kind in (list, torch.tensor) else whole.astype(kind)
    for make in (pl.lasso, pl.logistic, pl.softmax):
        got, want = values(make(A, b, 0.1)), values(make(A, whole.astype(float), 0.1))
        assert torch.equal(got[0], want[0])


@over_constructors
def test_batches(name):
    make = CONSTRUCTORS[name]
    b = {"logistic": LABELS, "softmax": CLASSES}.get(name, TARGET)
    many_A, many_b = np.stack([A, 2 * A, -A]), np.stack([b, b[::-1], np.roll(b, 1)])
    pick = lambda a, i: a[i] if len(a) == 3 else a[0]  # noqa: E731
    for As, bs in [(A[None], many_b), (many_A, many_b), (many_A, b[None]), (many_A[:1], b[None])]:
        batch = make(As[0] if len(As) == 1 else As, bs)
        size = max(len(As), len(bs))
        assert (batch.batch, batch.single) == (size, False)
        objective, grad = values(batch)
        x = torch.randn(size, batch.n, generator=torch.Generator().manual_seed(0))
        x = batch.r.prox(x.double(), torch.ones(size, 1).double())
        for i in range(size):
            alone = make(pick(As, i), pick(bs, i))
            torch.testing.assert_close(alone.objective(x[i : i + 1])[0], objective[i])
            torch.testing.assert_close(alone.f.grad(x[i : i + 1])[0], grad[i])


@pytest.mark.parametrize("name", PENALISED)
def test_one_lam_an_instance(name):
    lam = np.array([0.5, 1.0, 2.0])
    batch = CONSTRUCTORS[name](A, lam=lam)
    assert (batch.batch, batch.single) == (3, False)
    v, p = torch.randn(3, batch.n, generator=torch.Generator().manual_seed(1)).double(), 0.3
    x = batch.r.prox(v, torch.full((3, 1), p).double())
    for i in range(3):
        alone = CONSTRUCTORS[name](A, lam=float(lam[i]))
        one = alone.r.prox(v[i : i + 1], torch.full((1, 1), p).double())
        torch.testing.assert_close(x[i], one[0])
        assert alone.single


def test_single_follows_the_shape_of_b():
    assert pl.lasso(A, TARGET, 0.1).single
    assert pl.lasso(A[None], TARGET.tolist(), 0.1).single
    assert not pl.lasso(A, TARGET[None], 0.1).single
    assert not pl.lasso(A, TARGET, [0.1, 0.2]).single


def test_weights_and_options_reach_the_penalty():
    x = torch.ones(1, N, dtype=torch.float64)
    zero = np.zeros(M)
    weights = np.arange(N)
    lasso = pl.lasso(0 * A, zero, 2.0, weights=weights)
    assert lasso.objective(x).item() == pytest.approx(2 * weights.sum())
    net = pl.elastic_net(0 * A, zero, 2.0, 4.0, weights=weights)
    assert net.objective(x).item() == pytest.approx((2 + 4 / 2) * weights.sum())
    group = pl.group_lasso(0 * A, zero, 2.0, GROUPS, weights=[1, 2, 3])
    assert group.objective(x).item() == pytest.approx(2 * np.sqrt(2) * 6)
    assert pl.simplex_ls(0 * A, zero, radius=N).objective(x).item() == 0
    assert pl.simplex_ls(0 * A, zero).objective(x).item() == np.inf
    assert pl.elastic_net(A, TARGET, 0, 1.0).r.lam.item() == 0
    assert pl.softmax(A, CLASSES, 0.1).n == 3 * N
    assert pl.softmax(A, CLASSES, 0.1, classes=np.int64(5)).n == 5 * N


def test_the_callers_sparse_matrix_is_not_touched():
    unsorted = sp.csr_matrix(([1.0, 2.0, 3.0], [1, 0, 0], [0, 2, 3]), shape=(2, 2))
    for part in (unsorted.data, unsorted.indices, unsorted.indptr):
        part.setflags(write=False)
    problem = pl.lasso(unsorted, [1.0, 1.0], 0.1)
    assert unsorted.indices.tolist() == [1, 0, 0]
    z = problem.f.predict(torch.tensor([[1.0, 10.0]]).double())
    assert z.tolist() == [[12.0, 3.0]]


def test_duplicate_entries_of_a_sparse_matrix_are_summed():
    twice = sp.coo_array(([1.0, 2.0, 5.0], ([0, 0, 1], [0, 0, 1])), shape=(2, 2))
    z = pl.lasso(twice, [0.0, 0.0], 1.0).f.predict(torch.ones(1, 2).double())
    assert z.tolist() == [[3.0, 5.0]]


@given(m=st.integers(1, 6), n=st.integers(1, 6), B=st.integers(1, 4), seed=st.integers(0, 999))
def test_any_shape(m, n, B, seed):
    rng = np.random.default_rng(seed)
    shared, own = rng.standard_normal((m, n)), rng.standard_normal((B, m, n))
    targets, labels = rng.standard_normal((B, m)), rng.integers(0, 2, (B, m))
    for matrix in (shared, own, sp.csr_array(shared)):
        for problem in (pl.lasso(matrix, targets, 0.1), pl.logistic(matrix, labels, np.ones(B))):
            objective, grad = values(problem, seed)
            assert problem.batch == B
            assert objective.shape == (B,)
            assert grad.shape == (B, n)
        assert pl.softmax(matrix, labels, 0.1, classes=2).n == 2 * n
