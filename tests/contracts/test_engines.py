"""The compiled core and the loop in PyTorch: the same answers, certified, whatever the data."""

import subprocess
import sys
import textwrap
from itertools import product

import numpy as np
import pytest
import scipy.sparse
import torch

import proxlearn as pl
from proxlearn.errors import InputError
from proxlearn.problems.operators import Dense, Sparse
from proxlearn.problems.penalties import (
    L1,
    Box,
    ElasticNet,
    GroupL1,
    NonNegative,
    NonNegativeElasticNet,
    SparseGroupL1,
    Zero,
)
from proxlearn.problems.smooth import Huber, LeastSquares, Logistic, Poisson
from proxlearn.solving.paths import lam_max

B, M, N = 4, 40, 25


def draw(m=M, n=N, batch=B, seed=0):
    """A (m, n) with columns of several lengths and b (B, m), in float64."""
    generator = torch.Generator().manual_seed(seed)
    A = torch.randn(m, n, generator=generator, dtype=torch.float64)
    A *= 0.5 + torch.rand(n, generator=generator)
    x = torch.randn(batch, n, generator=generator).double()
    x *= torch.rand(batch, n, generator=generator) < 0.3
    return A, x @ A.T + 0.3 * torch.randn(batch, m, generator=generator).double()


def numbers(*values):
    return torch.tensor(values, dtype=torch.float64)


WEIGHTS = torch.linspace(0, 2, N, dtype=torch.float64)[None]  # the first is unpenalised
GROUPS = torch.arange(N) % 7  # interleaved, of two sizes
GROUP_WEIGHTS = torch.linspace(0, 2, 7, dtype=torch.float64)[None]
LEVEL = {
    "squares": numbers(0.3, 1.0, 3.0, 10.0),
    "huber": numbers(0.3, 1.0, 3.0, 5.0),
    "poisson": numbers(0.01, 0.03, 0.1, 0.3),
    "logistic": numbers(0.001, 0.003, 0.01, 0.03),
}
PENALTIES = {
    "l1": L1,
    "one lam": lambda lam: L1(lam[:1]),
    "weighted l1": lambda lam: L1(lam, WEIGHTS),
    "elastic net": lambda lam: ElasticNet(lam, 0.5 * lam),
    "weighted elastic net": lambda lam: ElasticNet(lam, 0.5 * lam, WEIGHTS),
    "ridge": lambda lam: ElasticNet(0 * lam, lam),
    "non-negative": lambda lam: NonNegative(),
    "non-negative elastic net": lambda lam: NonNegativeElasticNet(lam, 0.5 * lam, 0.1 + WEIGHTS),
    "non-negative l1": lambda lam: NonNegativeElasticNet(lam, 0 * lam),
    "box": lambda lam: Box(numbers(-0.2)[None], torch.linspace(0, 1, N).double()[None]),
    "box away from 0": lambda lam: Box(numbers(0.1)[None], numbers(0.5)[None]),
    "bounded above": lambda lam: Box(numbers(-torch.inf)[None], numbers(0.1)[None]),
    "group l1": lambda lam: GroupL1(lam, GROUPS),
    "weighted group l1": lambda lam: GroupL1(lam, GROUPS, GROUP_WEIGHTS),
    "sparse-group l1": lambda lam: SparseGroupL1(lam, GROUPS, numbers(0.4)),
    "weighted sparse-group l1": lambda lam: SparseGroupL1(
        lam, GROUPS, numbers(0.1, 0.4, 0.7, 1.0), GROUP_WEIGHTS, WEIGHTS
    ),
    "zero": lambda lam: Zero(),
}
LOSSES = {
    "squares": LeastSquares,
    "huber": lambda A, b: Huber(A, b, numbers(0.3, 0.5, 1.0, 3.0)),
    "poisson": lambda A, b: Poisson(A, b.abs().round()),
    "logistic": lambda A, b: Logistic(A, (b > 0).double()),
}
MATRICES = {
    "shared": Dense,
    "Fortran": lambda A: Dense(A.T.contiguous().T),
    "one a problem": lambda A: Dense(torch.stack([A, 2 * A, A + 0.1, A.flip(0)])),
    "sparse": lambda A: Sparse((A * (A.abs() > 0.3)).to_sparse()),
}


def problem_of(loss, penalty, matrix="shared"):
    A, b = draw()
    return pl.Problem(LOSSES[loss](MATRICES[matrix](A), b), PENALTIES[penalty](LEVEL[loss]))


def agree(problem, tol=1e-9):
    """Solve by both engines; objectives, certificates and gaps have to fit together."""
    core = pl.solve(problem, tol=tol, engine="core")
    loop = pl.solve(problem, "fista-restart", tol=tol, max_iter=20_000, engine="torch")
    assert (core.engine, loop.engine) == ("core", "torch")
    assert core.solved, core
    assert loop.solved, loop
    x = core.x.reshape(problem.batch, -1)
    scale = loop.objective.abs() + 1e-12
    assert bool((core.objective <= loop.objective + 2 * tol * scale).all())
    certificate = problem.certificate(x.double())
    assert torch.allclose(certificate.objective, core.objective, rtol=1e-11, atol=1e-13)
    assert bool((core.gap >= core.objective - loop.objective - 1e-11 * scale).all())
    return core, loop


UNBOUNDED = [("logistic", name) for name in ("zero", "non-negative", "bounded above")]
"""Separable data have no minimiser without a penalty."""
PAIRS = [(loss, name) for loss in LOSSES for name in PENALTIES if (loss, name) not in UNBOUNDED]


SLOW = ("poisson", "logistic", "group", "huber")
"""The PyTorch loop needs up to a second or more for each of these."""


def cases(named):
    """Parameters of a test, each a tuple of names; those with one of `SLOW` are slow."""
    for names in named:
        slow = any(word in name for word in SLOW for name in names)
        yield pytest.param(*names, marks=pytest.mark.slow if slow else ())


@pytest.mark.parametrize(("loss", "penalty"), list(cases(PAIRS)))
def test_every_penalty(loss, penalty):
    core, _ = agree(problem_of(loss, penalty))
    assert bool((core.gap <= 1e-9 * core.objective).all() or core.gap.isinf().any())


@pytest.mark.parametrize(("loss", "matrix"), list(cases(product(LOSSES, MATRICES))))
def test_every_kind_of_matrix(loss, matrix):
    problem = problem_of(loss, "weighted l1", matrix)
    core, _ = agree(problem)
    single = pl.solve(problem.to(torch.float32), tol=1e-4, engine="core")
    assert single.solved
    assert single.x.dtype == torch.float32
    assert torch.allclose(single.x.double(), core.x, atol=0.05)


KINDS = ["duplicates", "opposites", "zero columns", "collinear", "tie", "orthogonal", "rank one"]


def degenerate(kind):
    A, b = draw(12, 18, seed=3)
    if kind == "duplicates":
        A[:, 9:] = A[:, :9]
    elif kind == "opposites":
        A[:, 9:] = -A[:, :9]
    elif kind == "zero columns":
        A[:, ::3] = 0
    elif kind == "collinear":
        A[:, 9:] = A[:, :9] + A[:, 1:10]
    elif kind == "tie":  # mirrored coordinates join two at a time
        A[6:], A[:6, 9:] = 0, 0
        A[6:, 9:] = A[:6, :9]
        b[:, 6:] = b[:, :6]
    elif kind == "orthogonal":
        A = torch.eye(12, 18, dtype=torch.float64)
        b[0] = 1
    else:
        A[:] = A[:, :1]
    return A, b


@pytest.mark.parametrize("share", [0.5, pytest.param(0.02, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_degenerate_data(kind, share):
    A, b = degenerate(kind)
    lam = share * (b @ A).abs().amax(-1).clamp(min=1e-3)
    core, _ = agree(pl.lasso(A, b, lam))
    assert bool((core.gap <= 1e-9 * core.objective + 1e-15).all())


def with_ones(A):
    return torch.cat([A, torch.ones_like(A[:, :1])], 1)


def last_free(A):
    return torch.cat([A.new_ones(A.shape[1]), A.new_zeros(1)])


def sparse(A):
    return scipy.sparse.csr_array((A * (A.abs() > 1)).numpy())


WIDE = {
    "lasso": lambda A, b, lam: pl.lasso(A, b, lam),
    "sparse": lambda A, b, lam: pl.lasso(sparse(A), b, lam),
    "weighted": lambda A, b, lam: pl.lasso(A, b, lam, torch.linspace(0.5, 2, A.shape[1])),
    "intercept": lambda A, b, lam: pl.lasso(with_ones(A), b + 9, lam, last_free(A)),
    "elastic-net": lambda A, b, lam: pl.elastic_net(A, b, lam, 0.3 * lam),
    "huber": lambda A, b, lam: pl.huber(A, b, lam, 0.7),
    "huber-intercept": lambda A, b, lam: pl.huber(with_ones(A), b + 9, lam, 0.7, last_free(A)),
    "logistic": lambda A, b, lam: pl.logistic(A, (b > 0).double(), lam),
    "logistic-intercept": lambda A, b, lam: pl.logistic(
        with_ones(A), (b > 1).double(), lam, last_free(A)
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("fraction", [0.5, 0.1, 0.02])
@pytest.mark.parametrize("name", WIDE)
def test_wide_problems(name, fraction):
    A, b = draw(80, 600, 1)
    top = float(lam_max(WIDE[name](A, b[0], 1.0))[0])
    core, loop = agree(WIDE[name](A, b[0], fraction * top))
    assert bool((core.gap <= 1e-9 * core.objective).all())
    assert core.grad_evals.sum() <= loop.grad_evals.sum()


@pytest.mark.parametrize("scale", [1e-100, 1e-12, 1e12, 1e100])
def test_the_core_has_no_scale_of_its_own(scale):
    A, b = draw(20, 30)
    x = pl.solve(pl.lasso(A, b, 0.3), tol=1e-10, engine="core").x
    scaled = pl.solve(pl.lasso(A * scale, b, 0.3 * scale), tol=1e-10, engine="core")
    assert scaled.solved
    assert torch.allclose(scaled.x * scale, x, rtol=1e-6, atol=1e-7)


def test_ill_conditioned_data():
    A, _ = draw()
    U, _, V = torch.linalg.svd(A.T @ A, full_matrices=False)
    hard = U @ torch.diag(torch.logspace(0, -4, N, dtype=torch.float64)) @ V
    problem = pl.lasso(hard, hard.sum(1), 1e-6)
    solution = pl.solve(problem, tol=1e-10, engine="core")
    assert solution.solved
    certificate = problem.certificate(solution.x[None])
    # The residuals of both certificates are rounded to eps |b|, which is 1e-10 of lam here.
    rounding = 4 * torch.finfo(torch.float64).eps * float(0.5 * hard.sum(1).square().sum())
    assert float(certificate.gap) <= 1e-10 * float(certificate.objective) + rounding


@pytest.mark.parametrize("part", [1e-6, 1e-9])
def test_a_small_optimum_beside_a_large_b_is_not_claimed_without_proof(part):
    A, b = draw(20, 40)
    A, b = A * 3, b + 7
    lam = part * (b @ A).abs().amax(-1)
    found = pl.solve(pl.lasso(A, b, lam), tol=1e-3, engine="core")
    best = pl.solve(pl.lasso(A, b, lam), "fista-restart", tol=1e-6, max_iter=3000)
    lower = best.objective - best.gap
    assert bool((found.objective - found.gap <= best.objective * (1 + 1e-12)).all())
    assert bool((found.objective >= lower * (1 - 1e-12)).all())


def test_a_tolerance_beyond_rounding_ends_with_a_small_gap():
    A, b = draw(80, 600, 1)
    solution = pl.solve(pl.lasso(A, b, 1.0), tol=1e-30, engine="core")
    assert solution.status == (pl.Status.MAX_ITER,)
    assert (solution.gap <= 1e-12 * solution.objective).all()


def test_a_malformed_sparse_matrix_is_refused():
    A = scipy.sparse.csr_matrix(np.eye(3))
    A.indices[1] = 7
    with pytest.raises(InputError, match="A is not a valid sparse matrix"):
        pl.lasso(A, np.ones(3), 0.1)


def test_a_sparse_matrix_with_duplicates_is_summed_and_left_as_it_is():
    parts = (np.array([1.0, 2.0, 3.0]), np.array([0, 0, 1]), np.array([0, 2, 3]))
    A = scipy.sparse.csc_matrix(parts, shape=(2, 2))
    solution = pl.solve(pl.lasso(A, [3.0, 3.0], 0.3), tol=1e-10)
    np.testing.assert_allclose(solution.x, [2.9 / 3, 2.9 / 3], rtol=1e-8)
    assert A.nnz == 3


MEMORY = """
    import resource
    import numpy as np, scipy.sparse
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
    # Dense it would be 16 GB; a copy by columns is 24 MB, and the core's vectors are 1 MB each.
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(MEMORY)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    solved, megabytes = done.stdout.split()
    assert solved == "True"
    assert float(megabytes) < 100
