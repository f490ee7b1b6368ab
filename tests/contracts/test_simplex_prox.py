"""The weighted projection onto the simplex against rational arithmetic, on its hard cases."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from proxlearn.problems.penalties import Simplex


def exact_prox(v, p, radius):
    """The same sum as a function of xi, searched without rounding."""
    v, p = [Fraction(float(t)) for t in v], [Fraction(float(t)) for t in p]
    sum_v, sum_p, xi = Fraction(0), Fraction(0), None
    for i in sorted(range(len(v)), key=lambda i: v[i] / p[i], reverse=True):
        candidate = (sum_v + v[i] - Fraction(float(radius))) / (sum_p + p[i])
        if v[i] / p[i] <= candidate:
            break
        sum_v, sum_p, xi = sum_v + v[i], sum_p + p[i], candidate
    return np.array([float(max(Fraction(0), a - xi * b)) for a, b in zip(v, p, strict=True)])


def check(v, p, radius, dtype):
    """Right to the rounding of the input v, and on the simplex to the rounding of the radius."""
    v, p = torch.as_tensor(v).to(dtype)[None], torch.as_tensor(p).to(dtype)[None]
    simplex = Simplex(torch.tensor([radius], dtype=dtype))
    x = simplex.prox(v, p)
    eps = torch.finfo(dtype).eps
    expected = exact_prox(v[0], p[0], simplex.radius[0])
    tolerance = 16 * eps * max(float(v.abs().max()), radius)
    np.testing.assert_allclose(x[0].double(), expected, rtol=0, atol=tolerance)
    assert (x >= 0).all()
    assert abs(float(x.double().sum()) - radius) <= 16 * eps * radius
    assert simplex.value(x).item() == 0


HARD = {
    "one-variable": ([0.3], [2.0]),
    "one-variable-far": ([-1e7], [1e-3]),
    "all-equal": ([0.7] * 5, [1.0] * 5),
    "all-equal-in-the-ratio": ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]),
    "tie-at-the-threshold": ([1.0, 0.0, 0.0, -1.0], [1.0] * 4),
    "on-the-simplex": ([0.25, 0.5, 0.25], [1e-3, 1.0, 1e3]),
    "a-corner": ([100.0, 0.0, 0.0], [1.0] * 3),
    "zeros": ([0.0] * 4, [1e-3, 1.0, 10.0, 1e3]),
    "all-negative": ([-3.0, -2.0, -5.0], [1.0, 1e-3, 1e3]),
    "p-over-six-decades": (np.linspace(-1, 1, 13), np.logspace(-3, 3, 13)),
    "p-over-six-decades-down": (np.linspace(-1, 1, 13), np.logspace(3, -3, 13)),
    "tiny-p": ([0.3, 0.4, 0.9], [1e-6] * 3),
    "huge-p": ([0.3, 0.4, 0.9], [1e6] * 3),
    "far-away": (1e5 + np.linspace(0, 1, 7), np.ones(7)),
    "far-away-uneven": (1e5 * np.linspace(-1, 1, 7), np.logspace(-3, 3, 7)),
}


@pytest.mark.parametrize("case", HARD)
def test_hard_cases(case):
    for dtype in (torch.float32, torch.float64):
        for radius in (1.0, 1e-3, 250.0):
            check(*HARD[case], radius, dtype)


@given(
    n=st.integers(1, 40),
    exponent=st.integers(-3, 6),
    spread=st.floats(0, 3),
    ties=st.booleans(),
    seed=st.integers(0, 10**6),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_random_cases(n, exponent, spread, ties, seed, dtype):
    rng = np.random.default_rng(seed)
    v, p = 10.0**exponent * rng.standard_normal(n), 10.0 ** rng.uniform(-spread, spread, n)
    if ties:
        v, p = np.round(v, -exponent), np.round(p) + 1
    check(v, p, 1.0, dtype)
