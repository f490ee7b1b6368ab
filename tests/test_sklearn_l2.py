"""L-BFGS of problems with an l2 penalty alone: its memory, its paths, and Poisson's loss."""

import numpy as np
import pytest

import proxlearn.sklearn as ours
from proxlearn.core.glm import solve_glm
from proxlearn.sklearn import ridge
from proxlearn.sklearn.design import Design
from proxlearn.sklearn.preconditioning import estimate, factor
from proxlearn.sklearn.quasi_newton import Memory, QuasiNewton, Reached
from proxlearn.sklearn.smooth_losses import Logistic, Poisson


def quadratic(n, seed=0):
    """A Hessian, and a memory of more pairs of it than there are places."""
    random = np.random.default_rng(seed)
    root = random.standard_normal((n, n))
    H = root @ root.T + np.eye(n)
    memory, steps = Memory(n, 5), random.standard_normal((8, n))
    for s in steps:
        memory.keep(s, H @ s)
    return H, memory, steps


def test_the_memory_satisfies_the_secant_equation_of_the_last_step():
    H, memory, steps = quadratic(12)
    np.testing.assert_allclose(memory.product(H @ steps[-1]), steps[-1], rtol=1e-8)


def test_the_product_is_that_of_bfgs_updates():
    H, memory, steps = quadratic(7)
    kept = steps[-5:]
    last = H @ kept[-1]
    inverse = np.eye(7) * (kept[-1] @ last) / (last @ last)
    for s in kept:
        y = H @ s
        left = np.eye(7) - np.outer(s, y) / (s @ y)
        inverse = left @ inverse @ left.T + np.outer(s, s) / (s @ y)
    g = np.random.default_rng(3).standard_normal(7)
    np.testing.assert_allclose(memory.product(g), inverse @ g, rtol=1e-8)


def test_a_shifted_memory_is_that_of_the_shifted_hessian():
    H, memory, steps = quadratic(9)
    ridge_ = np.linspace(0.0, 3.0, 9)
    memory.shift(ridge_)
    changed = H @ steps[-1] + ridge_ * steps[-1]
    np.testing.assert_allclose(memory.product(changed), steps[-1], rtol=1e-8)


def test_a_rescaled_memory_is_that_of_the_rescaled_hessian():
    H, memory, steps = quadratic(9)
    factors = np.geomspace(0.1, 10.0, 9)
    memory.rescale(factors)
    changed = (H @ steps[-1]) / factors
    np.testing.assert_allclose(memory.product(changed), factors * steps[-1], rtol=1e-8)
    other = Memory(9, 5)
    for s in steps[-5:]:
        other.keep(factors * s, (H @ s) / factors)
    g = np.ones(9)
    np.testing.assert_allclose(memory.product(g), other.product(g), rtol=1e-8)


@pytest.mark.parametrize("classes", [2, 3])
def test_columns_of_unequal_lengths_take_few_iterations(classes):
    """Without a unit for each column it is 44, and some fits of the path do not converge."""
    random = np.random.default_rng(5)
    X = random.standard_normal((2000, 120))
    Z = X @ random.standard_normal((120, classes)) + 10 * random.standard_normal((2000, classes))
    X *= 10.0 ** random.uniform(-1.5, 1.5, 120)
    model = ours.LogisticRegression().fit(X, Z.argmax(1))
    assert model.n_iter_ <= 20
    path = ours.LogisticRegressionCV(
        Cs=5, cv=2, l1_ratios=(0,), scoring="accuracy", use_legacy_attributes=False
    ).fit(X, Z.argmax(1))
    assert path.n_iter_.max() <= 45


def test_units_of_a_factor_make_the_hessian_one():
    """A step s is L^T s and a gradient g is L^-1 g; from all rows the Hessian is exact."""
    random = np.random.default_rng(0)
    A, s = random.standard_normal((30, 5)) + 3.0, random.random(30)
    design, ridge = Design(A, s, True), np.append(np.full(5, 0.1), 0.0)
    H = estimate(design, s) + np.diag(ridge)
    centred = np.column_stack([A - s @ A / s.sum(), np.ones(30)])
    np.testing.assert_allclose(H, centred.T * s @ centred + np.diag(ridge), atol=1e-12)
    units, step = factor(estimate(design, s), ridge), random.standard_normal((1, 6))
    np.testing.assert_allclose(units.gradient(step @ H), units.step(step), atol=1e-12)
    np.testing.assert_allclose(units.outward(units.step(step)), step, rtol=1e-10)
    assert factor(-np.eye(3), np.zeros(3)) is None


@pytest.mark.parametrize("shape", [(1, 1), (30, 5), (37, 9)])
def test_the_first_product_finds_means_and_squares(shape):
    random = np.random.default_rng(0)
    A, s = random.standard_normal(shape) + 2.0, random.random(shape[0])
    U = random.standard_normal((1, shape[0]))
    tall, flat = Design(np.asfortranarray(A), s, True), Design(np.vstack([A, A])[: len(A)], s, True)
    np.testing.assert_allclose(tall.correlate(U), flat.correlate(U), atol=1e-12)
    np.testing.assert_allclose(tall.mean, flat.mean, rtol=1e-12)
    np.testing.assert_allclose(tall.squares(), flat.squares(), atol=1e-12)


@pytest.mark.parametrize("loss", [Logistic, Poisson])
def test_a_moved_dual_point_has_no_sum(loss):
    """It bounds the loss of every constant, and infeasible points are refused."""
    random = np.random.default_rng(0)
    b, s = np.where(random.random(20) < 0.5, 1.0, 2.0), random.random(20)
    f = loss(2.0 * b - 3.0, s) if loss is Logistic else loss(b, s)
    state = f.at(0.3 * random.standard_normal((1, 20)))
    moved = f.moved(state, float(state.U.sum() / s.sum()))
    assert abs(moved.U.sum()) < 1e-14
    np.testing.assert_allclose(moved.U, state.U - s * state.U.sum() / s.sum(), atol=1e-15)
    constants = [f.at(np.full((1, 20), c)).value for c in np.linspace(-1.0, 2.0, 31)]
    assert 0.0 < f.bound(moved) <= min(constants)
    assert f.moved(state, -10.0) is None


@pytest.mark.parametrize("counts", [True, False])
def test_correlated_columns_take_few_iterations(counts):
    """Without a factor of the Hessian they take 60 and 41."""
    random = np.random.default_rng(0)
    X = random.standard_normal((6000, 110))
    for j in range(1, 110):
        X[:, j] += 0.9 * X[:, j - 1]
    rates = np.exp(0.1 * X[:, :10] @ random.standard_normal(10))
    if counts:
        model = ours.PoissonRegressor(alpha=1e-3).fit(X, random.poisson(rates))
    else:
        y = random.random(6000) < rates / (1.0 + rates)
        model = ours.LogisticRegression(C=100).fit(X, y)
    assert np.max(model.n_iter_) <= 25


def test_looking_ahead_never_goes_up():
    random = np.random.default_rng(0)
    A, b = random.standard_normal((40, 6)), np.sign(random.standard_normal(40))
    design, loss = Design(A, np.ones(40), True), Logistic(b, np.ones(40))
    search, points = QuasiNewton(design, loss, 1), random.standard_normal((3, 1, 7))
    for point in points:
        Z = design.predict(point)
        at = Reached(point, Z, loss.at(Z), 0, False)
        found = search.look_ahead(at, 0.5)
        before, after = (
            loss.at(design.predict(p)).value + 0.25 * np.square(p[:, :6]).sum()
            for p in (point, found.point)
        )
        assert after <= before
        np.testing.assert_allclose(found.Z, design.predict(found.point), atol=1e-10)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_poisson_with_l2_alone_is_certified(monkeypatch, fit_intercept):
    """The gap is at least the distance to the core's objective."""
    random = np.random.default_rng(1)
    X = random.standard_normal((80, 120)) + 2.0
    y = random.poisson(np.exp(0.3 * X[:, 0] - 0.5)).astype(float)

    def objective(model):
        z = X @ model.coef_ + model.intercept_
        return float(np.mean(np.exp(z) - y * z)) + 0.005 * float(np.square(model.coef_).sum())

    options = {"alpha": 0.01, "fit_intercept": fit_intercept}
    model = ours.PoissonRegressor(**options).fit(X, y)
    monkeypatch.setattr(ridge, "MANY", {})
    exact = ours.PoissonRegressor(**options, tol=1e-10).fit(X, y)
    assert objective(model) - objective(exact) <= model.dual_gap_ + 1e-12


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_large_poisson_problem_that_is_slow_for_lbfgs_is_ended_by_the_core(
    monkeypatch, fit_intercept
):
    """Columns that nearly depend on each other: L-BFGS ends early, and the core goes on."""
    random = np.random.default_rng(3)
    X = random.standard_normal((300, 12)) * np.geomspace(0.01, 3.0, 12)
    y = random.poisson(np.exp(np.clip(X[:, -1] + 20 * X[:, 0], -4, 3))).astype(float)
    X = X @ np.linalg.qr(random.standard_normal((12, 12)))[0]
    reached = []

    def core(glm, x0, *rest, **more):
        reached.append(x0)
        return solve_glm(glm, x0, *rest, **more)

    monkeypatch.setattr(ridge, "solve_glm", core)
    expected = ours.PoissonRegressor(alpha=1e-4, fit_intercept=fit_intercept, tol=1e-8).fit(X, y)
    monkeypatch.setattr(ridge, "LARGE", {"poisson": 1})
    monkeypatch.setattr(ridge, "TRIAL", 6)
    model = ours.PoissonRegressor(alpha=1e-4, fit_intercept=fit_intercept, tol=1e-8).fit(X, y)
    assert reached[0] is None
    assert reached[1].shape == (1, 12 + fit_intercept)
    assert np.abs(reached[1][0, :12] - model.coef_).max() > 1e-8
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-4)
    assert 0 <= model.dual_gap_ < 1e-8 * len(y)


def test_poissons_bound_is_its_value_at_balanced_means():
    """Where the means are the counts, value and bound are 0; anywhere else the bound is below."""
    b, s = np.array([0.0, 1.0, 4.0]), np.array([1.0, 2.0, 0.5])
    loss = Poisson(b, s)
    exact = loss.at(np.array([[-700.0, 0.0, np.log(4.0)]]))
    assert abs(exact.value) < 1e-12
    assert abs(loss.bound(exact)) < 1e-12
    state = loss.at(np.zeros((1, 3)))
    loss.balance(state)
    assert abs(state.U.sum()) < 1e-12
    assert loss.bound(state) <= state.value


def test_poissons_bound_is_finite_where_a_mean_is_far_below_its_count():
    """A mean of 1e-22 beside a count of 1: their difference is -1 to the last digit."""
    loss = Poisson(np.array([1.0, 2.0, 0.0]), np.ones(3))
    state = loss.at(np.array([[-50.0, 0.0, -800.0]]))
    q = np.exp(-50.0)
    expected = (q - 1.0 + 50.0 * q) + (2.0 * np.log(2.0) - 1.0)
    assert np.isfinite(loss.bound(state))
    np.testing.assert_allclose(loss.bound(state), expected, rtol=1e-12)
