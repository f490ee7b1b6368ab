"""One LASSO, elastic net or NNLS with a dense A, and fits of estimators: one call of the core."""

import numpy as np
import pytest
import scipy.optimize

import proxlearn as pl
from proxlearn.core import kernel

SHAPES = [(40, 1), (1, 7), (30, 10), (60, 24), (500, 40), (20, 100), (90, 200), (150, 400)]
DEFECTS = [
    "none",
    "correlated",
    "zero columns",
    "duplicate columns",
    "opposite columns",
    "exact fit",
]


def drawn(m, n, defect, seed=0):
    """A in Fortran order and b, of this size."""
    rng = np.random.default_rng([seed, m, n])
    A = rng.standard_normal((m, n))
    if defect == "correlated":
        A = A @ (0.9 ** abs(np.subtract.outer(np.arange(n), np.arange(n))))
    if defect == "zero columns":
        A[:, rng.random(n) < 0.3] = 0.0
    if defect == "duplicate columns":
        A = A[:, rng.integers(0, n, n)]
    if defect == "opposite columns":
        A = A[:, rng.integers(0, n, n)] * rng.choice([-1, 1], n)
    b = A @ (rng.standard_normal(n) * (rng.random(n) < 0.4))
    noise = 0.0 if defect == "exact fit" else 0.5
    return np.asfortranarray(A), b + noise * rng.standard_normal(m)


def proven_gap(A, b, x, lam, lam2, nonnegative):
    """F(x), and how far above the minimum it can be at most, by the residual's dual point."""
    u = b - A @ x
    F = 0.5 * u @ u + lam * abs(x).sum() + 0.5 * lam2 * x @ x
    c = A.T @ u
    sizes = np.maximum(c, 0) if nonnegative else abs(c)
    if lam2 > 0:
        return F, F - (u @ b - 0.5 * u @ u - np.square(np.maximum(sizes - lam, 0)).sum() / 2 / lam2)
    t = min(1.0, lam / sizes.max()) if sizes.max() > 0 else 1.0
    return F, F - t * (u @ b - 0.5 * t * u @ u)


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("ratio", [0.0, 0.3])
@pytest.mark.parametrize("defect", DEFECTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_answers_are_those_of_the_description(shape, defect, ratio, nonnegative):
    """With a start it takes the other way; C order is copied. The gap is computed again here."""
    A, b = drawn(*shape, defect)
    top = max(float((A.T @ b).max() if nonnegative else abs(A.T @ b).max()), 1e-3)
    for share in (0.5, 0.05, 0.002):
        lam = share * top
        more = {"nonnegative": nonnegative}

        def problem(A, lam=lam, more=more):
            return (
                pl.elastic_net(A, b, lam, ratio * lam, **more)
                if ratio
                else pl.lasso(A, b, lam, **more)
            )

        expected = pl.solve(problem(A), tol=1e-9, x0=np.zeros(A.shape[1])).objective[0]
        for plain in (problem(A), problem(np.ascontiguousarray(A))):
            assert plain.plain is not None
            found = pl.solve(plain, tol=1e-9)
            F, gap = proven_gap(A, b, found.x, lam, ratio * lam, nonnegative)
            assert found.solved, found
            assert gap <= 1e-9 * F + 1e-13 * (b @ b)
            assert found.objective[0] == pytest.approx(F, rel=1e-12, abs=1e-13 * (b @ b))
            assert found.gap[0] == pytest.approx(max(gap, 0.0), rel=1e-3, abs=1e-12 * (b @ b))
            assert not nonnegative or (found.x >= 0).all()
            assert found.objective[0] == pytest.approx(expected, rel=2e-9, abs=1e-13 * (b @ b))


def test_large_data_in_rows_are_not_copied():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((3000, 50))
    b = A[:, 0] + rng.standard_normal(3000)
    problem = pl.lasso(A, b, 30.0)
    found = pl.solve(problem, tol=1e-9)
    assert problem.plain.A is A
    assert problem.model.A.values is A
    assert found.solved
    F, gap = proven_gap(A, b, found.x, 30.0, 0.0, False)
    assert gap <= 1e-9 * F


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(1, 7), (40, 1), (9, 9), (60, 24), (333, 17), (90, 200)])
def test_a_fit_is_that_of_the_centred_and_weighted_problem(shape, order, intercept, weighted):
    A, b = drawn(*shape, "none")
    A = np.asarray(A + 3.0, order=order)
    b, s = b + 5.0, np.random.default_rng(1).random(len(b)) * 3 if weighted else None
    s = None if s is None else np.where(np.arange(len(b)) % 5 == 4, 0.0, s)
    given = A.copy(), b.copy()
    found = kernel.fit_plain(A, b, s, 0.4, 0.2, False, intercept, 1e-9, 1000)
    assert found is not None
    x, c, F, gap, status = found[:5]
    share = np.full(len(b), 1.0) if s is None else s
    mean, middle = np.zeros(A.shape[1]), 0.0
    if intercept:
        mean, middle = np.average(A, 0, share), np.average(b, weights=share)
    roots = np.sqrt(share)
    centred, target = roots[:, None] * (A - mean), roots * (b - middle)
    value, bound = proven_gap(centred, target, x, 0.4, 0.2, False)
    assert status == 0
    assert c == pytest.approx(middle - mean @ x, abs=1e-9)
    assert F[0] == pytest.approx(value, rel=1e-10, abs=1e-12 * (b @ b))
    assert bound <= 1e-9 * value + 1e-12 * (b @ b)
    assert gap[0] == pytest.approx(max(bound, 0.0), rel=1e-2, abs=1e-10 * (b @ b))
    assert (given[0] == A).all()
    assert (given[1] == b).all()


def test_a_constant_target_has_no_coefficients():
    A, _ = drawn(50, 8, "none")
    x, c, F, gap, status = kernel.fit_plain(
        A, np.full(50, 0.1), np.full(50, 0.7), 1e-9, 0.0, False, True, 1e-9, 1000
    )[:5]
    assert (x == 0).all()
    assert c == pytest.approx(0.1)
    assert (F[0], gap[0], status) == (0.0, 0.0, 0)


def test_fits_of_another_form_take_another_way():
    A, b = drawn(20, 5, "none")
    fit = kernel.fit_plain
    assert fit(A[::2], b[:10].copy(), None, 0.5, 0.0, False, True, 1e-6, 100) is None
    assert fit(A, b, None, 0.0, 0.0, False, True, 1e-6, 100) is None
    assert fit(A, b.astype(np.float32), None, 0.5, 0.0, False, True, 1e-6, 100) is None
    many = np.zeros((400_000, 1)), np.zeros(400_000)
    assert fit(*many, None, 0.5, 0.0, False, True, 1e-6, 9) is None
    assert fit(A.astype(np.float32), b, None, 0.5, 0.0, False, True, 1e-6, 100) is None
    A[3, 2] = np.nan
    assert fit(A, b, None, 0.5, 0.0, False, True, 1e-6, 100) is None


def proven_gap_of_nnls(A, b, x):
    """F(x) and its gap, from the residual moved into the dual cone by the sum of the columns."""
    u = b - A @ x
    F = 0.5 * u @ u
    length = np.linalg.norm(A, axis=0)
    inward = -(A / np.where(length > 0, length, 1)).sum(1)
    slope, c = A.T @ inward, A.T @ u
    far = max(0.0, (c[length > 0] / -slope[length > 0]).max(initial=0.0))
    u = u + far * inward
    t = u @ b / (u @ u) if u @ u > 0 else 1.0
    return F, F - t * (u @ b - 0.5 * t * u @ u)


@pytest.mark.parametrize("defect", ["none", "zero columns", "duplicate columns", "exact fit"])
@pytest.mark.parametrize("shape", SHAPES)
def test_nonnegative_least_squares(shape, defect):
    """A is non-negative, so that the sum of its columns leads into the dual cone."""
    A, b = drawn(*shape, defect)
    A = np.asfortranarray(abs(A))
    if defect == "exact fit":
        b = A @ np.maximum(np.random.default_rng(1).standard_normal(A.shape[1]), 0.0)
    problem, other = pl.nnls(A, b), pl.nnls(np.ascontiguousarray(A[:, :]), b)
    assert problem.plain is not None
    found = pl.solve(problem, tol=1e-8)
    assert found.solved, found
    assert (found.x >= 0).all()
    F, gap = proven_gap_of_nnls(A, b, found.x)
    assert found.objective[0] == pytest.approx(F, rel=1e-12, abs=1e-13 * (b @ b))
    assert gap <= 1e-8 * F + 1e-13 * (b @ b)
    assert found.gap[0] <= 1e-8 * F + 1e-15 * (b @ b)
    expected = pl.solve(other, tol=1e-8).objective[0]
    assert found.objective[0] == pytest.approx(expected, rel=2e-8, abs=1e-13 * (b @ b))


def test_nonnegative_least_squares_whose_sum_of_columns_leads_nowhere():
    """Columns in all directions: there is no gap, and the general way says so."""
    A, b = drawn(40, 30, "opposite columns")
    found = pl.solve(pl.nnls(A, b))
    other = pl.solve(pl.nnls(np.ascontiguousarray(A), b))
    assert found.solved
    assert found.gap[0] == other.gap[0] == np.inf
    assert found.objective[0] == pytest.approx(other.objective[0], rel=1e-9)


def test_the_description_of_a_plain_nnls_is_the_problem():
    A, b = drawn(30, 10, "none")
    problem = pl.nnls(abs(A), b)
    assert problem.plain is not None
    assert problem.model.penalty.uniform == (0.0, 0.0, 0.0, np.inf)
    assert problem.model.penalty.lam is None
    torch = pl.solve(problem, engine="torch", tol=1e-9, max_iter=20_000)
    np.testing.assert_allclose(pl.solve(problem).x, torch.x, atol=1e-4)


def test_no_lam_is_no_lasso():
    """A penalty of 0 is not taken for non-negative least squares."""
    A, b = drawn(20, 5, "none")
    with pytest.raises(pl.InputError, match="lam"):
        pl.lasso(A, b, 0.0, nonnegative=True)


def test_the_description_of_a_plain_problem_is_the_problem():
    A, b = drawn(30, 10, "none")
    problem = pl.elastic_net(A, b, 0.7, 0.2, nonnegative=True)
    model = problem.model
    assert model.A.values is A
    assert model.b.base is b
    assert model.penalty.uniform == (0.7, 0.2, 0.0, np.inf)
    described = pl.solve(problem, x0=np.ones(10), tol=1e-10)
    torch = pl.solve(problem, engine="torch", tol=1e-10, max_iter=20_000)
    found = pl.solve(problem, tol=1e-10)
    np.testing.assert_allclose(found.x, described.x, atol=1e-6)
    np.testing.assert_allclose(found.x, torch.x, atol=1e-4)


@pytest.mark.parametrize("nonnegative", [False, True])
def test_arrays_that_changed_since_are_solved_as_they_are(nonnegative):
    """A^T b of the old arrays may choose columns, and proves nothing."""
    A, b = drawn(60, 24, "none")
    problem = pl.lasso(A, b, 0.5, nonnegative=nonnegative)
    A *= -3.0
    b += 1.0
    found = pl.solve(problem)
    fresh = pl.solve(pl.lasso(A.copy(order="F"), b.copy(), 0.5, nonnegative=nonnegative))
    assert found.solved
    assert found.objective[0] == pytest.approx(fresh.objective[0], rel=1e-5)


def test_another_shape_of_the_same_memory_is_not_read():
    A, b = drawn(24, 12, "none")
    plain = kernel.plain_squares(A, b, 0.5, 0.0, False)
    A.resize((24, 11), refcheck=False)
    assert kernel.solve_plain(plain, 1e-6, 1000) is None


@pytest.mark.parametrize(
    ("name", "value"), [("A", np.nan), ("A", np.inf), ("b", np.nan), ("lam", -1.0), ("lam", np.nan)]
)
def test_bad_numbers_are_refused_in_words(name, value):
    A, b = drawn(20, 5, "none")
    lam = 0.5
    if name == "A":
        A[3, 2] = value
    elif name == "b":
        b[3] = value
    else:
        lam = value
    with pytest.raises(pl.InputError, match=name):
        pl.lasso(A, b, lam)


@pytest.mark.parametrize(
    ("limits", "said"),
    [({"tol": -1.0}, "tol"), ({"tol": np.nan}, "tol"), ({"max_iter": -3}, "max_iter")],
)
def test_bad_limits_are_refused_in_words(limits, said):
    A, b = drawn(20, 5, "none")
    with pytest.raises(pl.InputError, match=said):
        pl.solve(pl.lasso(A, b, 0.5), **limits)


def test_extreme_numbers_are_scaled_as_ever():
    A, b = drawn(20, 5, "none")
    for power in (-160.0, 160.0):
        s = 10.0**power
        found = pl.solve(pl.lasso(A * s, b, 0.5 * s))
        expected = pl.solve(pl.lasso(A, b, 0.5))
        assert found.solved
        np.testing.assert_allclose(found.x * s, expected.x, rtol=1e-4, atol=1e-6)


def test_the_environment_still_names_the_engine(monkeypatch):
    A, b = drawn(20, 5, "none")
    monkeypatch.setenv("PROXLEARN_ENGINE", "torch")
    assert pl.solve(pl.lasso(A, b, 0.5)).engine == "torch"
    monkeypatch.setenv("PROXLEARN_ENGINE", "core")
    assert pl.solve(pl.lasso(A, b, 0.5)).engine == "core"


def test_one_iteration_is_a_limit():
    A, b = drawn(20, 100, "correlated")
    lam = 1e-3 * abs(A.T @ b).max()
    found = pl.solve(pl.lasso(A, b, lam), max_iter=1, tol=1e-12)
    assert found.status[0] == "MAX_ITER"
    assert found.iterations[0] == 1


def test_a_nonnegative_path():
    A, b = drawn(60, 24, "none")
    top = pl.path(pl.lasso(A, b, 1.0, nonnegative=True), n_lams=5, eps=0.01)
    assert top.solved
    assert (top.x >= 0).all()
    assert top.lams[0] == pytest.approx((A.T @ b).max())
    for lam, x in zip(top.lams, top.x, strict=True):
        one = pl.solve(pl.lasso(A, b, float(lam), nonnegative=True))
        np.testing.assert_allclose(x, one.x, atol=1e-4)


def test_opposite_columns_do_not_lead_away_from_the_minimiser():
    """Along c and -c nothing changes, and rounding asked for steps there until F was 1e109."""
    rng = np.random.default_rng(1757)
    for _ in range(12):
        A = rng.standard_normal((35, 60)) * (rng.random((35, 60)) < 0.5)
        A = np.hstack([A, -A, A[:, ::2]])
        b = A @ np.abs(rng.standard_normal(150)) + 0.1 * rng.standard_normal(35)
        best = 0.5 * scipy.optimize.nnls(A, b)[1] ** 2
        for tol in (1e-3, 1e-6, 1e-12):
            for own in (A, A[None]):
                found = pl.solve(pl.nnls(own, b if own is A else b[None]), tol=tol)
                assert found.objective[0] <= best + max(1e-4, tol) * (b @ b)
