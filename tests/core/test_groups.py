"""Group penalties and several tasks in the core, beside other solvers and its own other ways."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import MultiTaskLasso

import proxlearn as pl
from proxlearn.core.glm import Limits, describe, path_glm, solve_glm
from proxlearn.core.penalty_kinds import Groups
from proxlearn.solving.paths import lam_max

GROUPS = np.array([0, 1, 0, 2, 2, 3, 3, 3, 1, 4, 4, 4, 5, 5, 5, 5])
N = len(GROUPS)
LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "sparse": lambda X: scipy.sparse.csr_array(np.where(np.abs(X) > 0.7, X, 0.0)),
    "float32": lambda X: X.astype(np.float32),
}


def draw(seed, m, n=N, tasks=None):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((m, n)), rng.standard_normal((m,) if tasks is None else (m, tasks))


def multitask_objective(A, Y, X, level):
    return 0.5 * ((Y - A @ X) ** 2).sum() + (level * np.linalg.norm(X, axis=1)).sum()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("m", "n"), [(40, 12), (15, 40)])
def test_several_tasks_agree_with_scikit_learn(layout, m, n):
    X, Y = draw(m, m, n, tasks=4)
    A = LAYOUTS[layout](X)
    dense = (A.toarray() if scipy.sparse.issparse(A) else A).astype(float)
    single = layout == "float32"
    Y = Y.astype(np.float32).astype(float)  # what A's precision holds of it
    lam = float(np.float32(0.5 * np.linalg.norm(dense.T @ Y, axis=1).max()))
    solution = pl.solve(pl.multitask_lasso(A, Y, lam), tol=1e-6 if single else 1e-11)
    assert (solution.solved, solution.engine) == (True, "core")
    found = solution.x.reshape(n, 4)
    theirs = MultiTaskLasso(lam / m, fit_intercept=False, tol=1e-12, max_iter=10**5).fit(dense, Y)
    np.testing.assert_allclose(found, theirs.coef_.T, atol=1e-3 if single else 1e-5)
    exact = multitask_objective(dense, Y, found.astype(float), lam)
    assert solution.objective[0] == pytest.approx(exact, rel=1e-12)
    assert (np.abs(found).max(1) == 0).any()


def test_tasks_of_a_batch_with_weights_and_a_free_row():
    A, Y = draw(3, 20, 9, tasks=3)
    w = np.arange(9.0) % 4
    pair = np.stack([Y, Y[::-1]])
    batch = pl.solve(pl.multitask_lasso(A, pair, [0.5, 1.0], weights=w), tol=1e-10)
    assert batch.solved
    for i, lam in enumerate([0.5, 1.0]):
        X = batch.x[i].reshape(9, 3)
        c = A.T @ (pair[i] - A @ X)
        lengths = np.linalg.norm(X, axis=1)
        assert np.linalg.norm(c[w == 0], axis=1).max() < 1e-4
        off = (w > 0) & (lengths > 0)
        level = (lam * w)[off, None] * X[off] / lengths[off, None]
        np.testing.assert_allclose(c[off], level, atol=1e-4)
        assert (np.linalg.norm(c, axis=1) <= lam * w + 1e-4).all()


def test_one_task_is_the_lasso():
    A, y = draw(4, 25, 30)
    rows = pl.solve(pl.multitask_lasso(A, y[:, None], 2.0), tol=1e-10)
    plain = pl.solve(pl.lasso(A, y, 2.0), tol=1e-10)
    np.testing.assert_allclose(rows.x, plain.x, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["core", "torch"])
@pytest.mark.parametrize("kind", ["group", "sparse", "tasks"])
def test_a_path_is_a_sequence_of_single_solves(kind, engine):
    A, Y = draw(5, 30, N, tasks=3)
    build = {
        "group": lambda lam: pl.group_lasso(A, Y[:, 0], lam, GROUPS),
        "sparse": lambda lam: pl.sparse_group_lasso(A, Y[:, 0], lam, GROUPS, 0.3),
        "tasks": lambda lam: pl.multitask_lasso(A, Y, lam),
    }[kind]
    options = {"tol": 1e-7, "max_iter": 10_000, "engine": engine}
    path = pl.path(build(1.0), n_lams=6, eps=0.05, **options)
    assert not path.x[0].any()
    assert path.lams[0] == pytest.approx(lam_max(build(1.0))[0])
    for lam, x, objective in zip(path.lams, path.x, path.objective[:, 0], strict=True):
        alone = pl.solve(build(float(lam)), **options)
        assert alone.solved
        assert objective == pytest.approx(alone.objective[0], rel=1e-6)
        np.testing.assert_allclose(x, alone.x, atol=2e-2)
    below = pl.solve(build(float(0.99 * path.lams[0])), **options)
    assert below.x.any()


@pytest.mark.parametrize("scale", [1e-150, 1e-60, 1e100, 1e150])
@pytest.mark.parametrize("kind", ["group", "sparse", "tasks"])
def test_units_do_not_matter(scale, kind):
    A, Y = draw(6, 20, N, tasks=2)
    columns = scale ** np.array([0.0, 1.0])[np.arange(N) % 2] if kind == "tasks" else scale

    def build(b, unit):
        if kind == "tasks":
            return pl.multitask_lasso(A * unit, b, 1.5 * np.max(b / Y), weights=unit * np.ones(N))
        if kind == "group":
            return pl.group_lasso(A * unit, b[:, 0], 1.5 * np.max(unit * b / Y), GROUPS)
        return pl.sparse_group_lasso(A * unit, b[:, 0], 1.5 * np.max(unit * b / Y), GROUPS, 0.4)

    plain = pl.solve(build(Y, 1.0))
    for b, unit in ((Y, columns), (scale * Y, 1.0)):
        scaled = pl.solve(build(b, unit))
        assert scaled.solved
        rows = np.repeat(unit * np.ones(N), 2 if kind == "tasks" else 1)
        x = scaled.x * rows / np.max(b / Y)
        np.testing.assert_allclose(x, plain.x, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("loss", ["squares", "logistic", "huber"])
@pytest.mark.parametrize("intercept", [False, True])
def test_losses_and_intercepts_with_groups(loss, intercept):
    A, y = draw(7, 50)
    b = (y > 0).astype(float) if loss == "logistic" else y + 2.0
    level, l1 = (0.02, 0.01) if loss == "logistic" else (1.0, 0.5)
    options = {"delta": np.array([0.7])} if loss == "huber" else None
    glm = describe(
        A, b, loss, level=level, l1=l1, groups=GROUPS, intercept=intercept, options=options
    )
    answer = solve_glm(glm, limits=Limits(1e-9))
    assert answer.status.tolist() == [0]
    # A solve from another start, and a path that ends here, find the same minimum.
    again = solve_glm(glm, x0=np.ones(N), limits=Limits(1e-9))
    path = path_glm(glm, [4.0, 2.0, 1.0], limits=Limits(1e-9))
    for other in (again.objective[0], path.objective[-1, 0]):
        assert other == pytest.approx(answer.objective[0], rel=1e-8)


def test_a_batch_gives_each_problem_its_own_answer():
    A, Y = draw(8, 12, N, tasks=9)
    glm = describe(A, Y.T, "squares", level=1.5, l1=0.2, groups=GROUPS)
    batch, threads = (solve_glm(glm, limits=Limits(1e-10), threads=t) for t in (1, 3))
    np.testing.assert_array_equal(batch.x, threads.x)
    for i, y in enumerate(Y.T):
        alone = solve_glm(
            describe(A, y, "squares", level=1.5, l1=0.2, groups=GROUPS), limits=Limits(1e-10)
        )
        np.testing.assert_allclose(batch.x[i], alone.x[0], atol=1e-7)


@pytest.mark.parametrize("seed", range(5))
def test_the_dual_scale_of_sparse_groups_is_feasible_and_the_largest(seed):
    rng = np.random.default_rng(seed)
    layout = Groups(GROUPS.astype(np.intp))
    l1, level = rng.random(N) * (rng.random(N) < 0.7), rng.random(6) + 0.01
    c = 10.0 ** rng.uniform(-3, 3) * rng.standard_normal(N)
    t = layout.compiled(N, (l1, level)).largest_scale(c)

    def excess(t):
        return layout.lengths(np.maximum(t * np.abs(c) - l1, 0)) - level

    assert excess(t).max() <= 1e-15 * level.max()
    assert excess(t * (1 + 1e-12)).max() > 0


def test_a_large_group_and_groups_of_one():
    A, y = draw(9, 30, 60)
    whole = pl.solve(pl.group_lasso(A, y, 3.0, np.zeros(60)), tol=1e-10)
    assert whole.solved
    c, x = A.T @ (y - A @ whole.x), whole.x
    np.testing.assert_allclose(c, 3.0 * x / np.linalg.norm(x), atol=1e-4)
    ones = pl.solve(pl.group_lasso(A, y, 3.0, np.arange(60)), tol=1e-10)
    lasso = pl.solve(pl.lasso(A, y, 3.0), tol=1e-10)
    np.testing.assert_allclose(ones.x, lasso.x, atol=1e-7)


def test_gradients_in_any_layout_have_a_dual_scale():
    """Products with an A that all instances share come out transposed."""
    torch = pytest.importorskip("torch")
    A, y = draw(6, 12, N)
    r = pl.sparse_group_lasso(A, np.stack([y, -y, 2 * y]), 0.5, GROUPS, 0.3).r
    g = torch.from_numpy(np.random.default_rng(1).standard_normal((N, 3))).T
    torch.testing.assert_close(r.dual_scale(g), r.dual_scale(g.contiguous()), rtol=0, atol=0)


@pytest.mark.parametrize("layout", ["C", "Fortran", "float32"])
@pytest.mark.parametrize("scattered", [True, False])
def test_sweeps_over_groups_agree_with_the_model(layout, scattered):
    """Dense columns are swept with the residual, sparse ones are minimised by the model."""
    rng = np.random.default_rng(7)
    A, b = rng.standard_normal((60, 200)), rng.standard_normal(60)
    A[:, 1::2] += 0.7 * A[:, ::2]
    groups = np.repeat(np.arange(30), rng.integers(1, 13, 30))
    groups = np.append(groups, np.full(200, 30))[:200]  # the last group has 40 columns or so
    if scattered:
        groups = rng.permutation(groups)
    weights = rng.uniform(0.5, 2.0, groups.max() + 1)
    weights[3] = 0.0
    A = LAYOUTS[layout](A)
    single = layout == "float32"
    b = b.astype(np.float32).astype(float)
    sparse = scipy.sparse.csc_array(A.astype(float))
    lam = 0.02 * float(lam_max(pl.group_lasso(sparse, b, 1.0, groups, weights=weights))[0])
    swept, modelled = (
        pl.solve(
            pl.group_lasso(each, b, lam, groups, weights=weights), tol=1e-6 if single else 1e-9
        )
        for each in (A, sparse)
    )
    assert swept.solved
    assert modelled.solved
    assert swept.engine == "core"
    gaps = float(swept.gap[0] + modelled.gap[0])
    assert abs(swept.objective[0] - modelled.objective[0]) <= gaps
    if not single:
        again = pl.solve(pl.group_lasso(A, b, lam, groups, weights=weights), tol=1e-9)
        np.testing.assert_array_equal(again.x, swept.x)
