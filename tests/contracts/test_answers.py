"""Answers of `solve`: right by the certificate, by other solvers, and under changes of units."""

import functools
import warnings

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import torch

import proxlearn as pl
from proxlearn.problems import penalties, smooth
from proxlearn.problems.operators import Dense

M, N = 60, 40
GROUPS = np.arange(N) // 4
RNG = np.random.default_rng(0)
A = RNG.normal(size=(M, N)) / M**0.5
TRUTH = RNG.normal(size=N) * (RNG.random(N) < 0.3)
b = A @ TRUTH + 0.1 * RNG.normal(size=M)
COUNTS = np.round(np.exp(b))
LABELS = (A @ TRUTH + 0.2 * RNG.normal(size=M) > 0).astype(float)


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def box(A, b, low=-0.3, high=0.4):
    f = smooth.LeastSquares(Dense(tensor(A)), tensor(b)[None])
    return pl.Problem(f, penalties.Box(tensor([[low]]), tensor([[high]])), single=True)


T = tensor(A)
PROBLEMS = {
    "lasso": lambda: pl.lasso(T, b, lam=0.1),
    "lasso-weighted": lambda: pl.lasso(T, b, lam=0.1, weights=np.linspace(0.5, 2, N)),
    "lasso-intercept": lambda: pl.lasso(T, b, lam=0.1, weights=np.arange(N) > 0),
    "elastic-net": lambda: pl.elastic_net(T, b, lam=0.1, lam2=0.05),
    "huber": lambda: pl.huber(T, b, lam=0.1, delta=0.2),
    "huber-intercept": lambda: pl.huber(T, b, lam=0.1, delta=0.2, weights=np.arange(N) > 0),
    "group": lambda: pl.group_lasso(T, b, lam=0.2, groups=GROUPS),
    "group-unpenalised": lambda: pl.group_lasso(T, b, 0.2, GROUPS, weights=np.arange(N // 4) % 3),
    "sparse-group": lambda: pl.sparse_group_lasso(T, b, 0.2, GROUPS, l1_ratio=0.3),
    "poisson": lambda: pl.poisson(T, COUNTS, lam=0.02),
    "logistic": lambda: pl.logistic(T, LABELS, lam=0.01),
    "logistic-intercept": lambda: pl.logistic(T, LABELS, lam=0.01, weights=np.arange(N) > 0),
    "softmax": lambda: pl.softmax(T[:, :10], LABELS + (b > 1), lam=0.01),
    "simplex": lambda: pl.simplex_ls(T, b, radius=3.0),
    "sum-at-most": lambda: pl.simplex_ls(T, b, radius=3.0, at_most=True),
    "box": lambda: box(A, b),
    "nnls": lambda: pl.nnls(T, b),
}
IN_CORE = list(PROBLEMS)
ENGINES = [
    (e, name) for name in PROBLEMS for e in ("core", "torch") if e != "core" or name in IN_CORE
]
over_engines = pytest.mark.parametrize(("engine", "name"), ENGINES)
METHODS = {
    "ista": PROBLEMS,
    "fista": PROBLEMS,
    "fista-restart": PROBLEMS,
    "pgd": [
        name for name in PROBLEMS if name not in ("simplex", "sum-at-most") and "group" not in name
    ],
    "adam": ["lasso", "elastic-net", "group", "logistic", "softmax"],
    "subgradient": ["lasso", "elastic-net", "group", "logistic", "softmax"],
}


@functools.cache
def least(name):
    """F at the best point that a long run reaches: an upper bound on F*, tight to rounding."""
    problem = PROBLEMS[name]()
    core = pl.solve(problem, tol=1e-13, engine="core")
    loop = pl.solve(problem, tol=1e-13, max_iter=1000, engine="torch", x0=core.x)
    best = core if core.objective <= loop.objective else loop
    assert (best.gap <= 1e-10 * best.objective).all()
    return best.objective


def slow_where(slow, rows):
    """Parameters of a test; `make quick` leaves out those which `slow` is true of."""
    return [pytest.param(*row, marks=pytest.mark.slow if slow(*row) else ()) for row in rows]


# Of the two slower methods, which have the same certificate, `make quick` runs the LASSO alone.
RUNS = slow_where(
    lambda method, name: method in ("ista", "fista") and name != "lasso",
    [(method, name) for method in METHODS for name in METHODS[method]],
)


@pytest.mark.parametrize(("method", "name"), RUNS)
def test_gap_is_never_below_the_true_suboptimality(method, name):
    best = least(name)
    history = pl.solve(PROBLEMS[name](), method, tol=0, max_iter=60, record=True).history
    rounding = 1e-13 * history.objective.abs()
    assert (history.gap >= history.objective - best - rounding).all()
    assert history.gap[-1] < history.gap[0]
    assert history.gap.isfinite().any()


TOLERANCES = slow_where(
    lambda engine, name, tol: engine == "torch" and tol in (1e-1, 1e-9),
    [(engine, name, tol) for engine, name in ENGINES for tol in (1e-1, 1e-3, 1e-6, 1e-9)],
)


@pytest.mark.parametrize(("engine", "name", "tol"), TOLERANCES)
def test_solved_means_that_the_tolerance_is_met(engine, name, tol):
    solution = pl.solve(PROBLEMS[name](), tol=tol, max_iter=4000, engine=engine)
    assert solution.engine == engine
    assert solution.status == (pl.Status.SOLVED,)
    assert (solution.gap <= tol * solution.objective).all()
    assert ((solution.objective - least(name)) / least(name) <= tol).all()
    certificate = PROBLEMS[name]().certificate(solution.x[None])
    assert certificate.objective.item() == pytest.approx(solution.objective.item(), rel=1e-12)


def lasso_value(x, lam=0.1, lam2=0.0):
    return np.sum((A @ x - b) ** 2) / 2 + lam * np.abs(x).sum() + lam2 / 2 * np.sum(x**2)


def logistic_value(x, lam=0.01):
    return np.mean(np.logaddexp(0, (1 - 2 * LABELS) * (A @ x))) + lam * np.abs(x).sum()


def ours(problem, tol=1e-12):
    """x and F of the default engine; the loop in PyTorch has to agree where both can solve."""
    solution = pl.solve(problem, tol=tol, max_iter=10000)
    assert solution.solved, solution
    if solution.engine == "core":
        other = pl.solve(problem, tol=tol, max_iter=10000, engine="torch")
        assert other.objective.item() == pytest.approx(solution.objective.item(), rel=2 * tol)
    return np.asarray(solution.x), float(solution.objective[0])


def agree(value, x, objective, theirs):
    """Both points have the same objective by a formula of this file, to 1e-8."""
    assert value(x) == pytest.approx(objective, rel=1e-12)
    assert value(x) == pytest.approx(value(theirs), rel=1e-8)


@pytest.mark.parametrize("package", ["sklearn.linear_model", "celer"])
def test_lasso_agrees_with(package):
    Lasso = pytest.importorskip(package).Lasso  # both minimise 1/(2m) ||Ax - b||^2 + alpha |x|
    model = Lasso(alpha=0.1 / M, fit_intercept=False, tol=1e-12, max_iter=100000).fit(A, b)
    agree(lasso_value, *ours(PROBLEMS["lasso"]()), model.coef_)


def test_elastic_net_agrees_with_scikit_learn():
    from sklearn.linear_model import ElasticNet

    model = ElasticNet(
        alpha=0.15 / M, l1_ratio=0.1 / 0.15, fit_intercept=False, tol=1e-12, max_iter=100000
    ).fit(A, b)
    agree(lambda x: lasso_value(x, lam2=0.05), *ours(PROBLEMS["elastic-net"]()), model.coef_)


@pytest.mark.parametrize("package", ["sklearn.linear_model", "celer"])
def test_logistic_agrees_with(package):
    LogisticRegression = pytest.importorskip(package).LogisticRegression
    options = {"C": 1 / (0.01 * M), "penalty": "l1", "fit_intercept": False, "max_iter": 100000}
    if package != "celer":
        options["solver"] = "liblinear"
    with warnings.catch_warnings():  # newer versions announce the end of the word "penalty"
        warnings.filterwarnings("ignore", message=".*penalty")
        model = LogisticRegression(tol=1e-12, **options).fit(A, LABELS)
    agree(logistic_value, *ours(PROBLEMS["logistic"]()), model.coef_[0])


def test_nnls_agrees_with_scipy():
    problem = pl.nnls(A, b)
    x, objective = ours(problem, tol=1e-10)
    agree(lambda x: lasso_value(x, lam=0), x, objective, scipy.optimize.nnls(A, b)[0])
    assert (x >= 0).all()
    assert (x == 0).any()


@pytest.mark.slow
@pytest.mark.parametrize("name", [
    "simplex", "sum-at-most", "box", "group", "group-unpenalised", "sparse-group", "lasso-weighted",
    "lasso-intercept",
])  # fmt: skip
def test_agrees_with_a_conic_solver(name):
    cp = pytest.importorskip("cvxpy")
    z = cp.Variable(N)
    penalty, constraints = 0, []
    if name == "simplex":
        constraints = [z >= 0, cp.sum(z) == 3]
    if name == "sum-at-most":
        constraints = [z >= 0, cp.sum(z) <= 3]
    if name == "box":
        constraints = [z >= -0.3, z <= 0.4]
    lengths = [cp.norm(z[g == GROUPS], 2) for g in range(GROUPS.max() + 1)]
    if name == "group":
        penalty = 0.2 * sum(lengths)
    if name == "group-unpenalised":
        penalty = 0.2 * sum(g % 3 * length for g, length in enumerate(lengths))
    if name == "sparse-group":
        penalty = 0.2 * (0.3 * cp.norm1(z) + 0.7 * sum(lengths))
    if name == "lasso-weighted":
        penalty = 0.1 * np.linspace(0.5, 2, N) @ cp.abs(z)
    if name == "lasso-intercept":
        penalty = 0.1 * cp.norm1(z[1:])
    model = cp.Problem(cp.Minimize(cp.sum_squares(A @ z - b) / 2 + penalty), constraints)
    model.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    x, objective = ours(PROBLEMS[name](), tol=1e-11)
    assert objective == pytest.approx(model.value, rel=1e-8)
    assert np.abs(x - z.value).max() < 1e-4


@pytest.mark.parametrize("factor", [1.0, 1.5, 100.0])
@pytest.mark.parametrize("name", ["lasso", "elastic-net", "logistic", "group", "softmax"])
def test_zero_when_lambda_is_at_least_lambda_max(name, factor):
    least_squares = np.abs(A.T @ b).max()
    problem = {
        "lasso": lambda t: pl.lasso(A, b, lam=t * least_squares),
        "elastic-net": lambda t: pl.elastic_net(A, b, lam=t * least_squares, lam2=0.1),
        "logistic": lambda t: pl.logistic(
            A, LABELS, lam=t * np.abs(A.T @ (0.5 - LABELS)).max() / M
        ),
        "group": lambda t: pl.group_lasso(
            A, b, t * np.linalg.norm((A.T @ b).reshape(-1, 4), axis=1).max(), GROUPS
        ),
        "softmax": lambda t: pl.softmax(A, LABELS, lam=t * np.abs(A.T @ (0.5 - LABELS)).max() / M),
    }[name]
    factor += 1e-12  # lambda_max itself is only known to rounding
    solution = pl.solve(problem(factor), tol=1e-9)
    assert solution.solved
    assert (solution.x == 0).all()
    assert solution.iterations.item() <= 1
    below = pl.solve(problem(0.9), tol=1e-9, max_iter=3000)
    assert (below.x != 0).any()
    assert pl.solve(problem(factor), tol=1e-9, engine="torch").iterations.item() == 1


C, D = 1e3, 1e-4
SCALED = {  # A -> C A, b -> D b; what x is multiplied by
    "lasso": (lambda s, t: pl.lasso(s * A, t * b, lam=s * t * 0.1), D / C),
    "elastic-net": (lambda s, t: pl.elastic_net(s * A, t * b, s * t * 0.1, s * s * 0.05), D / C),
    "group": (lambda s, t: pl.group_lasso(s * A, t * b, s * t * 0.2, GROUPS), D / C),
    "sparse-group": (lambda s, t: pl.sparse_group_lasso(s * A, t * b, s * t * 0.2, GROUPS), D / C),
    "simplex": (lambda s, t: pl.simplex_ls(s * A, t * b, radius=t / s * 3), D / C),
    "sum-at-most": (lambda s, t: pl.simplex_ls(s * A, t * b, t / s * 3, at_most=True), D / C),
    "box": (lambda s, t: box(s * A, t * b, -0.3 * t / s, 0.4 * t / s), D / C),
    "nnls": (lambda s, t: pl.nnls(s * A, t * b), D / C),
    "logistic": (lambda s, t: pl.logistic(s * A, LABELS, lam=s * 0.01), 1 / C),
}


@pytest.mark.parametrize("name", [name for name in SCALED if name in IN_CORE])
@pytest.mark.parametrize("scale", [1e3, 1e-5, 1e60, 1e-60])
def test_units_change_the_answer_of_the_core_as_they_must(name, scale):
    build, _ = SCALED[name]
    factor = D / scale if name != "logistic" else 1 / scale
    plain = pl.solve(build(1, 1), tol=1e-10, engine="core")
    scaled = pl.solve(build(scale, D), tol=1e-10, engine="core")
    assert plain.solved
    assert scaled.solved
    x, y = (np.asarray(solution.x) for solution in (plain, scaled))
    assert np.abs(y / factor - x).max() <= 1e-6 * np.abs(x).max()


@pytest.mark.parametrize(
    "name", slow_where(lambda name: name in ("group", "sparse-group", "nnls"), zip(SCALED))
)
def test_units_change_the_answer_as_they_must(name):
    build, factor = SCALED[name]
    options = {"tol": 1e-10, "max_iter": 3000, "polish": False}
    plain = pl.solve(build(1, 1), "fista-restart", **options)
    scaled = pl.solve(build(C, D), "fista-restart", **options)
    assert plain.solved
    assert scaled.solved
    assert abs(scaled.x - factor * plain.x).max() <= 1e-6 * factor * abs(plain.x).max()
    assert abs(scaled.iterations - plain.iterations) <= 2  # decided by rounding, not by units


@pytest.mark.parametrize("form", ["csr", "coo", "csc", "operator", "torch-sparse", "list"])
def test_every_form_of_the_matrix_gives_the_same_answer(form):
    S = np.where(np.abs(A) > 0.05, A, 0)
    given = {
        "csr": scipy.sparse.csr_matrix,
        "coo": scipy.sparse.coo_array,
        "csc": scipy.sparse.csc_matrix,
        "operator": scipy.sparse.linalg.aslinearoperator,
        "torch-sparse": lambda S: torch.tensor(S).to_sparse(),
        "list": lambda S: S.tolist(),
    }[form](S)
    for build in (lambda A: pl.lasso(A, b, 0.1), lambda A: pl.logistic(A, LABELS, 0.01)):
        dense, other = (pl.solve(build(X), tol=1e-12, max_iter=3000) for X in (S, given))
        assert other.solved
        assert other.engine == ("torch" if form == "operator" else "core")
        assert abs(dense.x - np.asarray(other.x)).max() < 1e-5
        assert abs(dense.objective - np.asarray(other.objective)) <= 1e-11 * dense.objective


@over_engines
def test_single_precision_reaches_a_tolerance_of_1e_4(engine, name):
    problem = PROBLEMS[name]().to(torch.float32)
    solution = pl.solve(problem, tol=1e-4, max_iter=2000, engine=engine)
    assert solution.solved, solution
    assert solution.x.dtype == torch.float32
    assert solution.objective.dtype == solution.gap.dtype == torch.float64
    assert (solution.objective <= least(name) * (1 + 1.1e-4)).all()


LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "reversed": lambda A: np.ascontiguousarray(A[::-1, ::-1])[::-1, ::-1],
    "strided": lambda A: np.repeat(A, 2, axis=1)[:, ::2],
    "read-only": lambda A: np.frombuffer(A.tobytes(), A.dtype).reshape(A.shape),
    "integers": lambda A: np.round(10 * A).astype(np.int32),
    "other byte order": lambda A: A.astype(">f8"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("batch", [False, True])
def test_every_layout_of_an_array_gives_the_same_answer(layout, batch):
    given = LAYOUTS[layout](A)
    plain = np.ascontiguousarray(given, dtype=np.float64)
    if batch:
        given, plain = np.stack([given] * 3)[::2], np.stack([plain] * 2)
    found, expected = (pl.solve(pl.lasso(X, b, 0.1), tol=1e-10) for X in (given, plain))
    assert found.engine == "core"
    np.testing.assert_allclose(found.x, expected.x, atol=1e-9)


@pytest.mark.parametrize("subclass", [np.matrix, np.ma.MaskedArray, np.memmap])
def test_subclasses_of_arrays_are_taken_for_their_numbers(subclass):
    for build in (pl.nnls, pl.simplex_ls, lambda A, b: pl.lasso(A, b, 0.1)):
        found = pl.solve(build(A.view(subclass), b))
        np.testing.assert_array_equal(found.x, pl.solve(build(A, b)).x)
