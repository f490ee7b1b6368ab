"""The filters of Daubechies' orthogonal wavelets, computed from their definition."""

import math
from functools import cache

import numpy as np
import numpy.typing as npt

from proxlearn.errors import unknown
from proxlearn.names import WAVELETS


@cache
def low_pass(name: str) -> npt.NDArray[np.float64]:
    """The low-pass filter (2p,) of a wavelet with p vanishing moments; its sum is sqrt(2).

    Daubechies' construction (Ten Lectures on Wavelets, 1992, chapter 6): |H|^2 has p zeros at the
    frequency pi, and the rest is a polynomial in y = sin^2(w/2) whose roots inside the unit
    circle are kept, the choice with minimal phase.
    """
    if name not in WAVELETS:
        raise unknown("wavelet", name, WAVELETS)
    p = 1 if name == "haar" else int(name[2:])
    rest = np.polynomial.Polynomial([math.comb(p - 1 + k, k) for k in range(p)])
    filter_ = np.array([1.0])
    for _ in range(p):
        filter_ = np.convolve(filter_, [1.0, 1.0])
    for root in rest.roots():
        # y = (2 - z - 1/z)/4, so that z^2 - (2 - 4y) z + 1 = 0.
        middle = 1 - 2 * complex(root)
        z = middle + np.sqrt(middle * middle - 1)
        z = z if abs(z) < 1 else 1 / z
        filter_ = np.convolve(filter_, [1.0, -z])
    real = np.real(filter_)
    scaled: npt.NDArray[np.float64] = _refined(real * math.sqrt(2) / real.sum(), p)
    return scaled


def _refined(h: npt.NDArray[np.float64], p: int) -> npt.NDArray[np.float64]:
    """The filter after Newton steps on its own equations, which remove the rounding of the roots.

    They are p equations of orthonormality, sum_k h_k h_{k+2m} = 1 if m = 0 and else 0, and p of
    vanishing moments, sum_k (-1)^k k^q h_k = 0.
    """
    n = len(h)
    k = np.arange(n)
    moments = np.array([(-1.0) ** k * (k / n) ** q for q in range(p)])
    for _ in range(3):
        shifts = np.array([np.r_[h[2 * m :], np.zeros(2 * m)] for m in range(p)])
        back = np.array([np.r_[np.zeros(2 * m), h[: n - 2 * m]] for m in range(p)])
        wrong = np.r_[shifts @ h - (np.arange(p) == 0), moments @ h]
        h = h - np.linalg.lstsq(np.vstack([shifts + back, moments]), wrong, rcond=None)[0]
    return h


def high_pass(low: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The high-pass filter that goes with a low-pass filter: g_j = (-1)^j h_{L-1-j}."""
    return np.asarray(low[::-1] * (-1.0) ** np.arange(len(low)))
