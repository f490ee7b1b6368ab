"""Softmax in the core: several classes over one matrix, dense and sparse."""

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import minimize
from scipy.special import log_softmax

from proxlearn.core import kernel
from proxlearn.core.glm import Limits, describe, path_glm, solve_glm

M, N, C = 60, 9, 4
RNG = np.random.default_rng(3)
A = RNG.standard_normal((M, N)) + RNG.standard_normal(N)
TRUTH = RNG.standard_normal((C, N)) * (RNG.random((C, N)) < 0.4)
LABELS = (A @ TRUTH.T + RNG.gumbel(size=(M, C))).argmax(1)
WEIGHTS = RNG.random(M) / M
LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "sparse": lambda X: scipy.sparse.csr_array(np.where(np.abs(X) > 0.7, X, 0.0)),
    "float32": lambda X: X.astype(np.float32),
}


def dense(X):
    return (X.toarray() if scipy.sparse.issparse(X) else X).astype(np.float64)


def loss(X, W, c, s=WEIGHTS):
    return -s @ log_softmax(dense(X) @ W.T + c, axis=1)[np.arange(M), LABELS]


def problem(X, lam=0.02, l2=0.0, intercept=True, labels=LABELS, s=WEIGHTS):
    return describe(
        X, labels, "softmax", l1=lam, l2=l2, sample_weight=s, intercept=intercept,
        options={"classes": C},
    )  # fmt: skip


def least(X, lam, l2, intercept):
    """The minimum, by L-BFGS on W = P - Q with P, Q >= 0."""

    def objective(v):
        p, q, c = v[: C * N], v[C * N : 2 * C * N], v[2 * C * N :]
        W = (p - q).reshape(C, N)
        z = dense(X) @ W.T + c
        P = np.exp(log_softmax(z, axis=1)) - np.eye(C)[LABELS]
        g = ((WEIGHTS[:, None] * P).T @ dense(X) + l2 * W).ravel()
        value = loss(X, W, c) + lam * v[: 2 * C * N].sum() + l2 / 2 * (W**2).sum()
        return value, np.concatenate([g + lam, lam - g, WEIGHTS @ P * intercept])

    bounds = [(0, None)] * (2 * C * N) + [(None, None)] * C
    options = {"maxfun": 10**6, "maxiter": 5000, "ftol": 1e-15, "gtol": 1e-10}
    start = np.zeros(2 * C * N + C)
    return minimize(objective, start, jac=True, bounds=bounds, options=options).fun


@pytest.mark.parametrize("l2", [0.0, 0.01])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_answers_are_certified_and_not_beaten(layout, intercept, l2):
    X, lam = LAYOUTS[layout](A), 0.002
    tol = 1e-5 if layout == "float32" else 1e-9
    answer = solve_glm(problem(X, lam, l2, intercept), limits=Limits(tol))
    W = answer.x[0].astype(np.float64).reshape(C, N)
    found = loss(X, W, answer.intercept[0]) + lam * abs(W).sum() + l2 / 2 * (W**2).sum()
    assert answer.status.tolist() == [0]
    assert answer.objective[0] == pytest.approx(found, rel=1e-11)
    assert answer.gap[0] <= tol * found
    best = least(X, lam, l2, intercept)
    assert found - answer.gap[0] <= best * (1 + 1e-11)
    assert found <= best * (1 + 10 * tol)


def test_the_dual_point_is_minus_the_derivative():
    z, h = RNG.standard_normal(C * M), 1e-6
    softmax = kernel.Softmax(LABELS.astype(float), WEIGHTS, classes=C)
    u = softmax.dual_point(z)

    def value(z):
        return -WEIGHTS * log_softmax(z.reshape(C, M), axis=0)[LABELS, np.arange(M)]

    for c in range(C):
        step = np.zeros((C, M))
        step[c] = h
        slope = (value(z + step.ravel()) - value(z - step.ravel())) / (2 * h)
        np.testing.assert_allclose(u.reshape(C, M)[c], -slope, atol=1e-10)


def test_two_classes_are_logistic_regression():
    two = (LABELS > 1).astype(float)
    logistic = solve_glm(describe(A, two, "logistic", l2=0.02), limits=Limits(1e-11))
    glm = describe(A, two, "softmax", l2=0.04, options={"classes": 2})
    softmax = solve_glm(glm, limits=Limits(1e-11))
    np.testing.assert_allclose(softmax.x[0][N:] - softmax.x[0][:N], logistic.x[0], atol=1e-4)
    assert softmax.objective[0] == pytest.approx(logistic.objective[0], rel=1e-9)


def test_paths_batches_and_warm_starts_give_what_single_solves_give():
    limits, factors = Limits(1e-10), [1.0, 0.5, 0.1]
    glm = problem(A, 0.02)
    path = path_glm(glm, factors, limits=limits)
    for k, factor in enumerate(factors):
        alone = solve_glm(problem(A, 0.02 * factor), limits=limits)
        assert path.objective[k, 0] == pytest.approx(alone.objective[0], rel=1e-9)
        # What is added to the coefficients of all classes need not change the objective.
        for one, other in ((path.x[k], alone.x), (path.intercept[k], alone.intercept)):
            difference = (one - other).reshape(C, -1)
            np.testing.assert_allclose(difference - difference.mean(0), 0.0, atol=1e-4)
    many = np.stack([LABELS, LABELS[::-1]])
    batch = solve_glm(problem(A, labels=many), limits=limits, threads=2)
    for i, row in enumerate(many):
        alone = solve_glm(problem(A, labels=row), limits=limits)
        assert batch.objective[i] == pytest.approx(alone.objective[0], rel=1e-9)
    first = solve_glm(glm, limits=limits)
    again = solve_glm(glm, np.concatenate([first.x[0], first.intercept[0]]), limits)
    assert again.iterations[0] <= 1
    assert again.objective[0] == pytest.approx(first.objective[0], rel=1e-9)


@pytest.mark.parametrize("scale", [1e-120, 1e120])
def test_columns_of_extreme_size(scale):
    limits = Limits(1e-8)
    first = solve_glm(problem(A, 0.02), limits=limits)
    scaled = solve_glm(problem(A * scale, 0.02 * scale), limits=limits)
    assert scaled.status.tolist() == [0]
    np.testing.assert_allclose(scaled.x * scale, first.x, rtol=1e-3, atol=1e-4)


def test_samples_of_weight_zero_and_absent_classes():
    s = WEIGHTS.copy()
    s[LABELS == 2] = 0
    answer = solve_glm(problem(A, 0.002, s=s, intercept=False), limits=Limits(1e-9))
    rest = LABELS != 2
    alone = solve_glm(
        describe(A[rest], LABELS[rest], "softmax", l1=0.002, sample_weight=s[rest],
                 options={"classes": C}),
        limits=Limits(1e-9),
    )  # fmt: skip
    assert answer.objective[0] == pytest.approx(alone.objective[0], rel=1e-8)


def test_weights_of_very_different_size_are_solved_to_a_gap():
    # Newton's first step gives one class all the probability, where the loss has no curvature.
    s = np.where(LABELS == 0, 1000.0, 1e-4)
    for l2 in (1.0, 100.0):
        answer = solve_glm(problem(20 * A, 0.0, l2, s=s))
        assert answer.status.tolist() == [0]
        assert answer.gap[0] <= 1e-6 * answer.objective[0]


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("strength", [10, 100, 1000])
def test_nearly_separated_classes_with_an_intercept_take_few_working_sets(strength, layout):
    # The certificate moves the dual point until it is orthogonal to the intercepts. Columns that
    # joined had their gradient from that point and the others from x: a model without a minimum.
    # The number depends on rounding: of 90 copies of (1000, dense), changed by 1e-15 each, two took
    # 9 working sets, 16 took 12 and one took 13. So it is that of the middle one of three copies.
    rng = np.random.default_rng(1)
    labels = np.arange(50) % 8
    X = rng.standard_normal((50, 1200)) + rng.standard_normal((50, 10)) @ rng.standard_normal(
        (10, 1200)
    )
    if layout == "sparse":
        X = X * (rng.random(X.shape) < 0.2)
    iterations = []
    for error in (0.0, 1e-15, -1e-15):
        copy = X * (1 + error * rng.standard_normal(X.shape))
        glm = describe(
            scipy.sparse.csc_array(copy) if layout == "sparse" else copy, labels, "softmax",
            l1=1 / strength, sample_weight=np.ones(50), intercept=True, options={"classes": 8},
        )  # fmt: skip
        answer = solve_glm(glm, limits=Limits(1e-6, max_iter=20))
        assert answer.status.tolist() == [0]
        iterations.append(int(answer.iterations[0]))
    assert np.median(iterations) <= 12


def test_large_scores_of_tall_data_are_reached_in_few_working_sets():
    # Steps that move no score by more than 10 took 31 working sets here. Now one that is cut off
    # lets the next go further.
    rng = np.random.default_rng(14)
    X = rng.standard_normal((1500, 12)) + 3 * rng.standard_normal(12)
    labels = (X @ rng.standard_normal((12, 3)) + 0.02 * rng.gumbel(size=(1500, 3))).argmax(1)
    glm = describe(
        X, labels, "softmax", l1=2e-4, sample_weight=np.ones(1500), intercept=True,
        options={"classes": 3},
    )  # fmt: skip
    answer = solve_glm(glm, limits=Limits(1e-6, max_iter=12))
    assert answer.status.tolist() == [0]
