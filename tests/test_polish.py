"""The polish solves on the active set, honestly counted, and never makes a point worse."""

import numpy as np
import pytest
import scipy.sparse
import torch

import proxlearn as pl
from proxlearn.solving.polish import can_polish, polish
from proxlearn.training.families import NAMES

SIZES = {
    "gaussian-lasso": {"m": 60, "n": 120, "nonzeros": 12},
    "gaussian-elastic-net": {"m": 60, "n": 120, "nonzeros": 12},
    "gaussian-nnls": {"m": 60, "n": 40, "nonzeros": 10},
    "gaussian-box": {"m": 60, "n": 40, "nonzeros": 10},
    "gaussian-logistic": {"m": 150, "n": 30, "nonzeros": 8, "lam": 0.01},
    "gaussian-softmax": {"m": 150, "n": 12, "classes": 3, "nonzeros": 4, "lam": 0.01},
}


def problem(family, dtype=torch.float64):
    return NAMES[family](**SIZES[family]).sample(5, 2, dtype=dtype)


def iterate(p, steps):
    optimizer = pl.optimizers.get("fista-restart")
    state = optimizer.init(p, torch.zeros(p.batch, p.n, dtype=p.dtype))
    for _ in range(steps):
        state = optimizer.step(p, state)
    return state.x


@pytest.mark.slow
@pytest.mark.parametrize("family", SIZES)
def test_a_rough_point_becomes_exact(family):
    p = problem(family)
    x = iterate(p, 60)
    best = pl.solve(p, "fista-restart", tol=1e-12, max_iter=20_000, polish=False)
    assert best.solved
    found = polish(p, x, 1e-12)
    before = p.objective(x) - best.objective
    after = found.objective - best.objective
    assert (after.abs() <= 1e-10 * best.objective).all()
    assert before.max() > 1e-11 * best.objective.max()  # there was something to do
    assert (found.lower <= best.objective * (1 + 1e-12)).all()
    assert torch.allclose(p.objective(found.x), found.objective, rtol=1e-12)


@pytest.mark.parametrize("family", ["gaussian-group-lasso", "gaussian-simplex"])
def test_penalties_without_pieces_are_left_alone(family):
    sizes = {"m": 30, "n": 20, "nonzeros": 3}
    assert not can_polish(NAMES[family](**sizes).sample(2, 0))


@pytest.mark.slow
@pytest.mark.parametrize("family", SIZES)
def test_solve_with_and_without_agree(family):
    p = problem(family)
    with_it = pl.solve(p, "fista-restart", tol=1e-9, max_iter=20_000, engine="torch")
    without = pl.solve(p, "fista-restart", tol=1e-9, max_iter=20_000, polish=False)
    assert with_it.solved
    assert without.solved
    assert torch.allclose(with_it.objective, without.objective, rtol=3e-9)
    assert with_it.grad_evals.double().mean() < without.grad_evals.double().mean()


def test_float32_reaches_what_its_own_dual_point_cannot_certify():
    p = problem("gaussian-lasso", torch.float32)
    solution = pl.solve(p, "fista-restart", tol=1e-9, engine="torch")
    assert solution.solved
    assert solution.x.dtype == torch.float32
    exact = pl.solve(p.to(torch.float64), "fista-restart", tol=1e-13, max_iter=20_000)
    assert (solution.objective - exact.objective <= solution.gap + 1e-12).all()
    assert (solution.gap <= 1e-9 * solution.objective).all()


@pytest.mark.parametrize("kind", ["sparse", "operator"])
def test_sparse_and_matrix_free(kind):
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(80, 60)) * (rng.random((80, 60)) < 0.3)
    b = dense @ (rng.normal(size=60) * (rng.random(60) < 0.2))
    A = scipy.sparse.csr_matrix(dense)
    given = A if kind == "sparse" else scipy.sparse.linalg.aslinearoperator(A)
    problem = pl.lasso(given, b, lam=0.5)
    solution = pl.solve(problem, "fista-restart", tol=1e-9, engine="torch")
    reference = pl.solve(pl.lasso(dense, b, lam=0.5), "fista-restart", tol=1e-12, polish=False,
                         max_iter=20_000)  # fmt: skip
    assert solution.solved
    assert np.allclose(solution.x, reference.x, atol=1e-6)


def test_an_intercept_is_polished_with_the_rest():
    rng = np.random.default_rng(1)
    A = np.hstack([rng.normal(size=(80, 20)), np.ones((80, 1))])
    b = A[:, 0] * 2 + 5 + 0.1 * rng.normal(size=80)
    weights = np.r_[np.ones(20), 0.0]
    problem = pl.lasso(A, b, lam=1.0, weights=weights)
    solution = pl.solve(problem, tol=1e-10, engine="torch")
    assert solution.solved
    assert solution.x[-1] == pytest.approx(5, abs=0.2)


def test_the_paper_s_family_in_fifteen_gradients():
    p = pl.families.GaussianLasso().sample(16, 123)
    solution = pl.solve(p, "lasso", tol=1e-6, engine="torch")
    assert solution.solved
    assert solution.grad_evals.double().mean() <= 15
