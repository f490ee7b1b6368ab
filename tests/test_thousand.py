"""A thousand random instances: the gap is never below the true suboptimality, by other solvers."""

import warnings

import celer
import cvxpy
import numpy as np
import pytest
import scipy.optimize
import torch
from sklearn.linear_model import ElasticNet

import proxlearn as pl
from tensor_answers import solve

pytestmark = pytest.mark.slow

M, N = 15, 25


def draw(count, seed, rows=M, columns=N):
    """Designs between independent and nearly collinear, on scales over four decades."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(count, rows, 1))
    A = rng.normal(size=(count, rows, columns)) + rng.uniform(0, 5, size=(count, 1, 1)) * common
    A *= 10 ** rng.uniform(-2, 2, size=(count, 1, 1))
    truth = rng.normal(size=(count, columns)) * (rng.random((count, columns)) < 0.2)
    truth[:, 0] += 1
    b = np.einsum("bmn,bn->bm", A, truth)
    b += 0.1 * np.abs(b).mean(1, keepdims=True) * rng.normal(size=b.shape)
    lam_max = np.abs(np.einsum("bmn,bm->bn", A, b)).max(1)
    return A, b, lam_max * 10 ** rng.uniform(-2.5, 0.1, size=count)


def check(problem, other, optimizer, tol=1e-7):
    """Every SOLVED is true, and F - gap is a lower bound on what anyone has found."""
    solution = solve(problem, optimizer, tol=tol, max_iter=3000)
    found = problem.objective(torch.as_tensor(np.stack(other)))
    rounding = 1e-12 * found.abs() + 1e-300
    assert (solution.objective - solution.gap <= found + rounding).all()
    solved = torch.tensor([s == pl.Status.SOLVED for s in solution.status])
    assert solved.double().mean() > 0.95
    assert (solution.objective - found <= tol * found.abs() + rounding)[solved].all()
    return solution


def test_four_hundred_lassos_against_celer():
    A, b, lam = draw(400, 0)
    answers = []
    for Ai, bi, li in zip(A, b, lam, strict=True):
        model = celer.Lasso(alpha=li / M, fit_intercept=False, tol=1e-12, max_iter=500)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answers.append(model.fit(Ai, bi).coef_)
    for optimizer in ("auto", "fista-restart"):
        check(pl.lasso(A, b, lam), answers, optimizer)


def test_three_hundred_elastic_nets_against_scikit_learn():
    A, b, lam = draw(300, 1)
    answers = []
    for Ai, bi, li in zip(A, b, lam, strict=True):
        model = ElasticNet(alpha=2 * li / M, l1_ratio=0.5, fit_intercept=False, tol=1e-12,
                           max_iter=50_000)  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answers.append(model.fit(Ai, bi).coef_)
    check(pl.elastic_net(A, b, lam, lam2=lam), answers, "auto")


def test_two_hundred_non_negative_least_squares_against_scipy():
    A, b, _ = draw(200, 2, rows=30, columns=12)
    answers = [scipy.optimize.nnls(Ai, bi)[0] for Ai, bi in zip(A, b, strict=True)]
    problem = pl.nnls(A, b)
    solution = solve(problem, tol=1e-8, max_iter=3000)
    found = problem.objective(torch.as_tensor(np.stack(answers)))
    assert (solution.objective - solution.gap <= found * (1 + 1e-12)).all()
    assert solution.solved
    assert (solution.objective - found <= 1e-6 * found).all()


def test_a_hundred_logistic_regressions_against_a_conic_solver():
    A, b, _ = draw(100, 3, rows=30, columns=6)
    A = A / np.abs(A).mean((1, 2), keepdims=True)
    labels = (b > 0).astype(float)
    lam = np.abs(np.einsum("bmn,bm->bn", A, 0.5 - labels)).max(1) / 30 * 0.1
    lam = np.maximum(lam, 1e-3)
    answers = []
    for Ai, yi, li in zip(A, labels, lam, strict=True):
        x = cvxpy.Variable(6)
        loss = cvxpy.sum(cvxpy.logistic(Ai @ x) - cvxpy.multiply(yi, Ai @ x)) / 30
        cvxpy.Problem(cvxpy.Minimize(loss + li * cvxpy.norm1(x))).solve(solver="CLARABEL")
        answers.append(x.value)
    check(pl.logistic(A, labels, lam), answers, "auto")
