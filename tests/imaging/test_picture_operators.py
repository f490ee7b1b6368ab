"""What operators on pictures promise: adjoints, norms, slices, precisions, derivatives."""

import itertools

import numpy as np
import pytest
import torch

import proxlearn as pl
from imaging.picture_operators import TABLE, mask, matrix, normal
from proxlearn.errors import InputError
from proxlearn.imaging import (
    Blur,
    Fourier,
    Mask,
    Products,
    Stack,
    Sum,
    Wavelet,
    disk_kernel,
    gaussian_kernel,
    motion_kernel,
    open_blur,
    place,
    projection,
)
from proxlearn.imaging.products import as_operator
from proxlearn.problems.operators import Dense, MatrixFree

over_table = pytest.mark.parametrize("name", TABLE)
LOOSE = ("coils", "coils-batch", "complex-pictures")
"""Operators whose norm by formula is a bound that need not be tight."""


@over_table
def test_dot_products(name):
    for dtype, middle in itertools.product((torch.float32, torch.float64), ((), (2,))):
        A = TABLE[name]().convert(dtype)
        B = max(A.batch, 3)
        x = normal(B, *middle, A.shape[1], seed=1).to(dtype)
        r = normal(B, *middle, A.shape[0], seed=2).to(dtype)
        Ax, Atr = A.forward(x), A.adjoint(r)
        assert Ax.shape == r.shape
        assert Atr.shape == x.shape
        assert Ax.dtype == Atr.dtype == dtype
        error = ((Ax * r).sum() - (x * Atr).sum()).abs() / (Ax.norm() * r.norm())
        assert error <= 20 * torch.finfo(dtype).eps


@over_table
def test_the_norm_is_an_upper_bound_and_close(name):
    A = TABLE[name]()
    true = torch.linalg.matrix_norm(matrix(A), 2)
    norm = A.norm()
    assert norm.shape == (A.batch,)
    assert (norm >= true * (1 - 1e-12)).all()
    if name not in LOOSE:
        assert (norm <= 1.02 * true).all()


@over_table
def test_slices_are_the_instances(name):
    A = TABLE[name]()
    index = torch.tensor([A.batch - 1, 0])
    x = normal(2, A.shape[1])
    whole = matrix(A)
    expected = torch.stack(
        [whole[i if A.batch > 1 else 0] @ x[k] for k, i in enumerate(index.tolist())]
    )
    A.norm()
    chosen = A.select(index)
    torch.testing.assert_close(chosen.forward(x), expected)
    torch.testing.assert_close(chosen.norm().expand(2), A.norm()[index].expand(2))


@over_table
def test_products_can_be_differentiated(name):
    A = TABLE[name]()
    x = normal(A.batch, A.shape[1]).requires_grad_()
    v = normal(A.batch, A.shape[0], seed=3)
    (gradient,) = torch.autograd.grad((A.forward(x) ** 2 * v).sum(), x)
    torch.testing.assert_close(gradient, A.adjoint(2 * v * A.forward(x).detach()))


@pytest.mark.parametrize("name", [n for n in TABLE if TABLE[n]().orthogonal])
def test_orthogonal_operators_are_inverted_by_their_adjoints(name):
    A = TABLE[name]()
    x = normal(2, A.shape[1])
    torch.testing.assert_close(A.adjoint(A.forward(x)), x, rtol=0, atol=1e-12)
    torch.testing.assert_close(A.forward(A.adjoint(x)), x, rtol=0, atol=1e-12)


def test_a_blur_is_a_periodic_convolution():
    picture, kernel = normal(1, 30), normal(2, 3, seed=1)
    found = Blur(kernel, (5, 6)).forward(picture).reshape(5, 6)
    expected = torch.zeros(5, 6, dtype=torch.float64)
    square = picture.reshape(5, 6)
    for i in range(2):
        for j in range(3):
            expected += kernel[i, j] * square.roll((i - 1, j - 1), (0, 1))
    torch.testing.assert_close(found, expected)


def test_an_open_blur_sees_what_a_blur_of_the_larger_picture_shows():
    kernel = gaussian_kernel(1.0)
    A, grid = open_blur(kernel, (10, 12))
    large = normal(*grid)
    seen = A.forward(large.reshape(1, -1)).reshape(grid)
    plain = torch.nn.functional.conv2d(large[None, None], kernel[None, None])[0, 0]
    torch.testing.assert_close(seen[3:13, 3:15], plain)
    assert not seen[:3].any()
    torch.testing.assert_close(place(plain, grid), seen)


@pytest.mark.parametrize(
    "kernel", [gaussian_kernel(2.3), motion_kernel(7.5, 30), disk_kernel(3.2)], ids="gmd"
)
def test_kernels_are_odd_squares_of_sum_one(kernel):
    assert kernel.shape[0] == kernel.shape[1]
    assert kernel.shape[0] % 2 == 1
    torch.testing.assert_close(kernel.sum(), torch.tensor(1.0, dtype=torch.float64))
    assert (kernel >= 0).all()
    torch.testing.assert_close(kernel, kernel.flip(0, 1))


def test_fourier_data_are_those_of_numpy():
    picture, measured = normal(6, 8), mask(6, 8)
    found = Fourier(measured).forward(picture.reshape(1, -1)).reshape(2, 6, 8)
    waves = np.fft.fft2(picture.numpy(), norm="ortho") * measured.numpy()
    np.testing.assert_allclose(found[0], waves.real, atol=1e-12)
    np.testing.assert_allclose(found[1], waves.imag, atol=1e-12)


def test_a_projection_at_right_angles_sums_rows_and_columns():
    picture = normal(6, 8)
    sums = projection((6, 8), [0.0, 90.0], detectors=12).forward(picture.reshape(1, -1))
    across, down = sums.reshape(2, 12)
    torch.testing.assert_close(across[2:10], picture.sum(0))
    torch.testing.assert_close(down[3:9], picture.sum(1))


def test_every_angle_of_a_projection_sums_to_the_whole_picture():
    picture = normal(9, 7)
    sums = projection((9, 7), torch.arange(0, 180, 17)).forward(picture.reshape(1, -1))
    totals = sums.reshape(11, -1).sum(-1)
    torch.testing.assert_close(totals, picture.sum().expand(11))


def test_a_projection_is_never_given_to_a_method_that_picks_columns():
    A = projection((8, 8), [0.0, 45.0])
    b = A.forward(normal(1, 64).abs())[0]
    solution = pl.solve(pl.sparse_recovery(A, b, 0.1, non_negative=True, shape=(8, 8)), tol=1e-4)
    assert solution.solved
    assert solution.engine == "torch"


WRONG = {
    "shape is (0, 4)": lambda: Blur(gaussian_kernel(1.0), (0, 4)),
    "kernel has shape (7, 7)": lambda: Blur(gaussian_kernel(1.0), (5, 8)),
    "width is -1": lambda: gaussian_kernel(-1),
    "mask holds other values": lambda: Mask(torch.tensor([0.5, 1.0])),
    "expected 1 where measured": lambda: Fourier(torch.full((4, 4), 2.0)),
    "coils has shape": lambda: Fourier(torch.ones(4, 4), coils=torch.ones(2, 4, 4)),
    "at least one finite angle": lambda: projection((4, 4), []),
    "use fewer angles": lambda: projection((4096, 4096), range(180)),
    "unknown wavelet 'db9'": lambda: Wavelet((8, 8), "db9"),
    "expected 1 to 2, and every side a multiple of 2^levels": lambda: Wavelet((8, 12), "haar", 3),
    "have no product": lambda: Dense(normal(2, 3)) @ Dense(normal(2, 3)),
    "have no sum": lambda: Sum([Dense(normal(2, 3)), Dense(normal(3, 2))]),
    "cannot be stacked": lambda: Stack([Dense(normal(2, 3)), Dense(normal(3, 2))]),
    "different precisions": lambda: Dense(normal(2, 3)) @ Dense(normal(3, 2).float()),
    "[2, 3] instances": lambda: Mask(mask(2, 4, 4)) @ Mask(mask(3, 4, 4)),
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_operators_are_refused_in_one_line(text):
    with pytest.raises(InputError) as refused:
        WRONG[text]()
    assert text in str(refused.value)
    assert "\n" not in str(refused.value)


class Batches:
    """What users write: products of batches of tensors."""

    shape = (4, 6)

    def __init__(self):
        self.A = normal(4, 6)

    def matvec(self, x):
        return x @ self.A.T.to(x.dtype)

    def rmatvec(self, r):
        return r @ self.A.to(r.dtype)


class Vectors(Batches):
    """The same for NumPy vectors only."""

    def matvec(self, x):
        assert isinstance(x, np.ndarray)
        return self.A.numpy() @ x

    def rmatvec(self, r):
        assert isinstance(r, np.ndarray)
        return self.A.numpy().T @ r


def test_an_object_of_tensors_is_used_in_batches_and_one_of_numpy_vector_by_vector():
    assert isinstance(as_operator("operator", Batches()), Products)
    assert isinstance(as_operator("operator", Vectors()), MatrixFree)
    b = np.ones(4)
    one, other = (pl.solve(pl.sparse_recovery(A, b, 0.5)) for A in (Batches(), Vectors()))
    exact = pl.solve(pl.lasso(Batches().A.numpy(), b, 0.5))
    for solution in (one, other):
        assert solution.solved
        assert isinstance(solution.x, np.ndarray)
        np.testing.assert_allclose(solution.objective, exact.objective, rtol=1e-6)


def test_training_through_numpy_vectors_says_what_it_needs():
    A = as_operator("operator", Vectors())
    with pytest.raises(InputError, match="tensors"):
        A.forward(normal(1, 6).requires_grad_())


def test_products_of_the_wrong_shape_are_refused():
    A = Products(lambda x: x[:, :2], lambda r: r, (3, 4))
    with pytest.raises(InputError, match=r"expected a tensor \(1, 3\)"):
        A.forward(normal(1, 4))


def test_an_object_whose_rmatvec_is_no_adjoint_is_refused():
    class Wrong(Batches):
        def rmatvec(self, r):
            return 2 * super().rmatvec(r)

    with pytest.raises(InputError, match="not the adjoint"):
        pl.sparse_recovery(Wrong(), np.ones(4), 0.5)
