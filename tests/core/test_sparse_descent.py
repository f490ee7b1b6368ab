"""Models on sparse columns, without a Hessian, and dense matrices that are read as sparse ones."""

import numpy as np
import pytest
import scipy.sparse as sp

from proxlearn.core import kernel
from proxlearn.core.glm import Limits, describe, path_glm, solve_glm

M, N = 240, 400


def design(seed=0, m=M, n=N, share=0.04):
    """A sparse matrix, targets, and labels 0 and 1."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((m, n), density=share, rng=rng, data_sampler=rng.standard_normal).tocsc()
    b = A @ (rng.standard_normal(n) * (rng.random(n) < 0.3)) + 0.3 * rng.standard_normal(m)
    return sp.csc_array(A), b, (b > np.median(b)).astype(float)


def target(loss, b, labels):
    if loss == "logistic":
        return labels
    return np.round(np.exp(np.clip(b, -2.0, 2.0))) if loss == "poisson" else b


@pytest.mark.parametrize("loss", ["squares", "logistic", "huber", "poisson"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    "numbers",
    [{}, {"l2": 0.05}, {"lower": 0.0}, {"lower": -0.2, "upper": 0.3}],
    ids=["l1", "elastic net", "non-negative", "box"],
)
def test_sparse_columns_have_the_minimum_of_dense_ones(loss, intercept, numbers):
    # The dense matrix with 1e-300 in place of 0 is solved by models with a Hessian.
    A, b, labels = design()
    dense = A.toarray()
    dense[dense == 0.0] = 1e-300
    options = {"delta": 0.5} if loss == "huber" else None
    found = []
    for matrix in (A, dense):
        glm = describe(
            matrix,
            target(loss, b, labels),
            loss,
            l1=0.15,
            intercept=intercept,
            **numbers,
            options=options,
        )
        found.append(solve_glm(glm, limits=Limits(1e-9)))
    sparse, full = found
    assert sparse.status.tolist() == full.status.tolist() == [0]
    assert abs(sparse.objective[0] - full.objective[0]) <= 3e-9 * full.objective[0]


def test_a_path_with_large_supports_is_a_sequence_of_single_solves():
    A, b, _ = design(1, 300, 900, 0.03)
    top = np.abs(A.T @ b).max()
    factors = top * np.geomspace(1.0, 0.003, 40)
    answer = path_glm(describe(A, b, "squares", l1=1.0), factors, limits=Limits(1e-8))
    assert (answer.status == 0).all()
    assert np.count_nonzero(answer.x[-1, 0]) > 200
    for k in (10, 39):
        alone = solve_glm(describe(A, b, "squares", l1=factors[k]), limits=Limits(1e-8))
        assert abs(alone.objective[0] - answer.objective[k, 0]) <= 2e-8 * alone.objective[0]


@pytest.mark.parametrize("tol", [1e-6, 1e-12])
@pytest.mark.parametrize("l2", [0.0, 0.05])
@pytest.mark.parametrize("options", [{}, {"intercept": True}, {"lower": 0.0}], ids=str)
def test_large_supports_are_solved_by_few_sweeps(tol, l2, options):
    # Rounding must not spoil accelerated steps near the minimiser: that took 500 sweeps.
    A, b, _ = design(5, 900, 600, 0.03)
    weights = np.random.default_rng(6).random(900) + 0.5
    lam = 0.003 * np.abs(A.T @ (weights * (b - b.mean()))).max()
    glm = describe(A, b + 1.0, "squares", l1=lam, l2=l2, sample_weight=weights, **options)
    answer = solve_glm(glm, limits=Limits(tol))
    assert answer.status.tolist() == [0]
    assert answer.iterations[0] <= 10
    assert np.count_nonzero(answer.x[0]) > 100

    residual = b + 1.0 - A @ answer.x[0] - answer.intercept[0]
    slope = A.T @ (weights * residual) - l2 * answer.x[0]
    off = answer.x[0] != 0.0
    assert np.abs(slope[off] - lam * np.sign(answer.x[0][off])).max() <= 1e3 * np.sqrt(tol) * lam
    value = 0.5 * np.sum(weights * residual**2) + lam * np.abs(answer.x[0]).sum()
    value += 0.5 * l2 * np.sum(answer.x[0] ** 2)
    assert abs(value - answer.objective[0]) <= 1e-12 * value


def test_empty_and_unpenalised_columns_are_no_obstacle_for_sweeps():
    A, b, _ = design(7, 500, 700, 0.03)
    A = sp.csc_array(sp.hstack([A, sp.csc_array((500, 5)), A[:, :3]]))
    lam = np.full(708, 0.003 * np.abs(A.T @ b).max())
    lam[:2] = 0.0
    answer = solve_glm(describe(A, b, "squares", l1=lam), limits=Limits(1e-9))
    assert answer.status.tolist() == [0]
    assert (answer.x[0, 700:705] == 0.0).all()


def test_nearly_separable_texts_are_solved():
    # Frequent words, and margins so large that the first models have steps that are no good.
    rng = np.random.default_rng(2)
    m, n = 400, 1200
    frequency = 1.0 / np.arange(1, n + 1)
    counts = rng.poisson(30 * frequency / frequency.sum(), size=(m, n))
    A = sp.csc_array(np.log1p(counts.astype(float)))
    labels = (A @ rng.standard_normal(n) > 0).astype(float)
    top = np.abs(A.T @ (labels - 0.5)).max()
    answer = solve_glm(describe(A, labels, "logistic", l1=1e-3 * top), limits=Limits(1e-8))
    assert answer.status.tolist() == [0]
    assert answer.gap[0] <= 1e-8 * answer.objective[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_rare_entries_are_those_of_the_matrix(dtype, order):
    A = np.array(design(3, share=0.02)[0].toarray(), dtype=dtype, order=order)
    A[:, -1], A[-1] = 0.0, 0.0
    values, rows, starts = kernel.rare_entries(A)
    count = starts[-1]
    assert count == np.count_nonzero(A)
    found = sp.csc_array((values[:count], rows[:count], starts), shape=A.shape)
    assert found.has_sorted_indices
    np.testing.assert_array_equal(found.toarray(), A)


def test_matrices_that_are_not_rare_stay_dense():
    A = design(4)[0].toarray()
    assert kernel.rare_entries(A[:20]) is None  # small
    assert kernel.rare_entries(np.zeros_like(A)) is None
    assert kernel.rare_entries(A + 1.0) is None
    assert kernel.rare_entries(A[::2]) is None  # not in one piece
    half = A.copy()
    half[:, : N // 4] = 1.0
    assert kernel.rare_entries(half) is None


def test_a_dense_matrix_with_rare_entries_has_the_answer_of_the_sparse_one():
    A, _, labels = design(5)
    answers = [
        solve_glm(describe(X, labels, "logistic", l1=0.2, intercept=True))
        for X in (A, A.toarray(), np.asfortranarray(A.toarray()))
    ]
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer.x, answers[0].x)
