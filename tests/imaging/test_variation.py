"""Total variation: the optimum of other solvers, gaps that hold, and what is refused."""

import numpy as np
import pytest
import torch

import conic as cp
import proxlearn as pl
from imaging.picture_operators import mask, matrix, normal
from proxlearn.errors import InputError
from proxlearn.imaging import Blur, Fourier, Mask, gaussian_kernel, projection, total_variation

OPERATORS = {
    "blur": lambda: Blur(gaussian_kernel(1.0), (8, 10)),
    "mask": lambda: Mask(mask(8, 10)),
    "fourier": lambda: Fourier(mask(8, 10)),
    "fourier-without-mean": lambda: Fourier(mask(8, 10) * (normal(8, 10) != normal(8, 10)[0, 0])),
    "coils": lambda: Fourier(mask(8, 10), coils=normal(2, 8, 10, 2)),
    "projection": lambda: projection((8, 10), [0.0, 50.0, 100.0]),
    "nothing": lambda: Mask(torch.zeros(8, 10, dtype=torch.float64)),
}


def picture():
    steps = torch.zeros(8, 10, dtype=torch.float64)
    steps[2:6, 3:8] = 1
    return steps.reshape(1, -1) + 0.1 * normal(1, 80, seed=4)


def conic_optimum(A, b, lam, isotropic):
    """F* by a conic solver."""
    down, across = (np.diff(np.eye(side), axis=0, append=0 * np.eye(side)[:1]) for side in (8, 10))
    for step in (down, across):
        step[-1] = 0
    x = cp.Variable(80)
    moves = np.kron(down, np.eye(10)) @ x, np.kron(np.eye(8), across) @ x
    variation = cp.sum(cp.norm(cp.vstack(moves), 2 if isotropic else 1, axis=0))
    misfit = 0.5 * cp.sum_squares(matrix(A)[0].numpy() @ x - b)
    return cp.Problem(cp.Minimize(misfit + lam * variation)).solve(solver="CLARABEL")


@pytest.mark.slow
@pytest.mark.parametrize("isotropic", [True, False])
@pytest.mark.parametrize("name", [n for n in OPERATORS if n != "nothing"])
def test_the_optimum_is_that_of_a_conic_solver_and_gaps_hold(name, isotropic):
    A = OPERATORS[name]()
    b, lam = A.forward(picture()), 0.05 * float(A.norm()) ** 2
    best = conic_optimum(A, b[0].numpy(), lam, isotropic)
    for tol in (1e-1, 1e-3, 1e-5):
        found = total_variation(
            A, b[0], lam, shape=(8, 10), isotropic=isotropic, tol=tol, max_iter=20_000
        )
        missed = float(found.objective[0]) - best
        assert found.solved
        assert -1e-6 * best <= missed <= float(found.gap[0]) + 1e-6 * best
        assert float(found.gap[0]) <= tol * float(found.objective[0])


@pytest.mark.parametrize("name", OPERATORS)
def test_gaps_hold_long_before_the_end(name):
    A = OPERATORS[name]()
    b = A.forward(picture())[0]
    values = [
        total_variation(A, b, 0.1, shape=(8, 10), tol=1e-9, max_iter=k) for k in (1, 7, 40, 400)
    ]
    lower = [float(v.objective[0] - v.gap[0]) for v in values]
    assert max(lower) <= min(float(v.objective[0]) for v in values) * (1 + 1e-12)
    assert np.isfinite(lower).all()


def test_a_signal_is_that_of_the_core_with_columns_of_steps():
    b = np.repeat([1.0, 3.0, 2.0], 6) + normal(18).numpy() / 5
    steps = np.tril(np.ones((18, 18)))
    weights = np.r_[0.0, np.ones(17)]
    exact = pl.solve(pl.lasso(steps, b, 0.4, weights), tol=1e-10)
    found = total_variation(Mask(np.ones(18)), b, 0.4, shape=18, tol=1e-6)
    assert isinstance(found.x, np.ndarray)
    assert found.solved
    np.testing.assert_allclose(found.objective, exact.objective, rtol=1e-6)
    np.testing.assert_allclose(found.image, np.cumsum(exact.x), atol=2e-3)


def test_instances_of_a_batch_are_solved_as_alone():
    A = Mask(mask(3, 8, 10))
    b = A.forward(picture() * torch.tensor([[1.0], [2.0], [0.0]]).double())
    together = total_variation(A, b, [0.1, 0.3, 0.1], shape=(8, 10), tol=1e-4)
    assert together.solved
    assert together.image.shape == (3, 8, 10)
    assert not together.x[2].any()
    for i, lam in enumerate((0.1, 0.3, 0.1)):
        alone = total_variation(Mask(mask(3, 8, 10)[i]), b[i], lam, shape=(8, 10), tol=1e-4)
        assert int(alone.iterations[0]) == int(together.iterations[i])
        torch.testing.assert_close(alone.objective[0], together.objective[i])


@pytest.mark.parametrize("size", [1e-40, 1.0, 1e40])
def test_the_size_of_the_data_changes_nothing(size):
    A = OPERATORS["blur"]()
    b = A.forward(picture())[0]
    plain, scaled = (total_variation(A, s * b, s * 0.02, tol=1e-3) for s in (1.0, size))
    assert plain.solved
    assert scaled.solved
    assert int(scaled.iterations[0]) == pytest.approx(int(plain.iterations[0]), abs=20)
    torch.testing.assert_close(scaled.x / size, plain.x, rtol=1e-3, atol=1e-3)


def test_single_precision_is_certified_in_double():
    A = OPERATORS["blur"]()
    b = A.forward(picture())[0]
    found = total_variation(A.convert(torch.float32), b.float(), 0.02, tol=1e-3)
    assert found.solved
    assert found.x.dtype == torch.float32
    assert found.gap.dtype == torch.float64
    exact = total_variation(A, b.float().double(), 0.02, tol=1e-6, max_iter=20_000)
    assert float(found.objective[0] - exact.objective[0]) <= float(found.gap[0])


def test_nothing_measured_is_a_picture_of_nothing():
    found = total_variation(OPERATORS["nothing"](), torch.zeros(80).double(), 1.0, shape=(8, 10))
    assert found.solved
    assert not found.x.any()


A8 = Blur(gaussian_kernel(1.0), (8, 8))
WRONG = {
    "give shape=(height, width)": lambda: total_variation(
        Mask(mask(1, 64), flat=True), np.ones(64), 1
    ),
    "lam is -1": lambda: total_variation(A8, np.ones(64), -1),
    "b has shape (63,)": lambda: total_variation(A8, np.ones(63), 1),
    "real pictures": lambda: total_variation(
        Fourier(mask(8, 8), complex_pictures=True), np.ones(128), 1
    ),
    "b has 2 instances, lam 3": lambda: total_variation(A8, np.ones((2, 64)), [1, 2, 3]),
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_input_is_refused_in_one_line(text):
    with pytest.raises(InputError) as refused:
        WRONG[text]()
    assert text in str(refused.value)
    assert "\n" not in str(refused.value)
