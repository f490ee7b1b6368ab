"""What SOLVED and `gap` promise at every scale, near 0, for one-sided constraints, in float32."""

import functools
from fractions import Fraction
from operator import mul, sub

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import torch

import proxlearn as pl
from counting import Counting
from proxlearn.problems.operators import Dense
from proxlearn.problems.penalties import Box, ElasticNet, GroupL1, NonNegativeElasticNet, Zero
from proxlearn.problems.smooth import LeastSquares
from proxlearn.problems.tolerance import EPS, allowed_gap
from tensor_answers import solve


@pytest.fixture(params=["auto", pytest.param("torch", marks=pytest.mark.slow)], autouse=True)
def engine(request, monkeypatch):
    """Every test runs on the core, where that covers the problem, and on the slower loop."""
    monkeypatch.setenv("PROXLEARN_ENGINE", request.param)
    return request.param


M, N = 40, 25
RNG = np.random.default_rng(11)
A = RNG.normal(size=(M, N)) / M**0.5
x = RNG.normal(size=N) * (RNG.random(N) < 0.4)
b = A @ x + 0.1 * RNG.normal(size=M)
LABELS = (b > 0).astype(float)
GROUPS = np.arange(N) // 5
LONG = np.longdouble


def tensor(value):
    return torch.as_tensor(np.asarray(value, dtype=np.float64))


def least_squares(A, b):
    return LeastSquares(Dense(tensor(A)), tensor(b).reshape(1, -1))


def box(A, b, lower, upper):
    bounds = (tensor(v).expand(1, A.shape[1]) for v in (lower, upper))
    return pl.Problem(least_squares(A, b), Box(*bounds), single=True)


def positive(A, b, lam, lam2):
    r = NonNegativeElasticNet(tensor([lam]), tensor([lam2]))
    return pl.Problem(least_squares(A, b), r, single=True)


# ---- extreme scales ------------------------------------------------------------------------------
SCALES = [(1e-85, 1e-85), (1e100, 1e-80), (1e-80, 1e100), (1e-150, 1e-150), (1e150, 1e150)]
AT_SCALE = {  # A times s and b times t; x is then multiplied by the last number
    "lasso": (lambda s, t: pl.lasso(s * A, t * b, 0.1 * s * t), lambda s, t: t / s),
    "elastic net": (
        lambda s, t: pl.elastic_net(s * A, t * b, 0.1 * s * t, 0.05 * s * s),
        lambda s, t: t / s,
    ),
    "positive": (
        lambda s, t: positive(s * A, t * b, 0.1 * s * t, 0.05 * s * s),
        lambda s, t: t / s,
    ),
    "group lasso": (
        lambda s, t: pl.group_lasso(s * A, t * b, 0.1 * s * t, GROUPS),
        lambda s, t: t / s,
    ),
    "nnls": (lambda s, t: pl.nnls(scipy.sparse.csr_array(s * A), t * b), lambda s, t: t / s),
    "simplex": (lambda s, t: pl.simplex_ls(s * A, t * b, 2 * t / s), lambda s, t: t / s),
    "box": (lambda s, t: box(s * A, t * b, -0.1 * t / s, 0.3 * t / s), lambda s, t: t / s),
    "logistic": (lambda s, t: pl.logistic(s * A, LABELS, 0.01 * s), lambda s, t: 1 / s),
    "softmax": (lambda s, t: pl.softmax(s * A, LABELS, 0.01 * s), lambda s, t: 1 / s),
}


@functools.cache
def at_scale_one(name, engine):
    return solve(AT_SCALE[name][0](1.0, 1.0), engine=engine)


@pytest.mark.parametrize(("s", "t"), SCALES)
@pytest.mark.parametrize("name", AT_SCALE)
def test_a_scaled_problem_is_solved_as_well(name, s, t, engine):
    build, unit = AT_SCALE[name]
    plain, scaled = at_scale_one(name, engine), solve(build(s, t))
    assert plain.solved
    assert scaled.solved
    difference = scaled.x / unit(s, t) - plain.x
    if name == "softmax":  # what is added to both classes need not change the objective
        difference = difference.reshape(2, -1)
        difference = difference - difference.mean(0)
    assert difference.abs().max() <= 1e-2 * plain.x.abs().max()
    factor = 1.0 if name in ("logistic", "softmax") else float(LONG(t) * LONG(t))
    assert scaled.objective.item() / factor == pytest.approx(plain.objective.item(), rel=2e-6)
    assert scaled.gap.item() <= 1e-6 * scaled.objective.item()


def test_a_batch_of_scales_has_one_unit_an_instance():
    s, t = np.array([1e-85, 1.0, 1e120]), np.array([1e-100, 1.0, 1e100])
    many = pl.elastic_net(
        s[:, None, None] * A, t[:, None] * b, 0.1 * s * t, 0.05 * s * s
    )  # fmt: skip
    together = solve(many)
    assert together.solved
    alone = solve(pl.elastic_net(A, b, 0.1, 0.05))
    for i in range(3):
        np.testing.assert_allclose(together.x[i] * s[i] / t[i], alone.x, rtol=0, atol=1e-6)


def test_recorded_values_and_callbacks_have_the_units_of_the_problem():
    seen = []
    scaled = solve(
        pl.lasso(tensor(1e-100 * A), 1e-100 * b, 1e-201), tol=1e-9, record=True,
        callback=lambda p: seen.append((p.index.clone(), p.x.clone())),
    )  # fmt: skip
    history = scaled.history
    assert history.objective[0].item() == pytest.approx(0.5e-200 * b @ b, rel=1e-12)
    assert history.objective[-1].item() == scaled.objective.item()
    plain = solve(pl.lasso(A, b, 0.1), tol=1e-9, record=True)
    np.testing.assert_allclose(history.gap, 1e-200 * plain.history.gap, rtol=1e-3, atol=1e-214)
    first = seen[0][1]
    assert 0 < first.abs().max() < 10  # x itself has no unit here


@pytest.mark.parametrize("size", [1e-200, 1e-85, 1.0, 1e100, 1e200])
@pytest.mark.parametrize("kind", ["elastic net", "non-negative", "group"])
def test_values_and_conjugates_do_not_square_small_or_large_numbers(kind, size):
    # In numbers whose squares leave the range of float64 but whose results do not.
    lam, lam2 = 0.5, 1 / size
    v = tensor([[0.2, 1.5, 3.0, 0.7]])
    point = size * v
    rows = point[0].numpy().astype(LONG)
    if kind == "group":
        groups = torch.tensor([0, 0, 1, 1])
        norms = [np.sqrt((rows[k : k + 2] ** 2).sum()) for k in (0, 2)]
        r = GroupL1(tensor([lam]), groups)
        np.testing.assert_allclose(r.norms(point)[0], np.array(norms, dtype=float), rtol=1e-14)
        return
    r = (ElasticNet if kind == "elastic net" else NonNegativeElasticNet)(
        tensor([lam]), tensor([lam2])
    )
    q = LONG(lam2)
    value = (lam * rows + q * rows * rows / 2).sum()
    assert r.value(point).item() == pytest.approx(float(value), rel=1e-13)
    tiny = ElasticNet(tensor([0.0]), tensor([size])) if kind == "elastic net" else (
        NonNegativeElasticNet(tensor([0.0]), tensor([size]))
    )  # fmt: skip
    conjugate = (rows * rows / (2 * LONG(size))).sum()
    assert tiny.conjugate(point).item() == pytest.approx(float(conjugate), rel=1e-13)


# ---- one-sided constraints -----------------------------------------------------------------------
HALF_OPEN = np.where(np.arange(N) % 3 == 0, 0.2, np.inf)
ONE_SIDED = {
    "nnls": (lambda: pl.nnls(A, b), 0.0, np.inf),
    "nnls, A >= 0": (lambda: pl.nnls(abs(A), b), 0.0, np.inf),
    "nnls, sparse": (lambda: pl.nnls(scipy.sparse.csr_array(A), b), 0.0, np.inf),
    "box without upper bounds": (lambda: box(A, b, -0.1, np.inf), -0.1, np.inf),
    "box without lower bounds": (lambda: box(A, b, -np.inf, 0.1), -np.inf, 0.1),
    "box, some open": (lambda: box(A, b, -0.05, HALF_OPEN), -0.05, HALF_OPEN),
    "positive without penalty": (lambda: positive(A, b, 0.0, 0.0), 0.0, np.inf),
    "positive l2": (lambda: positive(A, b, 0.0, 1e-3), 0.0, np.inf),
    "positive l1": (lambda: positive(A, b, 1e-3, 0.0), 0.0, np.inf),
}


def best(problem, lower, upper):
    """F* by SciPy's solver for bounds, with the penalty's linear and quadratic part."""
    op = problem.f.A
    dense = (op.A.to_dense() if op.A.layout != torch.strided else op.A).numpy()
    t, q = (float(torch.as_tensor(level).ravel()[0]) for level in problem.r.levels())
    target = problem.f.b[0].numpy()
    rows = np.vstack([dense, np.sqrt(q) * np.eye(N)])
    # t x = <a, x> for a in the range of the rows; here the columns are independent.
    shift = np.linalg.lstsq(rows.T, np.full(N, t), rcond=None)[0]
    y = np.append(target, np.zeros(N)) - shift
    found = scipy.optimize.lsq_linear(rows, y, (lower, upper), method="bvls", tol=1e-15)
    w = np.clip(found.x, lower, upper)
    return 0.5 * ((dense @ w - target) ** 2).sum() + t * w.sum() + q / 2 * (w**2).sum()


@pytest.mark.parametrize("name", ONE_SIDED)
def test_one_sided_constraints_have_a_true_gap(name, engine):
    build, lower, upper = ONE_SIDED[name]
    problem = build()
    least = best(problem, lower, upper)
    for tol in (1e-2, 1e-6, 1e-10):
        solution = solve(problem, tol=tol, max_iter=2000)
        assert solution.solved
        assert solution.gap.item() <= tol * solution.objective.item()
        assert solution.objective.item() - least <= solution.gap.item() + 1e-13 * least
    history = solve(problem, "fista-restart", tol=0, max_iter=80, record=True).history
    assert (history.gap[1:] >= history.objective[1:] - least - 1e-13 * least).all()
    assert history.gap[-1].item() <= 0.05 * history.gap[0].item()


def test_the_direction_is_computed_once_for_an_A(monkeypatch):
    from proxlearn.core import dual_cone

    calls = []
    slow = dual_cone.hull_weights
    monkeypatch.setattr(dual_cone, "hull_weights", lambda C: calls.append(1) or slow(C))
    prepared = pl.prepare(A)
    for target in (b, 2 * b, b[::-1].copy()):
        assert solve(pl.nnls(prepared, target), engine="torch").gap.isfinite().all()
    assert len(calls) == 1
    many = pl.nnls(np.stack([A, -A, A[::-1]]).astype(np.float32), np.stack([b, b, b]))
    assert solve(many, tol=1e-4, engine="torch").gap.isfinite().all()
    assert len(calls) == 4  # one an instance, through all slices and conversions


def test_solved_never_has_a_finite_gap_above_the_tolerance():
    rng = np.random.default_rng(0)
    for _ in range(60):
        m, n = rng.integers(1, 9, 2)
        C, d = rng.normal(size=(m, n)) * 10.0 ** rng.uniform(-3, 3, n), rng.normal(size=m)
        solution = solve(pl.nnls(C, d), max_iter=300)
        allowed = allowed_gap(1e-6, solution.objective, 0.5 * d @ d)
        if solution.solved and solution.gap.isfinite():
            assert (solution.gap <= (1 + 1e-9) * allowed).all()


@pytest.mark.parametrize("size", [1e-250, 1e-90, 1e-20, 1.0, 1e20])
@pytest.mark.parametrize("kind", ["lasso", "logistic"])
def test_unpenalised_columns_of_different_sizes_have_a_true_gap(kind, size):
    # The second unpenalised column is small: its gradient must vanish as exactly as the first's.
    weights, units = np.r_[0.0, 0.0, np.ones(N - 2)], np.r_[1.0, size, np.ones(N - 2)]
    target, lam = (b, 0.1) if kind == "lasso" else (LABELS, 0.02)
    least = solve(getattr(pl, kind)(A, target, lam, weights=weights), tol=1e-10).objective
    others = np.arange(N) != 1
    without = getattr(pl, kind)(A[:, others], target, lam, weights=weights[others])
    point = np.zeros(N)
    point[others] = solve(without, tol=1e-12).x
    problem = getattr(pl, kind)(A * units, target, lam, weights=weights)
    certificate = problem.certificate(tensor(point)[None])
    assert (certificate.objective > least + 1e-3 * least).all()  # the small column would help
    assert (certificate.gap >= certificate.objective - least - 1e-9 * least).all()


def least_of_two_columns(A, b):
    """The minimum of ||A x - b||^2 / 2, in fractions."""
    first, second, target = ([Fraction(v) for v in row] for row in (*A.T.tolist(), b.tolist()))
    dots = [[sum(map(mul, u, v)) for v in (first, second, target)] for u in (first, second)]
    (p, q, c), (_, s, d) = dots
    x = [(c * s - d * q) / (p * s - q * q), (p * d - q * c) / (p * s - q * q)]
    return sum(v * v for v in target) / 2 - (c * x[0] + d * x[1]) / 2


@pytest.mark.parametrize("large", [1e11, 1e12, 1e13, 1e14])
@pytest.mark.parametrize("middle", [1e3, 1e5])
def test_nearly_dependent_unpenalised_columns_have_a_true_gap_or_none(large, middle):
    # The directions of the two columns differ by less than rounding of their largest entries, and
    # along the difference F falls by more than the tolerance allows.
    A = np.array([[1.0, 0.0, 0.0], [0.0, middle, 1e-3], [large, 3 * large, 0.0]])
    b = np.array([1.0, 0.0, 100.0])
    solution = solve(pl.lasso(A, b, 1e3, weights=[0.0, 0.0, 1.0]))
    x = list(map(Fraction, solution.x.tolist()))
    fitted = [sum(map(mul, map(Fraction, row), x)) for row in A.tolist()]
    rest = map(sub, map(Fraction, b.tolist()), fitted)
    above = sum(r * r for r in rest) / 2 - least_of_two_columns(A[:, :2], b)
    assert above <= solution.gap.item() + 1e-13


# ---- optima at or near 0 -------------------------------------------------------------------------
inside = abs(x) + 0.01
EXACT = {
    "nnls": lambda: pl.nnls(A, A @ inside),
    "nnls without a direction": lambda: pl.nnls(A[:5], A[:5] @ inside),
    "box": lambda: box(A, A @ (0.1 * x), -1.0, 1.0),
    "simplex": lambda: pl.simplex_ls(A, A @ (inside / inside.sum())),
    "simplex of one point": lambda: pl.simplex_ls(A[:, :1], 2 * A[:, 0], 2.0),
    "lasso of b = 1e-310": lambda: pl.lasso(A, 1e-310 * b, 1e-312),
    "lasso of b = 0": lambda: pl.lasso(A, 0 * b, 1.0),
    "elastic net of b = 1e-310": lambda: pl.elastic_net(A, 1e-310 * b, 1e-312, 0.1),
    "nnls of b = 1e-310": lambda: pl.nnls(A, 1e-310 * b),
    "box around b": lambda: box(np.eye(M), b, -10.0, 10.0),
    "tiny lam": lambda: pl.lasso(A.T, A.T @ RNG.normal(size=M), 1e-30),
    "zero penalty": lambda: pl.Problem(least_squares(A.T, A.T @ b), Zero(), single=True),
}


@pytest.mark.parametrize("name", EXACT)
def test_an_optimum_of_zero_is_solved(name):
    problem = EXACT[name]()
    solution = solve(problem, max_iter=3000)
    assert solution.solved, solution
    at_zero = problem.objective(problem.nearest_to_zero())
    assert torch.equal(problem.at_zero, at_zero)
    if solution.gap.isfinite():
        assert (solution.gap <= 1.001 * allowed_gap(1e-6, solution.objective, at_zero)).all()
    assert solution.objective.item() <= 1e-9 * at_zero.item() + 1e-300


def test_the_floor_is_no_looser_than_machine_precision():
    assert allowed_gap(1e-6, 1.0, 1.0) == 1e-6
    assert allowed_gap(1e-6, 1e-12, 1.0) == EPS
    assert allowed_gap(0.0, 5.0, 1.0) == EPS
    assert np.isnan(allowed_gap(1e-6, np.inf, 1.0))
    arrays = allowed_gap(1e-6, np.array([1.0, 0.0]), np.array([1.0, 3.0]))
    np.testing.assert_allclose(arrays, [1e-6, 3 * EPS])
    # Far from 0 it changes nothing: an answer of 1e-9 is not good enough for 1e-12.
    problem = pl.lasso(A, b, 0.1)
    solution = solve(problem, "fista-restart", tol=1e-9, polish=False)
    relative = (solution.gap / solution.objective).item()
    assert 1e-13 < relative <= 1e-9
    again = solve(problem, "ista", tol=1e-2 * relative, x0=solution.x, max_iter=0)
    assert again.status == (pl.Status.MAX_ITER,)


def test_an_infinite_value_at_zero_allows_nothing():
    far = box(A, b, 1e200, 2e200)
    assert far.at_zero.item() == 0.0


# ---- single precision ----------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["lasso", "elastic net", "logistic"])
def test_single_precision_certifies_the_weights_that_were_given(kind):
    w = np.linspace(0.1, 3, N).astype(np.float32)
    A32, b32, lam, lam2 = A.astype(np.float32), b.astype(np.float32), 0.013, 0.07
    problem = {
        "lasso": lambda: pl.lasso(A32, b32, lam, weights=w),
        "elastic net": lambda: pl.elastic_net(A32, b32, lam, lam2, weights=w),
        "logistic": lambda: pl.logistic(A32, LABELS, lam / 10, weights=w),
    }[kind]()
    solution = solve(problem, tol=1e-4, max_iter=2000)
    assert solution.solved
    y = solution.x.numpy().astype(LONG)
    z = A32.astype(LONG) @ y
    t = LONG(np.float32(lam / 10 if kind == "logistic" else lam)) * w.astype(LONG)
    q = LONG(np.float32(lam2)) * w.astype(LONG) if kind == "elastic net" else 0
    if kind == "logistic":
        value = np.log1p(np.exp((1 - 2 * LABELS) * z)).mean()
    else:
        value = ((z - b32) ** 2).sum() / 2
    value = value + (t * abs(y) + q * y * y / 2).sum()
    # The products lam w are not rounded to float32: that would be 1e-8 off.
    assert solution.objective.item() == pytest.approx(float(value), rel=1e-14)


# ---- what is counted -----------------------------------------------------------------------------
W = np.r_[0.0, np.ones(N - 1)]
COUNTED = {
    "lasso": lambda C: pl.lasso(C, b, 0.05),
    "intercept": lambda C: pl.lasso(C, b, 0.05, weights=W),
    "nnls": lambda C: pl.nnls(C, b),
    "simplex": lambda C: pl.simplex_ls(C, b),
    "group": lambda C: pl.group_lasso(C, b, 0.1, GROUPS),
    "logistic": lambda C: pl.logistic(C, LABELS, 0.01),
    "logistic, intercept": lambda C: pl.logistic(C, LABELS, 0.01, weights=W),
    "softmax": lambda C: pl.softmax(C, LABELS, 0.01),
}


@pytest.mark.slow
@pytest.mark.parametrize("tol", [0, 1e-6])
@pytest.mark.parametrize("method", ["fista-restart", "general"])
@pytest.mark.parametrize("name", COUNTED)
def test_gradients_are_neither_left_out_nor_invented(name, method, tol):
    C = Counting(Dense(tensor(A)))
    solution = solve(COUNTED[name](C), method, tol=tol, max_iter=70, polish=False)
    # The certificate of the answer is part of the answer: one gradient, with unpenalised columns
    # another, and F(0) if nothing asked for it before. Half a gradient is counted as one.
    computed = (C.calls["forward"] + C.calls["adjoint"]) / 2
    answer = 2 if "intercept" in name else 1.5 if name == "simplex" and tol == 0 else 1
    assert computed - answer <= solution.grad_evals.item() <= computed - answer + 1


@pytest.mark.parametrize("max_iter", [1, 20, 200])
@pytest.mark.parametrize("optimizer", ["auto", "fista-restart"])
@pytest.mark.parametrize("polish", [True, False])
def test_no_more_iterations_than_max_iter(optimizer, max_iter, polish):
    rng = np.random.default_rng(5)
    hard = rng.normal(size=(3, 30, 60)) * np.logspace(-3, 0, 60)
    problem = pl.lasso(hard, rng.normal(size=(3, 30)), 1e-6)
    solution = solve(problem, optimizer, tol=1e-13, max_iter=max_iter, polish=polish)
    assert (solution.iterations <= max_iter).all()
    assert (solution.grad_evals >= solution.iterations).all()


def test_no_more_iterations_than_max_iter_with_working_sets():
    rng = np.random.default_rng(5)
    wide = rng.normal(size=(20, 6000)) * np.logspace(-2, 0, 6000)
    solution = solve(pl.lasso(wide, rng.normal(size=20), 1e-4), tol=1e-12, max_iter=15)
    assert solution.iterations.item() <= 15
