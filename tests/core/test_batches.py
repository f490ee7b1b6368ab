"""Many problems that share A: the active-set method and what it proves."""

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import nnls

from proxlearn.core.glm import Limits, Part, describe, solve_glm
from proxlearn.core.penalty_kinds import Simplex
from proxlearn.core.shared_matrix import compiled, prepared

INF = np.inf


def drawn(m, n, B, seed=0, noise=0.3, positive=False):
    rng = np.random.default_rng(seed)
    A = rng.random((m, n)) if positive else rng.standard_normal((m, n))
    x = np.maximum(rng.standard_normal((B, n)), 0) * (rng.random((B, n)) < 0.5)
    return A, x @ A.T + noise * rng.standard_normal((B, m))


PENALTIES = {
    "l1": {"l1": 2.0},
    "weighted l1": {"l1": np.linspace(0.5, 4.0, 20)},
    "elastic net": {"l1": 1.0, "l2": 0.5},
    "non-negative": {"lower": 0.0},
    "non-negative l1": {"l1": 1.0, "lower": 0.0},
    "mixed signs": {"l1": 1.0, "lower": np.where(np.arange(20) % 2, 0.0, -INF)},
    "non-negative l2": {"l2": np.where(np.arange(20) % 2, 0.5, 0.0), "lower": 0.0},
}


def value(A, b, x, l1=0.0, l2=0.0, **_):
    return 0.5 * np.square(x @ A.T - b).sum(1) + (l1 * np.abs(x) + 0.5 * l2 * x * x).sum(1)


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("shape", [(60, 20), (12, 20)])
def test_a_batch_has_the_answers_of_its_problems_solved_alone(name, shape):
    A, b = drawn(*shape, 40, positive=True)
    penalty = PENALTIES[name]
    together = solve_glm(describe(A, b, "squares", **penalty), limits=Limits(tol=1e-9))
    assert (together.status == 0).all()
    F = value(A, b, together.x, **penalty)
    np.testing.assert_allclose(F, together.objective, rtol=1e-12)
    for i in range(len(b)):
        alone = solve_glm(describe(A, b[i], "squares", **penalty), limits=Limits(tol=1e-9))
        assert together.objective[i] - together.gap[i] <= alone.objective[0] * (1 + 1e-13)
        assert abs(together.objective[i] - alone.objective[0]) <= 2e-9 * alone.objective[0] + 1e-13


@pytest.mark.parametrize("name", ["l1", "non-negative", "elastic net"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_bits_depend_neither_on_threads_nor_on_how_a_batch_is_cut(name, dtype, weighted):
    A, b = drawn(30, 20, 700, positive=True)
    A = A.astype(dtype)
    extra = {"sample_weight": np.linspace(0.5, 2.0, 30), "intercept": True} if weighted else {}

    def solved(rows, threads=1):
        glm = describe(A, b[rows], "squares", **PENALTIES[name], **extra)
        return solve_glm(glm, threads=threads, part=Part(len(b)))

    whole = solved(slice(None))
    parts = [solved(slice(first, first + 53)) for first in range(0, len(b), 53)]
    for threads in (2, 3):
        again = solved(slice(None), threads)
        for field in ("x", "intercept", "objective", "gap", "status", "iterations"):
            np.testing.assert_array_equal(getattr(again, field), getattr(whole, field))
    for field in ("x", "intercept", "objective", "gap", "status", "iterations"):
        joined = np.concatenate([getattr(part, field) for part in parts])
        np.testing.assert_array_equal(joined, getattr(whole, field))


def test_non_negative_answers_are_those_of_scipy():
    for m, n, positive in [(100, 30, True), (30, 60, True), (100, 30, False)]:
        A, b = drawn(m, n, 30, positive=positive)
        found = solve_glm(describe(A, b, "squares", lower=0.0), limits=Limits(tol=1e-9))
        F = [0.5 * nnls(A, row)[1] ** 2 for row in b]
        np.testing.assert_allclose(found.objective, F, rtol=1e-8, atol=1e-12 * (b**2).sum())


@pytest.mark.parametrize("lower", [0.0, -INF])
def test_dependent_and_empty_columns(lower):
    A, b = drawn(15, 6, 20, positive=True)
    A = np.hstack([A, A[:, :3], np.zeros((15, 2)), 2 * A[:, 3:]])
    l1 = 0.0 if lower == 0.0 else 0.5
    found = solve_glm(describe(A, b, "squares", l1=l1, lower=lower), limits=Limits(tol=1e-8))
    best = solve_glm(describe(A[:, :6], b, "squares", l1=l1, lower=lower), limits=Limits(tol=1e-9))
    assert (found.status == 0).all()
    if l1 == 0.0:  # with l1 a longer column costs less
        np.testing.assert_allclose(found.objective, best.objective, rtol=1e-7)


def test_exact_fits_and_zero_targets_are_solved():
    A, _ = drawn(40, 10, 1, positive=True)
    x = np.abs(np.random.default_rng(1).standard_normal((20, 10)))
    b = np.vstack([x @ A.T, np.zeros((2, 40))])
    found = solve_glm(describe(A, b, "squares", lower=0.0))
    assert (found.status == 0).all()
    np.testing.assert_allclose(found.x[:20], x, rtol=1e-6)
    assert (found.x[20:] == 0).all()


def test_targets_and_columns_of_very_different_sizes():
    A, b = drawn(40, 10, 30, positive=True)
    sizes = 10.0 ** np.linspace(-12, 12, 30)
    columns = 10.0 ** np.linspace(-6, 6, 10)
    found = solve_glm(describe(A * columns, b * sizes[:, None], "squares", lower=0.0))
    plain = solve_glm(describe(A, b, "squares", lower=0.0))
    assert (found.status == 0).all()
    np.testing.assert_allclose(found.objective / sizes**2, plain.objective, rtol=1e-6)


def test_limits_are_kept():
    A, b = drawn(30, 60, 50, positive=True)
    glm = describe(A, b, "squares", lower=0.0)
    few = solve_glm(glm, limits=Limits(tol=1e-9, max_iter=2))
    assert (few.iterations <= 2).all()
    assert (few.gap[few.status == 0] <= 1e-9 * few.objective[few.status == 0]).all()
    late = solve_glm(glm, limits=Limits(seconds=0.0))
    assert set(late.status.tolist()) <= {0, 2}


def test_sums_of_the_product_do_not_depend_on_the_neighbours():
    A, b = drawn(33, 21, 19)
    solver = compiled(prepared(A, None, (1.0, 0.0, -INF, INF), None, 1e-6), 1e-6)
    x, numbers = np.empty((19, 21)), np.empty((19, 5))
    solver.solve(b, x, numbers, False, 100, INF)
    for i in range(19):
        y, more = np.empty((1, 21)), np.empty((1, 5))
        solver.solve(b[i : i + 1], y, more, False, 100, INF)
        np.testing.assert_array_equal(y[0], x[i])
        np.testing.assert_array_equal(more[0], numbers[i])


@pytest.mark.parametrize("slack", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_simplex_batches_have_the_bits_of_their_parts_and_the_answers_of_single_solves(
    slack, dtype
):
    A, b = drawn(30, 8, 60, positive=True)
    A = A.astype(dtype)

    def solved(rows, threads=1):
        glm = describe(A, b[rows], "squares", level=1.5, simplex=Simplex(slack))
        return solve_glm(glm, threads=threads, part=Part(len(b)))

    whole = solved(slice(None))
    assert (whole.status == 0).all()
    sums = whole.x.sum(1, dtype=np.float64)
    assert (sums <= 1.5 * (1 + 1e-7)).all()
    assert slack or (sums >= 1.5 * (1 - 1e-7)).all()
    np.testing.assert_array_equal(solved(slice(None), 2).x, whole.x)
    parts = np.concatenate([solved(slice(i, i + 7)).x for i in range(0, 60, 7)])
    np.testing.assert_array_equal(parts, whole.x)
    for i in range(10):
        alone = solve_glm(describe(A, b[i], "squares", level=1.5, simplex=Simplex(slack)))
        np.testing.assert_allclose(whole.objective[i], alone.objective[0], rtol=2e-6)


def test_simplex_problems_with_many_columns_use_working_sets():
    A, b = drawn(40, 1500, 1, positive=True)
    for data in (A, scipy.sparse.csc_array(A * (A > 0.5))):
        found = solve_glm(describe(data, b, "squares", level=2.0, simplex=Simplex()))
        assert found.status.tolist() == [0]
        c = data.T @ (b[0] - data @ found.x[0])
        gap = 2.0 * c.max() - c @ found.x[0]
        assert gap <= 2e-6 * found.objective[0]


def test_equal_numbers_for_each_problem_are_one_number_for_all():
    random = np.random.default_rng(3)
    A, b = random.standard_normal((20, 30)), random.standard_normal((6, 20))
    each = describe(A, b, "squares", l1=np.full((6, 1), 2.0) * np.ones(30))
    once = describe(A, b, "squares", l1=2.0)
    assert len(each.condensed().l1) == 1
    np.testing.assert_array_equal(solve_glm(each).x, solve_glm(once).x)
    differing = describe(A, b, "squares", l1=np.arange(1.0, 7.0)[:, None] * np.ones(30))
    assert len(differing.condensed().l1) == 6


def test_gaps_count_the_rounding_of_the_gram_matrix():
    """F is far below b'b/2 here, so that a value from the Gram matrix alone proves little."""
    random = np.random.default_rng(5)
    A, x = random.standard_normal((40, 25)), 1e3 * random.standard_normal((30, 25))
    b, l1 = x @ A.T, 1e-6
    found = solve_glm(describe(A, b, "squares", l1=l1), limits=Limits(tol=1e-4))
    assert (found.status == 0).all()
    F = value(*(a.astype(np.longdouble) for a in (A, b, found.x)), l1=l1)
    assert (np.abs(F - found.objective) <= found.gap + 1e-12 * F).all()
    assert (found.gap <= 1e-4 * found.objective + 1e-15 * np.square(b).sum(1)).all()


@pytest.mark.parametrize("lower", [-INF, 0.0])
def test_near_copies_of_columns_do_not_mislead_the_greedy_start(lower):
    A, b = drawn(40, 12, 50)
    random = np.random.default_rng(6)
    A = np.hstack([A, A * (1 + 1e-9 * random.standard_normal(A.shape)), A])
    found = solve_glm(describe(A, b, "squares", l1=0.01, lower=lower), limits=Limits(tol=1e-8))
    best = solve_glm(
        describe(A[:, :12], b, "squares", l1=0.01, lower=lower), limits=Limits(tol=1e-9)
    )
    assert (found.status == 0).all()
    assert (found.objective - found.gap <= best.objective).all()
    assert (found.objective <= best.objective * (1 + 2e-8)).all()
