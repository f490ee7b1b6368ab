"""What every operator promises: products, adjoint, a tight norm, slicing and conversion."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.linalg import LinearOperator

from contracts.operator_table import BUILDERS, TensorProduct, gaussian, rows, torch_csr, with_zeros
from proxlearn.errors import InputError
from proxlearn.problems.lanczos import MARGIN
from proxlearn.problems.operators import (
    EXACT_UP_TO,
    Dense,
    MatrixFree,
    Sparse,
    dense_operator,
    linear_operator,
)

ROWS = rows()
CLOSE = {"rtol": 1e-12, "atol": 1e-12}
over_rows = pytest.mark.parametrize("name", ROWS)


@over_rows
@pytest.mark.parametrize("middle", [(), (4,)], ids=["vector", "classes"])
def test_products_are_those_of_the_matrix(name, middle):
    op, A = ROWS[name]()
    m, n = op.shape
    assert (m, n) == A.shape[1:]
    assert op.batch == len(A)
    x, r = gaussian(3, *middle, n, seed=5), gaussian(3, *middle, m, seed=6)
    for i in range(3):
        Ai = A[i if len(A) > 1 else 0]
        torch.testing.assert_close(op.forward(x)[i], x[i] @ Ai.T, **CLOSE)
        torch.testing.assert_close(op.adjoint(r)[i], r[i] @ Ai, **CLOSE)


@over_rows
def test_dot_product_identity(name):
    op, _ = ROWS[name]()
    x, r = gaussian(3, op.shape[1], seed=7), gaussian(3, op.shape[0], seed=8)
    left, right = (op.forward(x) * r).sum(1), (x * op.adjoint(r)).sum(1)
    torch.testing.assert_close(left, right, **CLOSE)


@pytest.mark.parametrize("name", sorted(set(ROWS) - {"linear-operator"}))
def test_products_are_differentiable(name):
    # A NumPy object cannot be; everything else must, for training through the iterations.
    op, _ = ROWS[name]()
    x, r = gaussian(3, op.shape[1], seed=7), gaussian(3, op.shape[0], seed=8)
    cube = [lambda t: op.forward(t) ** 3, lambda t: op.adjoint(t) ** 3]
    for function, point in zip(cube, (x, r), strict=True):
        assert torch.autograd.gradcheck(function, point.requires_grad_())
        assert torch.autograd.gradgradcheck(function, point)


@over_rows
def test_select_takes_the_instances(name):
    op, A = ROWS[name]()
    index = torch.tensor([2, 0])
    chosen = op.select(index)
    x = gaussian(2, op.shape[1])
    expected = torch.stack([A[i if len(A) > 1 else 0] @ x[k] for k, i in enumerate([2, 0])])
    torch.testing.assert_close(chosen.forward(x), expected, **CLOSE)
    torch.testing.assert_close(chosen.norm(), op.norm()[index] if len(A) > 1 else op.norm())


@over_rows
def test_convert_changes_the_precision_only(name):
    op, A = ROWS[name]()
    single = op.convert(torch.float32)
    assert single.dtype == torch.float32
    assert op.dtype == torch.float64
    x, r = gaussian(3, op.shape[1]).float(), gaussian(3, op.shape[0]).float()
    z, g = single.forward(x), single.adjoint(r)
    assert z.dtype == g.dtype == single.norm().dtype == torch.float32
    torch.testing.assert_close(z, (A @ x.double()[:, :, None])[:, :, 0].float())
    torch.testing.assert_close(g, (r.double()[:, None] @ A)[:, 0].float())
    true = torch.linalg.matrix_norm(A, 2)
    assert (single.norm().double() >= true * (1 - 1e-7)).all()


@over_rows
def test_norm_is_computed_once_and_travels(name, monkeypatch):
    op, _ = ROWS[name]()
    norm = op.norm()

    def forbidden(*args, **kwargs):
        raise AssertionError("the norm was computed again")

    for module in (dense_operator, linear_operator):
        monkeypatch.setattr(module, "lanczos_norm", forbidden)
    monkeypatch.setattr(torch.linalg, "eigvalsh", forbidden)
    assert op.norm() is norm
    index = torch.tensor([1])
    torch.testing.assert_close(op.select(index).norm(), norm[index] if len(norm) > 1 else norm)
    torch.testing.assert_close(op.convert(torch.float32).norm(), norm.float())


def spectrum(m, n, values, seed=0):
    """A matrix with the given singular values and random singular vectors."""
    k = len(values)
    U = torch.linalg.qr(gaussian(m, k, seed=seed)).Q
    V = torch.linalg.qr(gaussian(n, k, seed=seed + 1)).Q
    return (U * torch.as_tensor(values, dtype=torch.float64)) @ V.T


def outlier(count, gap):
    return torch.cat([torch.linspace(0, 1, count - 1), torch.tensor([1 + gap])])


BIG = EXACT_UP_TO + 30
HARD = {
    "small": gaussian(5, 7),
    "above-exact": gaussian(BIG, BIG + 20),
    "at-the-switch": gaussian(EXACT_UP_TO, BIG),
    "past-the-switch": gaussian(EXACT_UP_TO + 1, BIG),
    "orthogonal": spectrum(BIG, BIG, torch.ones(BIG)),
    "clustered-top": spectrum(BIG, BIG, 1 - 1e-9 * torch.arange(BIG) ** 2),
    "ten-equal-then-half": spectrum(BIG, BIG, [1.0] * 10 + [0.5] * 60),
    "outlier-1%": spectrum(200, 250, outlier(200, 0.005)),
    "outlier-5%": spectrum(200, 250, outlier(200, 0.025)),
    "outlier-20%": spectrum(200, 250, outlier(200, 0.1)),
    "exponential": spectrum(BIG, BIG, torch.exp(-torch.arange(40.0))),
    "rank-one": spectrum(BIG, BIG, [3.0]),
    "rank-one-long": spectrum(300, 300, [1.0], seed=4),
    "rank-two": spectrum(BIG, 3 * BIG, [3.0, 2.999]),
    "zero": torch.zeros(BIG, BIG),
    "zero-small": torch.zeros(2, 3),
    "m=1": gaussian(1, 500),
    "n=1": gaussian(500, 1),
    "1x1": torch.full((1, 1), -2.0, dtype=torch.float64),
    "tall": gaussian(3000, 3),
    "wide": gaussian(3, 3000),
    "tall-above": gaussian(2000, BIG),
    "wide-above": gaussian(BIG, 2000),
    "with-zeros": with_zeros(BIG, BIG),
    "huge": 1e150 * gaussian(BIG, BIG),
    "tiny": 1e-150 * gaussian(BIG, BIG),
    "huge-small": 1e200 * gaussian(4, 6),
    "tiny-small": 1e-200 * gaussian(4, 6),
}


def true_norm(A):
    scale = A.abs().max() if A.any() else torch.ones((), dtype=A.dtype)
    return float(torch.linalg.matrix_norm(A.double() / scale, 2) * scale)


def assert_tight(norm, A, rounding=1e-12):
    """Never below the true norm; above it by no more than the margin on A^T A allows."""
    true = true_norm(A)
    assert true * (1 - rounding) <= float(norm) <= math.sqrt(1 + MARGIN) * true * (1 + 1e-6)


@pytest.mark.parametrize("case", HARD)
@pytest.mark.parametrize("name", ["dense", "scipy-csr", "tensor-product"])
def test_norm_is_an_upper_bound_and_tight(name, case):
    assert_tight(BUILDERS[name](HARD[case]).norm(), HARD[case])


@pytest.mark.parametrize("case", ["small", "above-exact", "outlier-5%", "rank-one-long", "tall"])
@pytest.mark.parametrize("scale", [1e-16, 1.0, 1e16])
def test_norm_in_single_precision(case, scale):
    A = (scale * HARD[case]).float()
    for op in (Dense(A), Sparse(A.to_sparse())):
        norm = op.norm()
        assert norm.dtype == torch.float32
        true = true_norm(A.double())
        assert true * (1 - 1e-6) <= float(norm[0]) <= 1.01 * true * (1 + 1e-5)


@given(
    m=st.integers(1, 90),
    n=st.integers(1, 90),
    rank=st.integers(1, 90),
    decay=st.floats(0, 3),
    exponent=st.integers(-100, 100),
    seed=st.integers(0, 10**6),
)
def test_norm_of_random_spectra(m, n, rank, decay, exponent, seed):
    k = min(m, n, rank)
    A = spectrum(m, n, torch.exp(-decay * torch.arange(k)), seed) * 10.0**exponent
    assert_tight(Dense(A).norm(), A)
    assert_tight(MatrixFree(TensorProduct(A), tensors=True).norm(), A)


@pytest.mark.parametrize("shape", [(5, 7), (BIG, BIG)], ids=["exact", "lanczos"])
def test_norm_is_deterministic_and_its_own(shape):
    # The neighbours stop their iterations early (rank one), late (an outlier), or have nothing.
    m, n = shape
    k = min(shape)
    batch = [gaussian(m, n), spectrum(m, n, [9.0]), torch.zeros(m, n), 1e-9 * gaussian(m, n)]
    batch += [spectrum(m, n, outlier(k, 0.03), seed=3)]
    state = torch.random.get_rng_state()
    together = Dense(torch.stack([A.double() for A in batch])).norm()
    again = Dense(torch.stack([A.double() for A in batch])).norm()
    alone = torch.cat([Dense(A.double()).norm() for A in batch])
    assert torch.equal(together, again)
    assert torch.equal(state, torch.random.get_rng_state())
    torch.testing.assert_close(together, alone, rtol=1e-9, atol=0)


def test_sparse_keeps_the_callers_csr_tensor():
    A = torch_csr(with_zeros(6, 4))
    assert Sparse(A).A is A


def test_no_gradient_is_cut_silently_through_numpy():
    A = MatrixFree(LinearOperator((2, 3), matvec=lambda x: x[:2], rmatvec=lambda r: r))
    with pytest.raises(InputError, match="tensors=True"):
        A.forward(torch.ones(1, 3, dtype=torch.float64, requires_grad=True))
