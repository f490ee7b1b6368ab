"""Wavelets against PyWavelets, the cosine transform against SciPy, and their bands."""

import numpy as np
import pytest
import scipy.fft
import torch

from imaging.picture_operators import normal
from proxlearn.imaging import Cosine, Wavelet
from proxlearn.imaging.filters import high_pass, low_pass
from proxlearn.names import WAVELETS

pywt = pytest.importorskip("pywt", reason="PyWavelets is not installed")


@pytest.mark.parametrize("name", WAVELETS)
def test_filters_are_those_of_pywavelets(name):
    np.testing.assert_allclose(low_pass(name), pywt.Wavelet(name).rec_lo, rtol=0, atol=2e-11)


@pytest.mark.parametrize("name", WAVELETS)
def test_filters_are_orthonormal_to_the_last_digit(name):
    low, n = low_pass(name), len(low_pass(name))
    for shift in range(0, n, 2):
        dot = low[shift:] @ low[: n - shift]
        assert dot == pytest.approx(1.0 if shift == 0 else 0.0, abs=1e-14)
        assert low[shift:] @ high_pass(low)[: n - shift] == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize("name", WAVELETS)
@pytest.mark.parametrize(("side", "levels"), [(64, 1), (128, 3), (192, 2), (256, 4)])
def test_coefficients_of_signals_are_those_of_pywavelets(name, side, levels):
    x = normal(side)
    found = Wavelet(side, name, levels).forward(x[None])[0]
    expected = np.concatenate(pywt.wavedec(x.numpy(), name, "periodization", levels))
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("name", ["haar", "db2", "db4", "db8"])
@pytest.mark.parametrize("grid", [(64, 64), (128, 32), (96, 160)])
def test_coefficients_of_pictures_are_those_of_pywavelets(name, grid):
    x = normal(*grid)
    W = Wavelet(grid, name, 1)
    low, across, down, diagonal = W.forward(x.reshape(1, -1))[0].split([b.count for b in W.bands])
    cA, (cH, cV, cD) = pywt.dwt2(x.numpy(), name, "periodization")
    for ours, theirs in ((low, cA), (across, cV), (down, cH), (diagonal, cD)):
        np.testing.assert_allclose(ours, theirs.ravel(), atol=1e-9)


def test_levels_are_repeated_on_the_averages():
    x = normal(1, 64 * 32)
    two, one = Wavelet((64, 32), "db2", 2), Wavelet((64, 32), "db2", 1)
    first = one.forward(x)
    again = Wavelet((32, 16), "db2", 1).forward(first[:, : 32 * 16])
    torch.testing.assert_close(two.forward(x), torch.cat([again, first[:, 32 * 16 :]], 1))


@pytest.mark.parametrize("side", [16, 36, 100, 128, 336, 514])
def test_pieces_of_any_side_are_orthogonal(side):
    W = Wavelet(side, "db3", 1)
    x = normal(2, side)
    torch.testing.assert_close(W.adjoint(W.forward(x)), x)
    torch.testing.assert_close(W.forward(x).norm(), x.norm())


def test_cosines_are_those_of_scipy_octave_by_octave():
    x, C = normal(6, 10), Cosine((6, 10))
    found = C.forward(x.reshape(1, -1))[0]
    expected = scipy.fft.dctn(x.numpy(), norm="ortho")
    assert [band.count for band in C.bands] == [1, 3, 12, 32, 12]
    np.testing.assert_allclose(found[:4], [expected[0, 0], *expected[:2, :2].ravel()[1:]])
    np.testing.assert_allclose(np.sort(found), np.sort(expected.ravel()))


def test_a_weight_for_every_scale_the_coarsest_first():
    W = Wavelet((8, 8), "haar", 2)
    weights = W.by_scale([0.1, 1.0, 2.0])
    assert weights.tolist() == [0.1] * 4 + [1.0] * 12 + [2.0] * 48
