"""Numbers that are hard on a solver: no hang, no crash without words, no wrong SOLVED."""

import time
import warnings
from functools import cache

import numpy as np
import pytest
import scipy.optimize
import torch
from scipy.sparse.linalg import LinearOperator

import proxlearn as pl
from proxlearn.errors import InputError
from proxlearn.problems.operators import Dense
from proxlearn.problems.penalties import NonNegative
from proxlearn.problems.problem import Problem
from proxlearn.problems.smooth import Softmax
from proxlearn.problems.tolerance import allowed_gap

RNG = np.random.default_rng(5)
M, N = 30, 50
A = RNG.normal(size=(M, N))
b = A[:, :4] @ [2.0, -1.0, 0.5, 3.0] + 0.1 * RNG.normal(size=M)
LABELS = (b > 0).astype(float)
ZERO_COLUMNS = np.where(np.arange(N) % 3 == 0, 0.0, A)
DUPLICATED = np.hstack([A[:, :10]] * 5)


def separable(lam):
    rows = np.vstack([A[:15] + 3, A[15:] - 3])
    return pl.logistic(rows, np.r_[np.ones(15), np.zeros(15)], lam=lam)


LASSO = {
    "zero A": lambda: pl.lasso(np.zeros((M, N)), b, lam=1.0),
    "zero columns": lambda: pl.lasso(ZERO_COLUMNS, b, lam=1.0),
    "duplicated columns": lambda: pl.lasso(DUPLICATED, b, lam=1.0),
    "zero b": lambda: pl.lasso(A, np.zeros(M), lam=1.0),
    "constant b": lambda: pl.lasso(A, np.ones(M), lam=1.0),
    "one row": lambda: pl.lasso(A[:1], b[:1], lam=0.1),
    "one column": lambda: pl.lasso(A[:, :1], b, lam=0.1),
    "one entry": lambda: pl.lasso([[2.0]], [3.0], lam=1.0),
    "wide": lambda: pl.lasso(RNG.normal(size=(5, 2000)), RNG.normal(size=5), lam=0.5),
    "lam above lam_max": lambda: pl.lasso(A, b, lam=2 * np.abs(A.T @ b).max()),
    "lam at lam_max": lambda: pl.lasso(A, b, lam=np.abs(A.T @ b).max()),
    "small lam": lambda: pl.lasso(A, b, lam=1e-4 * np.abs(A.T @ b).max()),
    "large numbers": lambda: pl.lasso(1e100 * A, 1e100 * b, lam=1e200),
    "small numbers": lambda: pl.lasso(1e-100 * A, 1e-100 * b, lam=1e-200),
    "mixed scales": lambda: pl.lasso(A * np.logspace(-1, 1, N), b, lam=1.0),
    "integers": lambda: pl.lasso((3 * A).astype(int), (3 * b).astype(int), lam=1.0),
    "bool": lambda: pl.lasso(A > 0, b, lam=1.0),
    "half": lambda: pl.lasso(A.astype(np.float16), b.astype(np.float16), lam=1.0),
    "not contiguous": lambda: pl.lasso(np.asfortranarray(A)[::-1], b[::-1], lam=1.0),
    "read only": lambda: pl.lasso(frozen(A), frozen(b), lam=1.0),
    "nnls": lambda: pl.nnls(A, b),
    "logistic": lambda: pl.logistic(A, LABELS, lam=0.01),
    "logistic, one class": lambda: pl.logistic(A, np.ones(M), lam=0.01),
    "separable": lambda: separable(1e-3),
    "elastic net": lambda: pl.elastic_net(A, b, lam=1.0, lam2=1.0),
    "group": lambda: pl.group_lasso(A, b, lam=1.0, groups=np.arange(N) // 5),
    "simplex": lambda: pl.simplex_ls(A, b),
}

HARD = ["mixed scales", "small lam", "separable"]
"""What may run out, but may not be called solved wrongly."""


def frozen(values):
    values = values.copy()
    values.flags.writeable = False
    return values


@pytest.mark.parametrize("engine", ["auto", pytest.param("torch", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n in HARD else ()) for n in LASSO]
)
def test_hard_numbers_are_solved_and_the_answer_is_true(name, engine):
    problem = made(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = pl.solve(problem, max_iter=5000, time_limit=20, engine=engine)
    assert solution.engine == ("core" if engine == "auto" else "torch")
    assert np.isfinite(solution.x).all()
    if name in HARD and not solution.solved:
        assert solution.status[0] in (pl.Status.MAX_ITER, pl.Status.TIME_LIMIT)
        return
    assert solution.solved
    tol = 1e-6 if problem.dtype == torch.float64 else 1e-4
    assert solution.objective.item() <= independent(name) * (1 + tol) + 1e-300


@cache
def made(name):
    return LASSO[name]()


@cache
def independent(name):
    """F at the point that another method reaches in float64."""
    exact = made(name).to(torch.float64)
    return pl.solve(exact, "fista-restart", tol=1e-9, max_iter=3000).objective.item()


def test_lam_above_lam_max_gives_zero_at_once():
    solution = pl.solve(LASSO["lam above lam_max"]())
    assert (solution.x == 0).all()
    assert solution.iterations.item() <= 2


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["core", "torch"])
@pytest.mark.parametrize("lam", [1e-5, 1e-8])
def test_separable_data_with_a_tiny_lam_is_not_called_solved_wrongly(lam, engine):
    problem = separable(lam)
    solution = pl.solve(problem, max_iter=500, engine=engine)
    other = pl.solve(problem, "fista-restart", tol=1e-9, max_iter=2000).objective
    assert (solution.objective - solution.gap <= other * (1 + 1e-12)).all()
    if solution.solved:
        assert (solution.objective <= other * (1 + 1e-6)).all()
    else:
        assert solution.status[0] == pl.Status.MAX_ITER


@pytest.mark.parametrize("engine", ["core", "torch"])
@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_numbers_at_the_end_of_the_range_end_with_a_status(scale, engine):
    solution = pl.solve(pl.lasso(scale * A, b, lam=1.0), max_iter=200, engine=engine)
    assert np.isfinite(solution.x).all()
    if scale < 1:  # lam is far above lam_max
        assert solution.solved
        assert (solution.x == 0).all()
    elif solution.solved:
        assert (solution.gap <= allowed_gap(1e-6, solution.objective, 0.5 * b @ b)).all()
        assert solution.objective.item() <= 0.5 * b @ b


@pytest.mark.parametrize("lam", [1e60, 1e-60])
def test_a_lam_that_single_precision_cannot_hold_is_said(lam):
    with pytest.raises(InputError, match=r"lam .* in A's precision, float32"):
        pl.lasso(A.astype(np.float32), b, lam=lam)


def test_a_b_that_single_precision_cannot_hold_is_said():
    with pytest.raises(InputError, match="b holds 1e"):
        pl.lasso(A.astype(np.float32), np.full(M, 1e60), lam=1.0)


def test_a_gradient_whose_square_is_zero_is_not_zero():
    labels = torch.nn.functional.one_hot(torch.tensor([[2]]), 3).mT.float()
    f = Softmax(Dense(torch.full((1, 2), 1e-30)), labels, 3)
    problem = Problem(f, NonNegative())
    assert pl.solve(problem, max_iter=20, engine="torch").status == (pl.Status.MAX_ITER,)
    solution = pl.solve(problem, max_iter=20)  # in float64, where the square is not zero
    assert solution.solved
    assert solution.objective.item() <= 1e-6 * problem.at_zero.item()


@pytest.mark.parametrize("engine", ["core", "torch"])
def test_one_broken_instance_does_not_disturb_the_others(engine):
    problem = pl.lasso(np.stack([A, 1e300 * A, A]), np.stack([b, 1e300 * b, b]), lam=1.0)
    solution = pl.solve(problem, max_iter=2000, engine=engine)
    assert solution.status[0] == solution.status[2] == pl.Status.SOLVED
    alone = pl.solve(pl.lasso(A, b, lam=1.0))
    assert np.allclose(solution.x[0], alone.x, atol=1e-6)
    assert np.allclose(solution.x[2], alone.x, atol=1e-6)


def test_a_wrong_adjoint_is_found():
    wrong = LinearOperator((M, N), matvec=lambda x: A @ x, rmatvec=lambda r: 2 * (A.T @ r))
    with pytest.raises(InputError, match="adjoint"):
        pl.solve(pl.lasso(wrong, b, lam=1.0))


def test_an_interrupt_is_raised_and_nothing_is_left():
    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pl.solve(pl.lasso(A, b, lam=1.0), callback=stop)


def test_a_time_limit_of_zero_returns_at_once():
    began = time.perf_counter()
    solution = pl.solve(pl.lasso(A, b, lam=1.0), time_limit=0)
    assert solution.status == (pl.Status.TIME_LIMIT,)
    assert time.perf_counter() - began < 5


def test_nnls_agrees_with_scipy_on_duplicated_columns():
    problem = pl.nnls(DUPLICATED, b)
    solution = pl.solve(problem)
    _, residual = scipy.optimize.nnls(DUPLICATED, b)
    assert solution.solved
    assert solution.objective.item() == pytest.approx(0.5 * residual**2, rel=1e-5)
