"""Where the active set does not settle, the polish goes on from attempt to attempt."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer

import proxlearn as pl
from proxlearn.solving.polish import polish


def tiny_lam(count):
    """LASSO 20x40 with lam at 0.3% of lam_max."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(count, 20, 40))
    truth = rng.normal(size=(count, 40)) * (rng.random((count, 40)) < 0.2)
    b = np.einsum("bmn,bn->bm", A, truth) + 0.1 * rng.normal(size=(count, 20))
    return pl.lasso(A, b, 0.1)


def breast_cancer(lam, scale):
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(0)) / (X.std(0) if scale else X.std())
    return pl.logistic(X, y, lam)


@pytest.mark.slow
def test_a_tiny_lam_is_solved_in_a_thousand_iterations():
    assert pl.solve(tiny_lam(100), max_iter=1000, engine="torch").solved


@pytest.mark.parametrize(
    ("lam", "scale", "most"),
    [
        (2e-3, True, 400),
        pytest.param(2e-5, True, 1200, marks=pytest.mark.slow),
        (2e-4, False, 700),
    ],
)
def test_logistic_regression_with_little_penalty(lam, scale, most):
    solution = pl.solve(breast_cancer(lam, scale), max_iter=1000, engine="torch")
    assert solution.solved
    assert solution.grad_evals.item() <= most


@pytest.mark.parametrize(
    "problem", [tiny_lam(20), breast_cancer(2e-5, True)], ids=["lasso", "logistic"]
)
def test_from_zero_it_is_a_method_of_its_own(problem):
    first = problem.f.grad(torch.zeros(problem.batch, problem.n).double()).abs().argmax(-1)
    x = torch.zeros(problem.batch, problem.n).double().scatter(1, first[:, None], 1e-6)
    found = polish(problem, x, 1e-8)
    assert (found.objective <= problem.objective(x)).all()
    solved = found.objective - found.lower <= 1e-8 * found.objective
    assert solved.double().mean() >= 0.9


def test_attempts_cost_a_bounded_share():
    solution = pl.solve(breast_cancer(2e-5, True), max_iter=150, engine="torch")
    assert not solution.solved
    # Half of the iterations and 3 more, and what the last attempt was overdrawn by: a few systems.
    assert solution.grad_evals.item() <= 1.5 * 150 + 3 + 40


def test_a_solve_that_runs_out_returns_the_better_point_of_the_polish():
    problem = breast_cancer(2e-5, True)
    with_it = pl.solve(problem, max_iter=150, engine="torch")
    without = pl.solve(problem, max_iter=150, polish=False)
    assert with_it.objective < 0.99 * without.objective
