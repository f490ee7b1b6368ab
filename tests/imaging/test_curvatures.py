"""Curvatures of bands of wavelets, from which the rules for pictures choose their steps."""

import pytest
import torch

import proxlearn as pl
from proxlearn.imaging import Blur, Fourier, Wavelet, gaussian_kernel, open_blur, projection
from proxlearn.methods.rules.banded import band_curvatures, coarsest
from proxlearn.problems.problem import Problem
from proxlearn.solving.loop_methods import automatic_name
from proxlearn.training import families


def behind(A, basis):
    b = torch.zeros(1, A.shape[0], dtype=torch.float64)
    return Problem(pl.smooth.LeastSquares(A @ basis.T, b), pl.penalties.L1(torch.ones(1).double()))


@pytest.mark.parametrize("side", [64, 128, 256])
def test_the_steep_direction_of_the_coarsest_averages_is_not_missed(side):
    degrees = torch.arange(32) * (180 / 32)
    problem = behind(projection((side, side), degrees), Wavelet((side, side), "db4", 4))
    mean, typical = band_curvatures(problem)
    assert float(mean[0, 0]) > 0.8
    assert float(typical[0, 0]) > 0.8
    assert float(typical[0, -1]) < 0.05


def test_every_basis_has_its_coarsest_averages():
    assert coarsest(Wavelet((16, 16), "haar", 2).row_groups()) == [(0, 16)]
    pair = Wavelet((16, 16), "haar", 2, copies=2)
    assert coarsest(pair.row_groups()) == [(0, 16), (256, 16)]
    assert coarsest((64,)) == []
    mask = (torch.rand(16, 16, generator=torch.Generator().manual_seed(0)) < 0.5).double()
    mean, _ = band_curvatures(behind(Fourier(mask, complex_pictures=True), pair))
    torch.testing.assert_close(mean[:, 0], mean[:, 7])


@pytest.mark.slow
def test_the_rule_for_projections_keeps_its_speed_on_larger_pictures():
    """At 256x256 its steps were too long for the brightness, and it had no gap of 0.5 here."""
    family = families.Tomography(size=256, wavelet="db4", angles=32)
    problem = family.sample(1, 5, dtype=torch.float64)
    solution = pl.solve(problem, "imaging", tol=3e-2, max_iter=150, polish=False)
    assert solution.solved


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("imaging", lambda: projection((64, 64), torch.arange(16) * 11.25)),
        ("fista-restart", lambda: open_blur(gaussian_kernel(1.5), (54, 54))[0]),
        ("fista-restart", lambda: Fourier(torch.ones(64, 64), coils=halves())),
        ("imaging-splitting", lambda: Blur(gaussian_kernel(1.5), (64, 64))),
    ],
    ids=["rays", "unknown border", "coils", "blur"],
)
def test_auto_takes_the_rule_where_the_averages_alone_are_steep(name, make):
    A = make()
    b = torch.ones(A.shape[0], dtype=torch.float64)
    problem = pl.sparse_recovery(A, b, 1.0, basis="db4", shape=(64, 64))
    assert automatic_name(problem) == name


def halves():
    """Two coils, each of which sees a side of the picture."""
    side = torch.linspace(0.1, 1, 64, dtype=torch.float64).expand(64, 64)
    both = torch.stack([side, side.flip(1)])
    return torch.stack([both, torch.zeros_like(both)], -1)
