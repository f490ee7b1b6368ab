"""Every loss of the core, a row each: formula, layouts, weights, intercept, batches, paths."""

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import minimize
from scipy.special import xlogy

from proxlearn.core.glm import Limits, describe, path_glm, solve_glm
from proxlearn.core.losses import LOSSES

M, N = 40, 12
RNG = np.random.default_rng(1)
A = RNG.standard_normal((M, N)) + RNG.standard_normal(N)
SIGNAL = A[:, :3] @ [1.0, -0.7, 0.4] / 2
LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "sparse": lambda X: scipy.sparse.csr_array(np.where(np.abs(X) > 0.7, X, 0.0)),
    "float32": lambda X: X.astype(np.float32),
}


def huber(z, b, delta=0.6):
    e = np.abs(z - b)
    return np.where(e <= delta, e**2 / 2, delta * (e - delta / 2))


# The formula phi(z, b), targets, lam, and the options of the loss.
ROWS = {
    "squares": (lambda z, b: (z - b) ** 2 / 2, SIGNAL + RNG.standard_normal(M), 2.0, {}),
    "huber": (huber, SIGNAL + 3 * RNG.standard_t(1, M), 1.0, {"delta": 0.6}),
    "logistic": (
        lambda z, b: np.logaddexp(0, (1 - 2 * b) * z),
        (SIGNAL + RNG.standard_normal(M) > 0).astype(float), 0.02, {},
    ),
    "poisson": (
        lambda z, b: np.exp(z) - b * z + xlogy(b, b) - b,
        RNG.poisson(np.exp(SIGNAL)).astype(float), 0.1, {},
    ),
}  # fmt: skip
over_losses = pytest.mark.parametrize("name", ROWS)


def weights(kind):
    return RNG.random(M) / (M if kind.mean else 1)


def dense(X):
    return (X.toarray() if scipy.sparse.issparse(X) else X).astype(np.float64)


def least(objective, n):
    """The minimum over x (n,) and a constant, by L-BFGS on x = p - q with p, q >= 0."""
    start = np.zeros(2 * n + 1)
    bounds = [(0, None)] * (2 * n) + [(None, None)]
    best = minimize(
        lambda v: objective(v[:n] - v[n:-1], v[-1], v[:-1].sum()), start, bounds=bounds,
        options={"maxfun": 10**6, "maxiter": 2000, "ftol": 1e-14, "gtol": 1e-9},
    )  # fmt: skip
    return best.fun


def test_every_loss_has_a_row():
    assert ROWS.keys() | {"softmax"} == LOSSES.keys()  # test_softmax.py


@over_losses
def test_the_dual_point_is_minus_the_derivative(name):
    phi, b, _, options = ROWS[name]
    kind, s = LOSSES[name], weights(LOSSES[name])
    z, h = 2 * RNG.standard_normal(M), 1e-6
    u = kind.compiled(kind.prepare(b), s, **options).dual_point(z)
    slope = (phi(z + h, b) - phi(z - h, b)) / (2 * h)
    np.testing.assert_allclose(u, -s * slope, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("layout", LAYOUTS)
@over_losses
def test_answers_are_certified_and_not_beaten(name, layout):
    phi, b, lam, options = ROWS[name]
    X, s = LAYOUTS[layout](A), weights(LOSSES[name])
    settings = {"l1": lam / 2, "sample_weight": s, "intercept": True, "options": options}
    tol = 1e-5 if layout == "float32" else 1e-9
    answer = solve_glm(describe(X, b, name, **settings), limits=Limits(tol))

    def F(x, c, size):
        return s @ phi(dense(X) @ x + c, b) + lam / 2 * size

    x = answer.x[0].astype(np.float64)
    found = F(x, answer.intercept[0], np.abs(x).sum())
    assert answer.status.tolist() == [0]
    assert answer.objective[0] == pytest.approx(found, rel=1e-12)
    assert answer.gap[0] <= tol * found
    best = least(F, N)
    assert found - answer.gap[0] <= best * (1 + 1e-12)
    assert found <= best * (1 + 10 * tol)


@over_losses
def test_a_path_and_a_batch_give_what_single_solves_give(name):
    _, b, lam, options = ROWS[name]
    limits = Limits(1e-10)
    factors = [1.0, 0.5, 0.1]
    glm = describe(A, b, name, l1=lam, intercept=True, options=options)
    singles = [
        solve_glm(describe(A, b, name, l1=t * lam, intercept=True, options=options), limits=limits)
        for t in factors
    ]
    for one, other in zip(singles, path_glm(glm, factors, limits=limits), strict=True):
        np.testing.assert_allclose(one.x, other.x, atol=1e-4)
        np.testing.assert_allclose(one.objective, other.objective, rtol=1e-9)
        assert other.status.tolist() == [0]
    many = np.stack([b, b[::-1], np.roll(b, 5)])
    batch = solve_glm(describe(A, many, name, l1=lam, options=options), limits=limits, threads=2)
    for i, row in enumerate(many):
        alone = solve_glm(describe(A, row, name, l1=lam, options=options), limits=limits)
        np.testing.assert_allclose(batch.x[i], alone.x[0], atol=1e-4)
        assert batch.objective[i] == pytest.approx(alone.objective[0], rel=1e-9)
    again = solve_glm(glm, np.append(singles[0].x[0], singles[0].intercept[0]), limits)
    assert again.iterations[0] <= 2
    assert again.objective[0] == pytest.approx(singles[0].objective[0], rel=1e-9)


@pytest.mark.parametrize("scale", [1e-120, 1e120])
@over_losses
def test_numbers_of_extreme_size(name, scale):
    _, b, lam, options = ROWS[name]
    kind, limits = LOSSES[name], Limits(1e-8)
    x = solve_glm(describe(A, b, name, l1=lam, options=options), limits=limits)
    scaled = solve_glm(describe(A * scale, b, name, l1=lam * scale, options=options), limits=limits)
    assert scaled.status.tolist() == [0]
    np.testing.assert_allclose(scaled.x * scale, x.x, rtol=1e-3, atol=1e-4)
    assert scaled.objective[0] == pytest.approx(x.objective[0], rel=1e-7)
    if kind.scales:
        more = {k: v * scale if k in kind.scaled_options else v for k, v in options.items()}
        large = solve_glm(describe(A, b * scale, name, l1=lam * scale, options=more), limits=limits)
        assert large.status.tolist() == [0]
        np.testing.assert_allclose(large.x / scale, x.x, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_logistic_regression_begins_at_the_best_constant(layout):
    labels, s = ROWS["logistic"][1], RNG.random(M)
    glm = describe(layout(A), labels, "logistic", l1=0.01, sample_weight=s, intercept=True)
    answer = solve_glm(glm, limits=Limits(1e-6, 0))
    odds = s[labels == 1].sum() / s[labels == 0].sum()
    assert not answer.x.any()
    assert answer.intercept[0] == pytest.approx(np.log(odds), rel=1e-12)


@over_losses
def test_a_start_from_which_nothing_can_be_computed_is_left_out(name):
    _, b, lam, options = ROWS[name]
    glm = describe(A, b, name, l1=lam, options=options, intercept=True)
    best = solve_glm(glm, limits=Limits(1e-9))
    for start in (np.full(N, 1e300), np.full(N + 1, -1e200)):
        answer = solve_glm(glm, start, limits=Limits(1e-9))
        assert answer.status.tolist() == [0]
        np.testing.assert_allclose(answer.x, best.x, atol=1e-4)
        path = path_glm(glm, [1.0, 0.5], start, Limits(1e-9))
        assert not path.status.any()


def test_the_intercept_of_a_start_has_the_units_of_b():
    b = 1e100 * (SIGNAL + 3)
    glm = describe(A, b, "huber", l1=1e100, options={"delta": 1e99}, intercept=True)
    best = solve_glm(glm, limits=Limits(1e-9))
    start = np.append(best.x[0], best.intercept[0])
    again = solve_glm(glm, start, limits=Limits(1e-9, max_iter=0))
    np.testing.assert_allclose(again.intercept, best.intercept)
    assert again.objective[0] == pytest.approx(best.objective[0])


@pytest.mark.parametrize("lam", [1e-300, 1e-301, 1e-320])
def test_a_loss_that_vanishes_in_the_units_of_b_is_not_called_solved(lam):
    """With b of 1e83 brought to size 1, delta would become 0 and so would the loss."""
    answer = solve_glm(describe([[1.0]], [1e83], "huber", l1=lam, options={"delta": 1e-300}))
    assert answer.status.tolist() == [3]
