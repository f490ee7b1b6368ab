"""The path with a Gram matrix: exact minimisers, and an honest fallback where it is degenerate."""

import time

import numpy as np
import pytest
import torch

import proxlearn as pl
from proxlearn.compiled import cache, homotopy
from proxlearn.compiled.engine import data_of, penalty_of
from proxlearn.compiled.rule import Separable
from proxlearn.operators import Dense
from proxlearn.penalties import L1, Box, ElasticNet, NonNegativeElasticNet
from proxlearn.problem import Problem
from proxlearn.smooth import LeastSquares


@pytest.fixture(scope="module", autouse=True)
def loop():
    while not cache.ready("gram"):
        if not cache.make("gram"):
            time.sleep(0.5)


def draw(m, n, B=5, seed=0):
    """A (m, n) with columns of several lengths, b (B, m), the last of them 0."""
    generator = torch.Generator().manual_seed(seed)
    A = torch.randn(m, n, generator=generator, dtype=torch.float64)
    A *= 0.5 + torch.rand(n, generator=generator)
    b = torch.randn(B, m, generator=generator, dtype=torch.float64)
    b[-1] = 0
    return A, b


def weights(n):
    return 0.5 + torch.rand(1, n, generator=torch.Generator().manual_seed(1)).double()


def penalties(share, A, b):
    """Every penalty with a path; its l1 is `share` of the one with which x = 0, (B,)."""
    lam = share * (b @ A).abs().amax(-1).clamp(min=1e-3)
    n = A.shape[1]
    return {
        "l1": L1(lam),
        "one lam": L1(lam[:1]),
        "weighted l1": L1(lam, weights(n)),
        "elastic net": ElasticNet(lam, 0.3 * lam),
        "weighted elastic net": ElasticNet(lam, 5 * lam, weights(n)),
        "non-negative l1": NonNegativeElasticNet(lam, 0 * lam),
        "non-negative elastic net": NonNegativeElasticNet(lam, 0.3 * lam, weights(n)),
    }


def alone(problem, tol=1e-10):
    """What the path says by itself, one instance after the other: solved (B,), F (B,), x (B, n)."""
    d, _, _ = data_of(problem)
    parts = [np.broadcast_to(part, (problem.batch, problem.n)) for part in penalty_of(problem)]
    room = homotopy.tableau(problem.n, problem.n)
    x = np.zeros((problem.batch, problem.n))
    solved, values = [], []
    for i in range(problem.batch):
        one = type(d)(d.loss, d.G, d.G32, d.c[i], d.bb[i])
        r = Separable(*(np.ascontiguousarray(part[i]) for part in parts))
        plain = isinstance(problem.r, L1)
        found = homotopy.gram_path(one, r, plain, tol, False, room, x[i])
        solved.append(found[0])
        values.append(found[1])
    return np.array(solved), np.array(values), torch.from_numpy(x)


NAMES = tuple(penalties(0.1, *draw(3, 4)))


@pytest.mark.parametrize("share", [0.7, 0.1, 1e-3])
@pytest.mark.parametrize(("m", "n"), [(20, 40), (40, 20), (30, 30), (1, 5), (5, 1)])
@pytest.mark.parametrize("penalty", NAMES)
def test_the_path_ends_at_the_minimiser(penalty, m, n, share):
    A, b = draw(m, n, seed=m)
    problem = Problem(LeastSquares(Dense(A), b), penalties(share, A, b)[penalty])
    solved, value, x = alone(problem)
    assert solved.all()
    reference = pl.solve(problem, "fista-restart", tol=1e-12, max_iter=5000, engine="torch")
    assert torch.allclose(x, reference.x, rtol=1e-6, atol=1e-8)
    objective = problem.objective(x)
    assert torch.allclose(torch.from_numpy(value), objective, rtol=1e-12, atol=1e-15)
    assert bool((objective <= reference.objective * (1 + 1e-12)).all())
    compiled = pl.solve(problem, "fista-restart", tol=1e-10, engine="compiled")
    assert torch.allclose(compiled.x, x, rtol=1e-9, atol=1e-12)
    assert bool((compiled.iterations == 1).all())
    assert bool((problem.certificate(x).gap <= 1e-10 * objective + 1e-15).all())


def test_coordinates_leave_on_the_way():
    """With correlated columns; each instance of a batch gets the answer it gets alone."""
    A, b = draw(60, 40, B=30, seed=2)
    A = A + 2 * A.mean(1, keepdim=True) + A.roll(1, 1)
    problem = pl.lasso(A, b, 0.01 * float((b @ A).abs().max()))
    solved, _, x = alone(problem)
    assert solved.all()
    other = pl.lasso(A, b, 0.02 * float((b @ A).abs().max()))
    assert bool(((alone(other)[2] != 0) & (x == 0)).any())  # the path to there passed through here
    for i in (0, 7):
        some = pl.solve(pl.lasso(A, b[[i, i]], problem.r.lam), engine="compiled")
        assert torch.allclose(some.x[1], x[i], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("share", [0.5, 0.02])
@pytest.mark.parametrize(
    "kind",
    ["duplicates", "opposites", "zero columns", "collinear", "tie", "orthogonal", "rank one"],
)
def test_degenerate_data_are_solved(kind, share):
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
    lam = share * (b @ A).abs().amax(-1).clamp(min=1e-3)
    problem = pl.lasso(A, b, lam)
    found = pl.solve(problem, "fista-restart", tol=1e-9, max_iter=5000, engine="compiled")
    assert found.solved
    reference = pl.solve(problem, "fista-restart", tol=1e-10, max_iter=5000, engine="torch")
    assert torch.allclose(found.objective, reference.objective, rtol=1e-8, atol=1e-12)
    certificate = problem.certificate(found.x)
    assert bool((certificate.gap <= 1e-9 * certificate.objective + 1e-15).all())


def test_zero_where_lam_is_large():
    A, b = draw(10, 15)
    top = (b @ A).abs().amax(-1)
    solved, value, x = alone(pl.lasso(A, b[:-1], top[:-1]))
    assert solved.all()
    assert not bool(x.any())
    assert np.allclose(value, 0.5 * b[:-1].square().sum(-1))
    assert bool(alone(pl.lasso(A, b[:-1], 0.999 * top[:-1]))[2].any(-1).all())


@pytest.mark.parametrize("scale", [1e-100, 1e-12, 1e12, 1e100])
def test_the_path_has_no_scale_of_its_own(scale):
    A, b = draw(20, 30)
    x = alone(pl.lasso(A, b[:-1], 0.3))[2]
    solved, _, scaled = alone(pl.lasso(A * scale, b[:-1], 0.3 * scale))
    assert solved.all()
    assert torch.allclose(scaled * scale, x, rtol=1e-9)


def test_float32_is_answered_rounded_and_certified():
    A, b = draw(30, 50)
    problem = pl.lasso(A.float(), b.float(), 0.5)
    found = pl.solve(problem, "fista-restart", tol=1e-6, engine="compiled")
    assert found.solved
    assert found.x.dtype == torch.float32
    exact = problem.to(torch.float64)
    assert torch.allclose(found.x, alone(exact)[2].float(), rtol=2e-7)
    assert torch.allclose(exact.objective(found.x.double()), found.objective, rtol=1e-13)
    best = pl.solve(exact, "fista-restart", tol=1e-12, engine="torch").objective
    assert bool((found.gap >= found.objective - best - 1e-13).all())


def test_what_has_no_path_is_left_alone():
    A, b = draw(10, 15)
    one = torch.ones(1, 1, dtype=torch.float64)
    boxed = Problem(LeastSquares(Dense(A), b), Box(-0.1 * one, 0.2 * one))
    solved, _, x = alone(boxed)
    assert not solved.any()
    assert not bool(x.any())
    assert pl.solve(boxed, "fista-restart", engine="compiled").solved


def test_other_starts_and_no_polish():
    A, b = draw(20, 30)
    problem = pl.lasso(A, b, 0.5)
    cold = pl.solve(problem, "fista-restart", tol=1e-9, engine="compiled")
    warm = pl.solve(problem, "fista-restart", tol=1e-9, x0=cold.x + 0.1, engine="compiled")
    assert warm.solved
    assert torch.allclose(warm.x, cold.x, atol=1e-6)
    plain = pl.solve(problem, "fista-restart", tol=1e-3, polish=False, engine="compiled")
    assert plain.solved
    assert float(plain.iterations.double().max()) > 1


@pytest.mark.parametrize("part", [1e-6, 1e-9])
def test_a_small_optimum_beside_a_large_b_is_not_claimed_without_proof(part):
    """Sums as large as |b|^2 stand for the residual there: their rounding is in the gap."""
    A, b = draw(20, 40)
    A, b = A * 3, b[:-1] + 7
    lam = part * (b @ A).abs().amax(-1)
    problem = Problem(LeastSquares(Dense(A), b), L1(lam))
    best = pl.solve(problem, "fista-restart", tol=1e-6, max_iter=3000, engine="torch")
    found = pl.solve(problem, "fista-restart", tol=1e-3, max_iter=300, engine="compiled")
    assert bool((found.gap >= 1e-15 * b.square().sum(-1)).all())
    lower = best.objective - best.gap
    assert bool((found.objective - found.gap <= best.objective * (1 + 1e-12)).all())
    assert bool((found.objective >= lower * (1 - 1e-12)).all())
    exact = torch.from_numpy(problem_value(A, b, lam, found.x))
    assert bool(((found.objective - exact).abs() <= found.gap + 1e-12 * exact).all())


def problem_value(A, b, lam, x):
    """F(x) from the residual itself, in extended precision."""
    A, b, lam, x = (t.numpy().astype(np.longdouble) for t in (A, b, lam, x))
    return (0.5 * ((x @ A.T - b) ** 2).sum(1) + lam * np.abs(x).sum(1)).astype(np.float64)
