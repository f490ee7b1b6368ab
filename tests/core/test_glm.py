"""The core's answers against other solvers, its certificates, and that all its ways agree."""

import os
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import nnls
from sklearn.linear_model import ElasticNet, LogisticRegression

from proxlearn.core import kernel
from proxlearn.core.glm import Limits, Part, describe, path_glm, solve_glm
from proxlearn.core.reduction import reduction, weighted_gram
from versions import MIXED

LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "sparse": lambda X: scipy.sparse.csr_array(np.where(np.abs(X) > 0.7, X, 0.0)),
    "float32": lambda X: X.astype(np.float32),
}


def draw(seed, m, n, mean=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n)) + mean * rng.standard_normal(n)
    return X, rng.standard_normal(m) + 2.0, rng.random(m) + 0.1


def dense(X):
    return (X.toarray() if scipy.sparse.issparse(X) else X).astype(np.float64)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("m", "n", "l2", "positive"), [(30, 8, 0.0, False), (12, 40, 0.5, False), (20, 20, 0.0, True)]
)
def test_least_squares_agrees_with_scikit_learn(layout, m, n, l2, positive):
    X, y, w = draw(m + n, m, n)
    A = LAYOUTS[layout](X)
    lam = 0.05 * np.abs(X.T @ (w * (y - np.average(y, weights=w)))).max()
    glm = describe(
        A, y, "squares", l1=lam, l2=l2, lower=0.0 if positive else -np.inf,
        sample_weight=w, intercept=True,
    )  # fmt: skip
    answer = solve_glm(glm, limits=Limits(1e-6 if layout == "float32" else 1e-11))
    total = w.sum()
    reference = ElasticNet(
        (lam + l2) / total, l1_ratio=lam / (lam + l2), positive=positive, tol=1e-14, max_iter=10**6
    ).fit(dense(A), y, sample_weight=w)
    accuracy = 1e-3 if layout == "float32" else 1e-6
    assert answer.status.tolist() == [0]
    np.testing.assert_allclose(answer.x[0], reference.coef_, atol=accuracy)
    np.testing.assert_allclose(answer.intercept[0], reference.intercept_, atol=10 * accuracy)
    assert answer.x.dtype == (np.float32 if layout == "float32" else np.float64)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("intercept", [True, False])
def test_logistic_is_certified_and_not_beaten(layout, intercept):
    X, _, _ = draw(3, 40, 15)
    A, labels = LAYOUTS[layout](X), (np.arange(40) % 3 == 0).astype(float)
    lam = 0.02
    answer = solve_glm(describe(A, labels, "logistic", l1=lam, intercept=intercept))
    model = LogisticRegression(
        l1_ratio=1.0, **MIXED, solver="saga", C=1 / (lam * 40), fit_intercept=intercept, tol=1e-7,
        max_iter=20_000,
    ).fit(dense(A) - dense(A).mean(0) * intercept, labels)  # fmt: skip

    def F(x, c):
        z = dense(A) @ x + c
        return np.logaddexp(0, -(2 * labels - 1) * z).mean() + lam * np.abs(x).sum()

    coef = model.coef_[0]
    theirs = F(coef, model.intercept_[0] - dense(A).mean(0) @ coef * intercept)
    assert answer.status.tolist() == [0]
    assert F(answer.x[0].astype(float), answer.intercept[0]) == pytest.approx(
        answer.objective[0], rel=1e-9
    )
    assert answer.objective[0] - answer.gap[0] <= theirs * (1 + 1e-12)
    assert answer.gap[0] <= 1e-6 * answer.objective[0]


@pytest.mark.parametrize("seed", range(6))
def test_non_negative_least_squares_has_a_gap(seed):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(5, 30, 2)
    A = rng.random((m, n)) if seed % 2 else rng.standard_normal((m, n))
    b = rng.standard_normal(m)
    answer = solve_glm(describe(A, b, "squares", lower=0.0))
    best = 0.5 * nnls(A, b)[1] ** 2
    assert answer.status.tolist() == [0]
    assert answer.objective[0] <= best + answer.gap[0] + 1e-12
    assert answer.gap[0] <= max(1e-6 * answer.objective[0], 1e-15 * (b @ b))
    assert (answer.x >= 0).all()


def test_no_gap_where_the_dual_has_no_interior():
    # The columns c and -c: the dual cone is a plane, and no direction leads into it. For one pair
    # the residual can be orthogonal to the last bit, and then the gap is known; for five it is not.
    rng = np.random.default_rng(3)
    C = rng.standard_normal((9, 5))
    answer = solve_glm(describe(np.hstack([C, -C]), rng.standard_normal(9), "squares", lower=0.0))
    assert answer.status.tolist() == [0]
    assert np.isinf(answer.gap[0])


def test_a_box_holds_coordinates_at_both_bounds():
    X, y, _ = draw(5, 25, 10, mean=0.0)
    answer = solve_glm(describe(X, 5 * y, "squares", lower=-0.3, upper=0.5), limits=Limits(1e-9))
    x = answer.x[0]
    gradient = X.T @ (X @ x - 5 * y)
    assert answer.status.tolist() == [0]
    assert (gradient[x == 0.5] <= 1e-6).all()
    assert (gradient[x == -0.3] >= -1e-6).all()
    assert np.abs(gradient[(x > -0.3) & (x < 0.5)]).max(initial=0.0) < 1e-5
    assert ((x == 0.5) | (x == -0.3)).any()


def test_bounds_that_exclude_zero():
    X, y, _ = draw(6, 20, 6, mean=0.0)
    answer = solve_glm(describe(X, y, "squares", l1=0.5, lower=1.0, upper=2.0))
    assert answer.status.tolist() == [0]
    assert ((answer.x >= 1) & (answer.x <= 2)).all()


def test_unpenalised_columns():
    X, y, _ = draw(7, 30, 12, mean=0.0)
    l1 = np.full(12, 3.0)
    l1[[2, 5]] = 0.0
    answer = solve_glm(describe(X, y, "squares", l1=l1), limits=Limits(1e-10))
    residual = y - X @ answer.x[0]
    assert answer.status.tolist() == [0]
    assert np.abs(X[:, [2, 5]].T @ residual).max() < 1e-6
    assert np.abs(X.T @ residual).max() <= 3.0 * (1 + 1e-6)


@pytest.mark.parametrize("shape", [(30, 8), (8, 30)])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_batch_gives_each_problem_its_own_answer(shape, intercept):
    X, _, _ = draw(8, *shape)
    Y = np.random.default_rng(0).standard_normal((20, shape[0])) + 1.0
    options = {"l1": 1.5, "l2": 0.1, "intercept": intercept}
    batch = solve_glm(describe(X, Y, "squares", **options), limits=Limits(1e-10))
    threads = solve_glm(describe(X, Y, "squares", **options), limits=Limits(1e-10), threads=3)
    for field in ("x", "intercept", "objective", "gap", "status"):
        np.testing.assert_array_equal(getattr(batch, field), getattr(threads, field))
    for i, y in enumerate(Y):
        alone = solve_glm(describe(X, y, "squares", **options), limits=Limits(1e-10))
        np.testing.assert_allclose(batch.x[i], alone.x[0], atol=1e-7)
        np.testing.assert_allclose(batch.intercept[i], alone.intercept[0], atol=1e-7)
    assert not batch.status.any()


@pytest.mark.parametrize("loss", ["squares", "logistic"])
@pytest.mark.parametrize("shape", [(40, 10), (15, 60)])
def test_a_path_is_a_sequence_of_single_solves(loss, shape):
    X, y, _ = draw(9, *shape)
    b = (y > np.median(y)).astype(float) if loss == "logistic" else y
    glm = describe(X, b, loss, l1=1.0 if loss == "squares" else 0.01, l2=0.01)
    factors = np.geomspace(20.0, 0.1, 15)
    for factor, answer in zip(factors, path_glm(glm, factors), strict=True):
        single = describe(X, b, loss, l1=factor * glm.l1, l2=factor * glm.l2)
        alone = solve_glm(single)
        assert answer.status.tolist() == [0]
        assert answer.objective[0] == pytest.approx(alone.objective[0], rel=2e-6)


def test_a_reduced_problem_has_the_same_objective():
    X, y, w = draw(10, 50, 6)
    mean = (w / w.sum()) @ X
    reduced = reduction(X, w, mean)
    assert reduced is not None
    d, offset, size = reduced.targets(y[None])
    x = np.random.default_rng(1).standard_normal(6)
    direct = 0.5 * (w * (y - (X - mean) @ x) ** 2).sum()
    assert 0.5 * ((reduced.R @ x - d[0]) ** 2).sum() + offset[0] == pytest.approx(direct, rel=1e-12)
    assert size[0] == pytest.approx(np.sqrt((w * y**2).sum()))
    np.testing.assert_allclose(reduced.gram, (w[:, None] * (X - mean)).T @ (X - mean), rtol=1e-10)
    np.testing.assert_allclose(
        weighted_gram(X.astype(np.float32), w, mean), reduced.gram, rtol=1e-4
    )


def test_dependent_columns_are_not_reduced():
    X, _, w = draw(11, 30, 5)
    assert reduction(np.column_stack([X, X[:, 0]]), w, None) is None


@pytest.mark.parametrize("scale", [1e-150, 1e-85, 1e100, 1e150])
@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_units_do_not_matter(scale, l2):
    X, y, _ = draw(12, 20, 30, mean=0.0)
    lam = 0.1 * np.abs(X.T @ y).max()
    plain = solve_glm(describe(X, y, "squares", l1=lam, l2=l2))
    # b and lam in other units, then A in others; the answers are in theirs.
    scaled = solve_glm(describe(X, scale * y, "squares", l1=scale * lam, l2=l2))
    np.testing.assert_allclose(scaled.x / scale, plain.x, rtol=1e-6, atol=1e-12)
    assert scaled.status.tolist() == [0]
    if l2 == 0:
        columns = scale ** np.linspace(-1, 1, 30)
        other = solve_glm(describe(X * columns, y, "squares", l1=lam * columns))
        np.testing.assert_allclose(other.x * columns, plain.x, rtol=1e-6, atol=1e-12)
        assert other.status.tolist() == [0]


def test_the_largest_numbers_of_float64():
    """Their power of two used to overflow: the answer was 0, SOLVED with a gap of 0."""
    X, y, _ = draw(12, 20, 3, mean=0.0)
    X *= np.finfo(float).max / np.abs(X).max()
    answer = solve_glm(describe(X, y, "squares", l1=1.0))
    least = np.linalg.lstsq(X / 2.0**1000, y)[0]  # the penalty vanishes beside such columns
    np.testing.assert_allclose(answer.x[0] * 2.0**1000, least, rtol=1e-6)


def test_exact_fits_and_zero_targets_end_solved():
    X, _, _ = draw(13, 12, 5, mean=0.0)
    x = np.abs(np.random.default_rng(0).standard_normal(5))
    for b in (X @ x, np.zeros(12), np.full(12, 1e-310)):
        answer = solve_glm(describe(X, b, "squares", lower=0.0))
        assert answer.status.tolist() == [0]


def test_degenerate_shapes():
    for m, n in [(1, 1), (1, 7), (7, 1)]:
        X, y, _ = draw(m + 2 * n, m, n)
        assert solve_glm(describe(X, y, "squares", l1=0.1)).status.tolist() == [0]
    zero = describe(np.zeros((4, 3)), np.ones(4), "squares", l1=0.1)
    assert solve_glm(zero).x.tolist() == [[0.0, 0.0, 0.0]]
    X, y, _ = draw(14, 10, 3)
    doubled = solve_glm(describe(np.hstack([X, X, X]), y, "squares", l1=0.1))
    assert doubled.status.tolist() == [0]


def test_limits_are_kept():
    X, y, _ = draw(15, 60, 200)
    glm = describe(X, y, "squares", l1=0.01)
    answer = solve_glm(glm, limits=Limits(1e-12, max_iter=2))
    assert answer.status.tolist() == [1]
    assert answer.iterations.tolist() == [2]
    assert solve_glm(glm, limits=Limits(1e-12, seconds=0.0)).status.tolist() == [2]


def test_a_warm_start_at_the_solution_costs_two_passes():
    X, y, _ = draw(16, 50, 120)
    glm = describe(X, y, "squares", l1=5.0)
    cold = solve_glm(glm)
    warm = solve_glm(glm, x0=cold.x)
    assert warm.passes[0] <= 2
    np.testing.assert_allclose(warm.x, cold.x, atol=1e-9)


def test_the_callers_arrays_stay_as_they_are():
    X, y, w = draw(17, 15, 10)
    for array in (X, y, w):
        array.flags.writeable = False
    before = X.copy(), y.copy(), w.copy()
    solve_glm(describe(X, y, "squares", l1=0.5, sample_weight=w, intercept=True))
    for array, copy in zip((X, y, w), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_nan_is_seen_in_one_pass():
    X = np.ones((5, 4))
    assert kernel.largest_magnitude(X) == 1.0
    for bad in (np.nan, np.inf, -np.inf):
        X[2, 1] = bad
        assert np.isnan(kernel.largest_magnitude(X))
        assert np.isnan(kernel.largest_magnitude(X.astype(np.float32)))


@pytest.fixture
def interruptible():
    """Raise KeyboardInterrupt at SIGINT also in a job in the background, whose shell ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_a_long_solve():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((800, 4000))
    y = rng.standard_normal(800)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    began = time.perf_counter()

    def solve_again_and_again():
        while time.perf_counter() - began < 30:
            solve_glm(describe(X, y, "squares", l1=1e-3), limits=Limits(1e-12))

    with pytest.raises(KeyboardInterrupt):
        solve_again_and_again()
    assert time.perf_counter() - began < 20
    assert solve_glm(describe(X[:50, :20], y[:50], "squares", l1=1.0)).status.tolist() == [0]


def divided(glm_of, count, size):
    """The answers of parts of `size` problems, put together; a part of one is solved twice."""
    parts, kept = [], {}
    for first in range(0, count, size):
        rows = np.arange(first, min(first + size, count))
        pair = rows if len(rows) > 1 else np.repeat(rows, 2)
        answer = solve_glm(glm_of(pair), part=Part(count, kept))
        parts.append([getattr(answer, name)[: len(rows)] for name in FIELDS])
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


FIELDS = ("x", "objective", "gap", "status", "iterations")
DIVIDED = {
    "lasso, Gram matrix": (20, 40, {}),
    "lasso, supports of many sizes": (64, 128, {"l1": 2.0}),
    "lasso, reduced": (120, 30, {}),
    "reduced, intercept": (120, 30, {"intercept": True}),
    "reduced, float32": (120, 30, {"dtype": np.float32}),
    "penalties of their own": (120, 30, {"own": "l1"}),
    "matrices of their own": (20, 40, {"own": "A"}),
    "non-negative": (64, 128, {"l1": 0.0, "lower": 0.0}),
    "logistic": (30, 60, {"loss": "logistic", "l1": 0.02}),
    "sparse": (30, 60, {"sparse": True, "l1": 0.5}),
}


@pytest.mark.parametrize("case", DIVIDED)
def test_answers_do_not_depend_on_how_the_problems_are_divided(case):
    m, n, options = DIVIDED[case]
    options = {"loss": "squares", "l1": 8.0, **options}
    own, count, rng = options.pop("own", ""), 61, np.random.default_rng(5)
    A = rng.standard_normal((count, m, n) if own == "A" else (m, n))
    b = rng.standard_normal((count, m))
    if own == "A":
        A[7] *= 1e90  # which must not change how the others are solved
        A[20] *= 1e-90
    if options.pop("sparse", False):
        A = scipy.sparse.csc_array(np.where(np.abs(A) > 1.2, A, 0.0))
    A = A.astype(options.pop("dtype", np.float64))
    l1 = options.pop("l1")
    if own == "l1":
        l1 = l1 * rng.uniform(0.5, 2.0, (count, 1)) * np.ones(n)
        l1[9, 3] = 0.0
    if options["loss"] == "logistic":
        b = (b > 0).astype(float)
    elif not own and A.dtype == np.float64:
        b[11] *= 1e90
        b[30] *= 1e-80

    def glm_of(rows):
        A_of, l1_of = (v[rows] if own == name else v for name, v in (("A", A), ("l1", l1)))
        return describe(A_of, b[rows], l1=l1_of, **options)

    whole = divided(glm_of, count, count)
    for size in (1, 7, 32):
        for one, other in zip(whole, divided(glm_of, count, size), strict=True):
            np.testing.assert_array_equal(one, other)
    assert np.mean(whole[3] == 0) > 0.9


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "penalty", [{}, {"l2": 0.3}, {"lower": 0.0}, {"lower": -0.2, "upper": 0.1}]
)
def test_large_supports_of_sparse_columns(intercept, weighted, penalty):
    """Coordinate descent on the residual solves them, and agrees with the dense model."""
    rng = np.random.default_rng(3)
    A = scipy.sparse.random(300, 900, density=0.01, random_state=3, format="csc")
    b = rng.standard_normal(300)
    options = {
        "l1": 0.2, "intercept": intercept, **penalty,
        "sample_weight": rng.uniform(0.5, 2.0, 300) if weighted else None,
    }  # fmt: skip
    sparse = solve_glm(describe(A, b, "squares", **options), limits=Limits(1e-9))
    dense = solve_glm(describe(A.toarray(), b, "squares", **options), limits=Limits(1e-9))
    assert (sparse.x != 0).sum() > 60
    assert sparse.status.tolist() == dense.status.tolist() == [0]
    assert sparse.objective[0] == pytest.approx(dense.objective[0], rel=2e-9)


@pytest.mark.parametrize("loss", ["logistic", "huber", "poisson"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "penalty", [{}, {"l2": 2e-6}, {"lower": 0.0}, {"lower": -0.5, "upper": 0.5}]
)
def test_large_supports_of_sparse_columns_for_losses_that_are_not_quadratic(
    loss, intercept, weighted, penalty
):
    """Sweeps over the columns solve the second-order models, and agree with the dense model."""
    rng = np.random.default_rng(4)
    A = scipy.sparse.random(400, 900, density=0.01, random_state=4, format="csc")
    z = A @ rng.standard_normal(900)
    b = {
        "logistic": lambda: (z + 0.3 * rng.standard_normal(400) > 0).astype(float),
        "huber": lambda: z + rng.standard_t(2, 400),
        "poisson": lambda: rng.poisson(np.exp(z)).astype(float),
    }[loss]()
    size = 1.0 if loss == "huber" else 1 / 400
    options = {
        "l1": 0.03 * size, "intercept": intercept, **penalty,
        "sample_weight": size * rng.uniform(0.5, 2.0, 400) if weighted else None,
        "options": {"delta": 0.7} if loss == "huber" else None,
    }  # fmt: skip
    sparse = solve_glm(describe(A, b, loss, **options), limits=Limits(1e-9))
    dense = solve_glm(describe(A.toarray(), b, loss, **options), limits=Limits(1e-9))
    support = (sparse.x[0, :900] != 0).nonzero()[0]
    assert len(support) ** 2 > 8 * A[:, support].nnz
    assert sparse.status.tolist() == dense.status.tolist() == [0]
    assert sparse.objective[0] == pytest.approx(dense.objective[0], rel=2e-9)


@pytest.mark.parametrize(
    "penalty", [{}, {"l2": 1e-3}, {"lower": 0.0}, {"lower": -0.5, "upper": 1.0}]
)
def test_dependent_columns_and_a_small_penalty(penalty):
    """Columns of nearly rank 20; sweeps and Newton steps alone need over 1,000 working sets."""
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((100, 20)), rng.standard_normal((20, 400))
    A = factors[0] @ factors[1] + 0.1 * rng.standard_normal((100, 400))
    b = rng.standard_normal(100)
    l1 = 1e-3 * np.abs(A.T @ b).max()
    answer = solve_glm(describe(A, b, "squares", l1=l1, **penalty), limits=Limits(1e-9))
    assert answer.status.tolist() == [0]
    assert answer.gap[0] <= 1e-9 * answer.objective[0]
    assert answer.iterations[0] < 50


@pytest.mark.parametrize("seed", range(8))
def test_dependent_columns_without_an_l1_penalty(seed):
    """Along a direction with A d = 0 the model neither falls nor rises, and no step is taken."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 12))
    A -= A.mean(0)
    b = rng.standard_normal(40)
    answer = solve_glm(describe(A, b, "squares", lower=0.0), limits=Limits(1e-9))
    assert answer.status.tolist() == [0]
    assert np.abs(answer.x).max() < 1e3
    best = 0.5 * nnls(A, b)[1] ** 2
    assert answer.objective[0] == pytest.approx(best, rel=1e-8)
