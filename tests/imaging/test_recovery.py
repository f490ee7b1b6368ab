"""`sparse_recovery`: the problem it states, what it refuses, and the pictures it gives back."""

import numpy as np
import pytest
import torch

import proxlearn as pl
from imaging.picture_operators import mask, matrix, normal
from proxlearn.errors import InputError
from proxlearn.imaging import (
    Blur,
    Fourier,
    Mask,
    Products,
    Wavelet,
    gaussian_kernel,
    open_blur,
    projection,
)


def square(side=16):
    picture = torch.zeros(side, side, dtype=torch.float64)
    picture[side // 4 : side // 2, side // 4 : -2] = 1
    return picture


@pytest.mark.parametrize(
    ("options", "twin"),
    [
        ({}, lambda A, b: pl.lasso(A, b, 0.1)),
        ({"lam2": 0.3}, lambda A, b: pl.elastic_net(A, b, 0.1, 0.3)),
        (
            {"weights": [0.5, 1.0, 2.0]},
            lambda A, b: pl.lasso(A, b, 0.1, np.r_[[0.5] * 16, [1.0] * 48, [2.0] * 192]),
        ),
    ],
    ids=["l1", "elastic-net", "weights-by-scale"],
)
def test_the_answers_are_those_of_the_core_with_the_matrix(options, twin):
    A = Blur(gaussian_kernel(1.0), (16, 16))
    W = Wavelet((16, 16), "db2", 2)
    b = A.forward(square().reshape(1, -1))[0].numpy()
    solution = pl.solve(pl.sparse_recovery(A, b, 0.1, basis=W, **options), tol=1e-6)
    exact = pl.solve(twin(matrix(A @ W.T)[0].numpy(), b), tol=1e-10)
    assert solution.solved
    assert exact.engine == "core"
    true_gap = solution.objective - exact.objective
    assert (true_gap <= solution.gap + 1e-12).all()
    np.testing.assert_allclose(solution.objective, exact.objective, rtol=2e-6)


def test_non_negative_pixels():
    A = projection((8, 8), range(0, 180, 20))
    b = A.forward(square(8).reshape(1, -1))[0].numpy()
    solution = pl.solve(
        pl.sparse_recovery(A, b, 0.1, non_negative=True, shape=(8, 8)), tol=1e-6, max_iter=5000
    )
    assert solution.solved
    assert (solution.x >= 0).all()
    assert solution.image.shape == (8, 8)


def test_complex_data_are_pairs_of_reals():
    picture, measured = normal(8, 8), mask(8, 8)
    waves = np.fft.fft2(picture.numpy(), norm="ortho") * measured.numpy()
    pairs = Fourier(measured).forward(picture.reshape(1, -1))[0]
    one, other = (
        pl.sparse_recovery(Fourier(measured), b, 0.01, basis="haar") for b in (waves, pairs.numpy())
    )
    torch.testing.assert_close(one.f.b, other.f.b)


def test_complex_data_of_several_coils_and_a_complex_picture():
    coils = normal(3, 8, 8, 2)
    A = Fourier(mask(8, 8), coils=coils, complex_pictures=True)
    x = normal(1, 128)
    pairs = A.forward(x).reshape(3, 2, 8, 8)
    b = torch.complex(pairs[:, 0], pairs[:, 1])
    problem = pl.sparse_recovery(A, b, 0.01, basis="haar")
    torch.testing.assert_close(problem.f.b, A.forward(x))
    assert pl.solve(problem, tol=1e-2, max_iter=2000).image.shape == (2, 8, 8)


@pytest.mark.slow
def test_one_picture_and_a_batch():
    A = Mask(mask(3, 16, 16))
    pictures = torch.stack([square(), 2 * square(), 3 * square()])
    b = A.forward(pictures.flatten(1)).reshape(3, 16, 16).numpy()
    problem = pl.sparse_recovery(A, b, [0.1, 0.2, 0.3], basis="haar", shape=(16, 16))
    together = pl.solve(problem, tol=1e-5)
    assert together.image.shape == (3, 16, 16)
    assert isinstance(together.image, np.ndarray)
    for i, lam in enumerate((0.1, 0.2, 0.3)):
        alone = Mask(mask(3, 16, 16)[i])
        one = pl.solve(pl.sparse_recovery(alone, b[i], lam, basis="haar", shape=(16, 16)), tol=1e-5)
        assert one.image.shape == (16, 16)
        np.testing.assert_allclose(one.objective[0], together.objective[i], rtol=1e-4)


def test_tensors_in_tensors_out_in_single_precision():
    A = Blur(gaussian_kernel(1.0).float(), (16, 16))
    problem = pl.sparse_recovery(A, square().float(), 0.01, basis="dct")
    solution = pl.solve(problem, tol=1e-3)
    assert solution.solved
    assert solution.x.dtype == solution.image.dtype == torch.float32
    assert solution.gap.dtype == torch.float64


@pytest.mark.slow
def test_an_unknown_boundary():
    kernel = gaussian_kernel(1.0)
    A, grid = open_blur(kernel, (10, 10))
    assert grid == (16, 16)
    truth = square()
    b = A.forward(truth.reshape(1, -1))[0]
    solution = pl.solve(
        pl.sparse_recovery(A, b, 1e-4, basis="haar", shape=grid), tol=1e-2, max_iter=5000
    )
    assert solution.solved
    seen = solution.image[3:13, 3:13]
    assert (seen - truth[3:13, 3:13]).abs().max() < 0.2


def test_a_product_knows_the_size_of_the_pictures():
    A, grid = open_blur(gaussian_kernel(1.0), (10, 10))
    solution = pl.solve(pl.sparse_recovery(A, torch.zeros(256), 1.0, basis="haar"))
    assert solution.image.shape == grid


def test_a_convolution_of_torch():
    kernel = gaussian_kernel(1.0)
    side, reach = 16, kernel.shape[0] // 2

    def blurred(x):
        pictures = torch.nn.functional.pad(
            x.reshape(-1, 1, side, side), 4 * [reach], mode="circular"
        )
        return torch.nn.functional.conv2d(pictures, kernel.to(x)[None, None]).reshape(x.shape)

    own, ours = Products(blurred, blurred, (256, 256)), Blur(kernel, (side, side))
    b = ours.forward(square().reshape(1, -1))[0]
    problems = (
        pl.sparse_recovery(A, b, 0.01, basis="haar", shape=(side, side)) for A in (own, ours)
    )
    images = [pl.solve(p, tol=1e-6, max_iter=2000).image for p in problems]
    assert (images[0] - images[1]).abs().max() < 1e-2


A8 = Blur(gaussian_kernel(1.0), (8, 8))
WRONG = {
    "unknown basis 'db99'": lambda: pl.sparse_recovery(A8, np.ones(64), 1, basis="db99"),
    "b has shape (63,)": lambda: pl.sparse_recovery(A8, np.ones(63), 1),
    "b holds 1 values that are NaN": lambda: pl.sparse_recovery(A8, [np.nan] + [0] * 63, 1),
    "lam is -1": lambda: pl.sparse_recovery(A8, np.ones(64), -1),
    "give shape=(height, width)": lambda: pl.sparse_recovery(
        Mask(mask(8, 8)), np.ones(64), 1, basis="haar"
    ),
    "expected it without one": lambda: pl.sparse_recovery(
        A8, np.ones(64), 1, basis="haar", non_negative=True
    ),
    "weights has shape (3,)": lambda: pl.sparse_recovery(
        A8, np.ones(64), 1, basis="haar", weights=[1, 1, 1]
    ),
    "smallest entry 0": lambda: pl.sparse_recovery(A8, np.ones(64), 1, weights=np.zeros(64)),
    "do not fit an operator": lambda: pl.sparse_recovery(A8, np.ones(64), 1, shape=(9, 9)),
    "basis is of vectors of 128 numbers": lambda: pl.sparse_recovery(
        A8, np.ones(64), 1, basis=Wavelet((8, 8), copies=2)
    ),
    "operator is of type int": lambda: pl.sparse_recovery(3, np.ones(64), 1),
    "rmatvec is not the adjoint": lambda: pl.sparse_recovery(
        Products(lambda x: x, lambda r: 2 * r, (64, 64)), np.ones(64), 1
    ),
    "pictures of 16 x 16 pixels do not fit": lambda: pl.sparse_recovery(
        A8, np.ones(64), 1, basis=Wavelet((16, 16))
    ),
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_input_is_refused_in_one_line(text):
    with pytest.raises(InputError) as refused:
        WRONG[text]()
    assert text in str(refused.value)
    assert "\n" not in str(refused.value)
