"""Working sets: the whole problem's certificate at a fraction of the cost, in bounded memory."""

import subprocess
import sys
import textwrap
from functools import partial

import pytest
import scipy.sparse
import torch

import proxlearn as pl
from proxlearn import screening
from proxlearn.paths import lam_max
from proxlearn.screening import restricted, solve_working_set, suits
from proxlearn.tolerance import EPS

inner = partial(pl.solve, optimizer="fista-restart")


def data(m=80, n=600, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    A = torch.randn(m, n, generator=generator, dtype=dtype)
    truth = torch.zeros(n, dtype=dtype)
    truth[:8] = 3 * torch.randn(8, generator=generator, dtype=dtype)
    return A, A @ truth + 0.5 * torch.randn(m, generator=generator, dtype=dtype)


def with_ones(A):
    return torch.cat([A, torch.ones_like(A[:, :1])], 1)


def last_free(A):
    return torch.cat([A.new_ones(A.shape[1]), A.new_zeros(1)])


def sparse(A):
    return scipy.sparse.csr_array((A * (A.abs() > 1)).numpy())


PROBLEMS = {
    "lasso": lambda A, b, lam: pl.lasso(A, b, lam),
    "sparse": lambda A, b, lam: pl.lasso(sparse(A), b, lam),
    "weighted": lambda A, b, lam: pl.lasso(A, b, lam, torch.linspace(0.5, 2, A.shape[1])),
    "intercept": lambda A, b, lam: pl.lasso(with_ones(A), b + 9, lam, last_free(A)),
    "elastic-net": lambda A, b, lam: pl.elastic_net(A, b, lam, 0.3 * lam),
    "logistic": lambda A, b, lam: pl.logistic(A, (b > 0).double(), lam),
    "logistic-intercept": lambda A, b, lam: pl.logistic(
        with_ones(A), (b > 1).double(), lam, last_free(A)
    ),
}


def make(name, fraction, **options):
    A, b = data(**options)
    top = float(lam_max(PROBLEMS[name](A, b, 1.0)))
    return PROBLEMS[name](A, b, fraction * top)


@pytest.mark.parametrize("fraction", [0.5, 0.1, 0.02])
@pytest.mark.parametrize("name", PROBLEMS)
def test_answers_are_those_of_the_whole_problem(name, fraction):
    problem = make(name, fraction)
    found = solve_working_set(problem, inner, tol=1e-9, max_iter=20_000)
    plain = inner(problem, tol=1e-9, max_iter=20_000)
    assert found.solved
    assert plain.solved
    torch.testing.assert_close(found.objective, plain.objective, rtol=2e-9, atol=0)
    assert (found.gap <= 1e-9 * found.objective).all()
    certificate = problem.certificate(found.x[None])
    torch.testing.assert_close(certificate.objective, found.objective)
    assert found.x.shape == (problem.n,)


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_column_of_the_solution_is_given_up(name, monkeypatch):
    problem = make(name, 0.1)
    best = inner(problem, tol=1e-12, max_iter=50_000)
    given_up = []
    look = screening._Run._look

    def spy(run):
        look(run)
        given_up.append(~run.alive)

    monkeypatch.setattr(screening._Run, "_look", spy)
    solve_working_set(problem, inner, tol=1e-10, max_iter=20_000)
    assert not (given_up[-1] & (best.x.abs() > 1e-8)).any()
    assert given_up[-1].sum() > problem.n // 2


def test_lam_max_has_nothing_to_do():
    A, b = data()
    solution = solve_working_set(pl.lasso(A, b, 1.0001 * (A.T @ b).abs().max()), inner, 1e-6, 100)
    assert solution.solved
    assert solution.iterations.item() == 0
    assert (solution.x == 0).all()


def test_solve_uses_it_where_the_problem_is_wide(monkeypatch):
    monkeypatch.setattr(screening, "WIDE", 500)
    problem = make("lasso", 0.05)
    solution, plain = pl.solve(problem, tol=1e-8), inner(problem, tol=1e-8)
    assert suits(problem)
    assert solution.solved
    assert (solution.gap <= 1e-8 * solution.objective).all()
    assert solution.grad_evals.sum() < 0.5 * plain.grad_evals.sum()
    warm = pl.solve(problem, tol=1e-8, x0=solution.x)
    assert warm.grad_evals.sum() <= 2
    # What asks for iterations one by one, or for a method, gets them.
    assert pl.solve(problem, max_iter=3, record=True).history.gap.shape == (4, 1)
    assert pl.solve(problem, tol=0, max_iter=3).iterations.item() == 3
    assert pl.solve(problem, "fista", max_iter=3).iterations.item() == 3


def test_what_it_does_not_suit(monkeypatch):
    monkeypatch.setattr(screening, "WIDE", 10)
    A, b = data(20, 40)
    assert suits(pl.lasso(A, b, 1.0))
    assert not suits(restricted(pl.lasso(A, b, 1.0), torch.arange(30)))
    assert not suits(pl.lasso(A, torch.stack([b, b]), 1.0))
    assert not suits(pl.nnls(A, b))
    assert not suits(pl.elastic_net(A, b, 0.0, 1.0))
    assert not suits(pl.lasso(scipy.sparse.linalg.aslinearoperator(A.numpy()), b, 1.0))
    monkeypatch.setattr(screening, "WIDE", 40)
    assert not suits(pl.lasso(A, b, 1.0))


def test_limits_are_kept():
    problem = make("lasso", 0.02)
    few = solve_working_set(problem, inner, tol=1e-10, max_iter=15)
    assert few.status == (pl.Status.MAX_ITER,)
    assert few.iterations.item() <= 15
    assert (few.gap > 1e-10 * few.objective).all()
    none = solve_working_set(problem, inner, tol=1e-10, max_iter=1000, time_limit=0)
    assert none.status == (pl.Status.TIME_LIMIT,)


def test_a_tolerance_beyond_rounding_ends():
    problem = make("lasso", 0.1)
    solution = solve_working_set(problem, inner, tol=1e-30, max_iter=300)
    met = bool((solution.gap <= EPS * problem.at_zero).all())  # as exact as F(0) is known
    assert solution.status == (pl.Status.SOLVED if met else pl.Status.MAX_ITER,)
    assert (solution.gap <= 1e-12 * solution.objective).all()


def test_float32_is_certified_in_float64():
    solution = solve_working_set(make("lasso", 0.1, dtype=torch.float32), inner, 1e-4, 5000)
    assert solution.solved
    assert solution.x.dtype == torch.float32
    assert solution.gap.dtype == torch.float64


MEMORY = """
    import resource
    import numpy as np, scipy.sparse, torch
    import proxlearn as pl

    random = np.random.default_rng(0)
    A = scipy.sparse.random_array((20_000, 100_000), density=1e-3, rng=random, format="csr")
    truth = np.zeros(100_000)
    truth[random.choice(100_000, 50)] = 5 * random.standard_normal(50)
    b = A @ truth + 0.1 * random.standard_normal(20_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    problem = pl.lasso(A, b, 0.1 * np.abs(A.T @ b).max())
    solution = pl.solve(problem)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(solution.solved, (after - before) / 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is measured in Linux's units")
def test_a_large_sparse_matrix_in_bounded_memory():
    # Dense it would be 16 GB; two sparse copies and what torch makes on the way are 250 MB.
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(MEMORY)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    solved, megabytes = done.stdout.split()
    assert solved == "True"
    assert float(megabytes) < 500
