"""What every problem promises: bounds around the minimum, and certificates that never lie."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import conic as cp
import proxlearn as pl
from contracts.operator_table import gaussian
from contracts.problem_table import ROWS, B, Instance, l1, least_squares, minimise
from proxlearn.errors import InputError
from proxlearn.problems.operators import Dense
from proxlearn.problems.penalties import L1, NonNegative
from proxlearn.problems.problem import Problem
from proxlearn.problems.smooth import LeastSquares, NoSmooth

over_rows = pytest.mark.parametrize("name", ROWS)
ROUNDING = 1e-12


def feasible_points(row):
    """(B, n) each: random at several scales, and ever closer to the minimiser."""
    n = row.problem.n
    raw = [scale * gaussian(B, n, seed=k) for k, scale in enumerate([0.0, 0.01, 0.3, 1.0, 5.0])]
    raw += [row.minimisers + 10.0**-k * gaussian(B, n, seed=k) for k in range(1, 8)]
    p = torch.full((B, 1), 1e-9, dtype=torch.float64)
    return [row.problem.r.prox(x, p) for x in raw]


@over_rows
def test_objective_is_the_formula(name):
    row = ROWS[name]()
    for x in feasible_points(row):
        expected = [row.instances[i].objective(x[i].numpy()) for i in range(B)]
        np.testing.assert_allclose(row.problem.objective(x), expected, rtol=1e-12)


@over_rows
def test_bounds_enclose_the_minimum(name):
    row = ROWS[name]()
    points = feasible_points(row)
    for y in [*points, 3 * gaussian(B, row.problem.n, seed=99)]:
        e = row.problem.f.evaluate(y)
        assert (row.problem.lower_bound(e) <= row.minima + ROUNDING).all()
        for x in points:
            if not row.problem.f.curvature_is_bounded:
                continue
            upper = row.problem.upper_bound(e, x)
            assert (upper >= row.problem.objective(x) - ROUNDING * (1 + upper.abs())).all()
            assert (upper >= row.minima - ROUNDING).all()


@over_rows
def test_gap_is_never_below_the_true_distance(name):
    row = ROWS[name]()
    for x in feasible_points(row):
        certificate = row.problem.certificate(x)
        true = certificate.objective - row.minima
        assert (true >= -ROUNDING).all()  # else the reference did not find the minimum
        assert (certificate.gap >= true - ROUNDING).all()
        assert not certificate.gap.isnan().any()


@over_rows
def test_gap_closes_at_the_minimiser(name):
    row = ROWS[name]()
    certificate = row.problem.certificate(row.minimisers)
    torch.testing.assert_close(certificate.objective, row.minima, rtol=1e-13, atol=0)
    assert (certificate.gap <= 1e-11 * row.minima).all()


@over_rows
def test_gap_shrinks_with_the_distance(name):
    # A certificate that is finite at the minimiser alone would stop no solve.
    row = ROWS[name]()
    p = torch.full((B, 1), 1e-9, dtype=torch.float64)
    for distance in (1e-2, 1e-4, 1e-6):
        move = gaussian(B, row.problem.n, seed=3)
        near = row.problem.r.prox(row.minimisers + distance * move, p)
        assert (row.problem.certificate(near).gap <= 30 * distance).all()


@pytest.mark.slow
def test_no_gap_is_known_where_the_dual_has_no_interior():
    # The columns c and -c: a dual point must be orthogonal to c, and no residual quite is.
    A, b = gaussian(12, 4), gaussian(12, seed=1)
    problem = pl.nnls(torch.cat([A, -A[:, :1]], 1), b)
    zero = torch.zeros(1, 5, dtype=torch.float64)
    assert problem.certificate(zero).gap.item() == torch.inf
    solution = pl.solve(problem, tol=1e-8)
    assert solution.solved  # by the prox-gradient map
    w = cp.Variable(5)
    best = cp.Problem(
        cp.Minimize(cp.sum_squares(problem.f.A.A.numpy() @ w - b.numpy()) / 2), [w >= 0]
    )
    assert solution.objective.item() == pytest.approx(best.solve("CLARABEL"), rel=1e-6)


@over_rows
def test_residual_vanishes_at_the_minimiser_only(name):
    row = ROWS[name]()
    f = row.problem.f
    assert (row.problem.residual(f.evaluate(row.minimisers)) <= 1e-10).all()
    far = row.problem.r.prox(row.minimisers + gaussian(B, f.n), torch.ones(B, 1).double())
    assert (row.problem.residual(f.evaluate(far)) > 1e-3).all()


@over_rows
def test_single_precision_is_certified_in_double(name):
    row = ROWS[name]()
    single = row.problem.to(torch.float32)
    assert single.dtype == torch.float32
    x = feasible_points(row)[-2].float()
    certificate = single.certificate(x)
    assert certificate.objective.dtype == certificate.gap.dtype == torch.float64
    # The same problem, the numbers rounded once: not float32 arithmetic in a wider type.
    expected = single.to(torch.float64).certificate(x.double())
    torch.testing.assert_close(certificate.objective, expected.objective, rtol=1e-12, atol=0)
    torch.testing.assert_close(certificate.gap, expected.gap, rtol=1e-6, atol=1e-12)


@over_rows
def test_element_of_a_batch_is_the_problem(name):
    row = ROWS[name]()
    x = feasible_points(row)[3]
    both = row.problem.certificate(x)
    for i in range(B):
        alone = row.problem.select(torch.tensor([i]))
        assert alone.batch == 1
        one = alone.certificate(x[i : i + 1])
        torch.testing.assert_close(one.objective, both.objective[i : i + 1])
        torch.testing.assert_close(one.gap, both.gap[i : i + 1])


def test_many_single_precision_instances():
    # More than are converted at a time, the last part incomplete.
    A, b = gaussian(150, 6, 4).float(), gaussian(150, 6, seed=1).float()
    lam = torch.linspace(0.1, 3, 150)
    problem, x = pl.lasso(A, b, lam), gaussian(150, 4, seed=2).float()
    together = problem.certificate(x)
    alone = [problem.select(torch.tensor([i])).certificate(x[i : i + 1]) for i in range(150)]
    torch.testing.assert_close(together.gap, torch.cat([c.gap for c in alone]))
    torch.testing.assert_close(together.objective, torch.cat([c.objective for c in alone]))


@pytest.mark.slow
def test_reference_agrees_with_a_conic_solver():
    # Two independent solvers: the minima that this suite trusts are minima.
    lasso, logistic = ROWS["lasso-intercept"](), ROWS["logistic-intercept"]()
    for row, loss in ((lasso, "squares"), (logistic, "logistic")):
        f, r = row.problem.f, row.problem.r
        for i in range(B):
            A, b, t = f.A.A[i].numpy(), f.b[i].numpy(), r.level()[i].numpy()
            x = cp.Variable(f.n)
            squares, margins = cp.sum_squares(A @ x - b) / 2, cp.multiply(1 - 2 * b, A @ x)
            smooth = squares if loss == "squares" else cp.sum(cp.logistic(margins)) / len(b)
            value = cp.Problem(cp.Minimize(smooth + t @ cp.abs(x))).solve("CLARABEL")
            assert row.minima[i] == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_intercept_column_of_any_size(size):
    # Centred data have the same solution without an intercept: a reference at any conditioning.
    A, b = gaussian(20, 5).numpy(), 3 + gaussian(20, seed=1).numpy()
    centred, rest = A - A.mean(0), b - b.mean()
    L = np.linalg.norm(centred, 2) ** 2
    w = minimise(Instance(least_squares(centred, rest), *l1(2.0, np.ones(5)), 5, L))
    x = np.append(w, (b - A @ w).mean() / size)
    problem = pl.lasso(np.column_stack([A, np.full(20, size)]), b, 2.0, weights=[1] * 5 + [0])
    certificate = problem.certificate(torch.tensor(x)[None])
    assert certificate.gap.item() <= 1e-10 * certificate.objective.item()
    x[-1] += 1e-3 / size  # an intercept that is off costs what it costs, and no more
    off = problem.certificate(torch.tensor(x)[None])
    assert off.gap.item() <= 1e-3


def test_two_unpenalised_columns_and_one_in_one_instance_only():
    A, b = gaussian(2, 15, 4), gaussian(2, 15, seed=1)
    w = torch.tensor([[0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 1.0]])
    problem = pl.lasso(A, b, 0.5, weights=w)
    for i in range(2):
        Ai, bi = A[i].numpy(), b[i].numpy()
        smooth, L = least_squares(Ai, bi), np.linalg.norm(Ai, 2) ** 2
        x = torch.tensor(minimise(Instance(smooth, *l1(0.5, w[i].numpy()), 4, L)))
        gap = problem.certificate(x.expand(2, 4)).gap[i]
        assert gap <= 1e-11


@pytest.mark.parametrize("make", [pl.lasso, pl.logistic], ids=["lasso", "logistic"])
def test_zero_is_optimal_for_a_large_lam(make):
    A, b = gaussian(12, 5), (gaussian(12, seed=1) > 0).double()
    zero = torch.zeros(1, 5, dtype=torch.float64)
    lam_max = make(A, b, 1.0).f.grad(zero).abs().max().item()
    assert make(A, b, lam_max * 1.0001).certificate(zero).gap.item() <= 1e-12
    assert make(A, b, lam_max * 0.9).certificate(zero).gap.item() > 1e-6


@given(
    m=st.integers(1, 8),
    n=st.integers(1, 8),
    exponent=st.integers(-4, 4),
    seed=st.integers(0, 10**6),
    intercept=st.booleans(),
)
def test_certificates_of_any_shape_and_scale(m, n, exponent, seed, intercept):
    A, b = 10.0**exponent * gaussian(m, n, seed=seed), gaussian(m, seed=seed + 1)
    A[:, -1] = 0 if n > 2 else A[:, 0]  # a column of zeros, or a duplicate
    w = np.ones(n)
    w[0] = 0 if intercept else 1
    problem = pl.lasso(A, b, 0.3 * 10.0**exponent, weights=w)
    points = [10.0**-exponent * gaussian(1, n, seed=seed + k) for k in range(2, 6)]
    lower = max(problem.lower_bound(problem.f.evaluate(y)).item() for y in points)
    for x in points:
        certificate = problem.certificate(x)
        assert certificate.objective.item() >= lower - 1e-9 * (1 + abs(lower))
        assert certificate.gap.item() >= 0


def test_a_point_that_is_no_number_has_no_certificate():
    row = ROWS["lasso"]()
    x = row.minimisers.clone()
    x[0, 0] = torch.nan
    gap = row.problem.certificate(x).gap
    assert gap[0] == torch.inf
    assert gap[1] <= 1e-11


def test_step_is_one_over_lipschitz_or_one():
    row = ROWS["lasso"]()
    torch.testing.assert_close(row.problem.safe_step()[:, 0], 1 / row.problem.f.lipschitz())
    constant = Problem(NoSmooth(3), L1(torch.ones(4).double()))
    assert constant.batch == 4
    assert constant.safe_step().tolist() == [[1.0]] * 4


def test_terms_of_different_batches_are_rejected():
    f = LeastSquares(Dense(gaussian(4, 3)), gaussian(2, 4))
    with pytest.raises(InputError, match="f has 2 instances and r has 3"):
        Problem(f, L1(torch.ones(3).double()))
    assert Problem(f, NonNegative()).batch == 2
