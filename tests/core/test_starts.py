"""Starts of the core: the same iterates as in PyTorch, and answers that do not depend on them."""

import numpy as np
import pytest
import scipy.sparse
import torch

import proxlearn as pl
from proxlearn.core import kernel
from proxlearn.core.glm import Limits, describe, solve_glm, solve_one
from proxlearn.core.losses import LOSSES
from proxlearn.core.single import Single
from proxlearn.core.starts import MOST, CompactSettings, CompactStart, FistaStart
from proxlearn.methods.rules import CompactRule
from proxlearn.solving.named_starts import automatic_start, find_start

rng = np.random.default_rng(0)
M, N = 30, 50
A = rng.normal(size=(M, N))
b = A[:, :5] @ np.ones(5) + 0.1 * rng.normal(size=M)
SPARSE = scipy.sparse.random(M, N, 0.3, random_state=0, format="csc")

PROBLEMS = {
    "lasso": lambda: pl.lasso(A, b, 2.0),
    "weighted lasso": lambda: pl.lasso(A, b, 2.0, weights=np.arange(N) / 25.0),
    "elastic net": lambda: pl.elastic_net(A, b, 2.0, 0.5),
    "logistic": lambda: pl.logistic(A, b > 0, 0.02),
    "nnls": lambda: pl.nnls(A, b),
    "Fortran": lambda: pl.lasso(np.asfortranarray(A), b, 2.0),
    "sparse": lambda: pl.lasso(SPARSE, b, 0.5),
    "huber": lambda: pl.Problem(
        pl.smooth.Huber(pl.lasso(A, b, 1.0).f.A, torch.tensor(b)[None], torch.ones(1).double()),
        pl.lasso(A, b, 2.0).r,
    ),
}
METHODS = ("lasso", "logistic", "general", "fista", "fista-restart")


def double(name):
    """An optimizer of PyTorch with its weights in float64, in which the core has them, too."""
    if name.startswith("fista"):
        return name
    learned = pl.load(name)
    learned.rule.double()
    return learned


def compiled(problem, start, step=0.0):
    glm = problem.model.glm()
    return start.compiled(Single(glm, 0, None).solver, LOSSES[glm.loss].curvature, step)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("case", PROBLEMS)
def test_the_iterates_are_those_of_pytorch(case, name):
    problem, x0 = PROBLEMS[case](), np.abs(rng.normal(size=N))
    step = float(problem.safe_step().item())
    found = compiled(problem, find_start(name), step).iterates(x0, 20)
    options = {"tol": 0, "polish": False, "safeguard": False, "x0": x0}
    for k in (1, 2, 5, 20):
        x = np.asarray(pl.solve(problem, double(name), max_iter=k, **options).x).reshape(-1)
        assert np.abs(found[k - 1] - x).max() <= 1e-10 * np.abs(x).max()


def test_weights_have_the_names_and_shapes_of_the_rule():
    settings = CompactSettings(hidden=7)
    shapes = {k: tuple(v.shape) for k, v in CompactRule(settings).state_dict().items()}
    assert shapes == settings.shapes()
    assert CompactRule.Settings is CompactSettings


@pytest.mark.parametrize("case", PROBLEMS)
def test_the_step_is_nearly_one_over_the_lipschitz_constant(case):
    problem = PROBLEMS[case]()
    ratio = compiled(problem, FistaStart()).measure() / problem.safe_step().item()
    assert 0.85 <= ratio <= 1.15


def test_a_step_for_weights_of_samples_centred_columns_and_a_matrix_of_zeros():
    s = rng.random(M)
    centred = A - (s / s.sum()) @ A
    steps = []
    for matrix, intercept in ((A, True), (SPARSE, True), (centred, False)):
        glm = describe(matrix, b, "squares", l1=1.0, sample_weight=s, intercept=intercept)
        steps.append(FistaStart().compiled(Single(glm, 0, None).solver, 1.0, 0.0).measure())
    assert steps[0] == pytest.approx(steps[2], rel=1e-9)
    dense = SPARSE.toarray() - (s / s.sum()) @ SPARSE
    for step, matrix in zip(steps, (centred, dense), strict=False):
        assert 0.8 <= step * np.linalg.norm(np.sqrt(s)[:, None] * matrix, 2) ** 2 <= 1.3
    zeros = describe(np.zeros((4, 3)), np.ones(4), "squares", l1=1.0)
    assert FistaStart().compiled(Single(zeros, 0, None).solver, 1.0, 0.0).measure() == 1.0


@pytest.mark.parametrize("case", PROBLEMS)
@pytest.mark.parametrize("x0", [None, np.full(N, 0.3)])
def test_answers_do_not_depend_on_the_start(case, x0):
    problem = PROBLEMS[case]()
    alone = pl.solve(problem, tol=1e-10)
    for name in METHODS:
        solution = pl.solve(problem, name, tol=1e-10, x0=x0)
        assert solution.solved
        assert solution.engine == "core"
        scale = abs(float(alone.objective[0]))
        assert abs(float(solution.objective[0] - alone.objective[0])) <= 2e-10 * scale
        assert float(solution.gap[0]) <= 1e-10 * scale or not np.isfinite(float(solution.gap[0]))


def test_counts_include_those_of_the_start():
    plain, led = pl.solve(PROBLEMS["lasso"]()), pl.solve(PROBLEMS["lasso"](), "lasso")
    spy = Spy(find_start("lasso"))
    solve_one(PROBLEMS["lasso"]().model.glm(), None, Limits(), spy)
    method = spy.made[0]
    assert 1 <= method.iterations <= MOST
    assert method.passes > method.iterations
    assert method.iterations <= led.iterations.item()
    assert led.iterations.item() <= method.iterations + plain.iterations.item()
    assert led.grad_evals.item() > method.passes


@pytest.mark.parametrize("most", [1, 2, 5])
def test_iterations_of_a_start_count_against_max_iter(most):
    solution = pl.solve(PROBLEMS["lasso"](), "fista", tol=1e-12, max_iter=most)
    assert solution.iterations.item() <= most
    assert solution.gap.item() >= 0


def test_a_time_limit_of_zero_leaves_no_time_for_a_start():
    solution = pl.solve(PROBLEMS["lasso"](), "lasso", time_limit=0.0)
    assert solution.status[0] == "TIME_LIMIT"
    assert solution.iterations.item() == 0


SPOILT = {
    "nothing": lambda w: 0 * w,
    "noise": lambda w: 100 * np.random.default_rng(1).normal(size=w.shape),
    "huge": lambda w: w + 1e30,
    "infinite": lambda w: w + np.inf,
    "NaN": lambda w: w * np.nan,
}


@pytest.mark.parametrize("how", SPOILT)
@pytest.mark.parametrize("case", PROBLEMS)
def test_any_weights_end_solved(case, how):
    good = find_start("general")
    start = CompactStart(good.settings, tuple(SPOILT[how](w) for w in good.weights))
    problem = PROBLEMS[case]()
    answer = solve_glm(problem.model.glm(), limits=Limits(1e-9, 1000), start=start)
    best = pl.solve(problem, tol=1e-9)
    assert answer.status[0] == 0
    assert abs(answer.objective[0] - best.objective[0]) <= 1e-8 * abs(best.objective[0])


def test_a_start_that_raises_the_objective_is_dropped():
    glm = PROBLEMS["lasso"]().model.glm()
    single = Single(glm, 0, None)
    long = FistaStart().compiled(single.solver, 1.0, 1e3)  # steps a thousand times too long
    single.solver.lead(long, 3)
    x = np.ones(N)
    single.solver.solution(x)
    assert not x.any()


def test_a_start_on_wide_data_has_at_most_as_many_columns_as_rows():
    wide = rng.normal(size=(10, 400))
    single = Single(describe(wide, rng.normal(size=10), "squares", l1=1e-3), 0, None)
    method = FistaStart().compiled(single.solver, 1.0, 0.0)
    assert np.count_nonzero(method.iterates(np.zeros(400), 3)[-1]) > 100
    single.solver.lead(method, 3)
    x = np.empty(400)
    single.solver.solution(x)
    assert 1 <= np.count_nonzero(x) <= 10


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_batches_equal_singles(shared, dtype):
    many = (A if shared else rng.normal(size=(4, M, N))).astype(dtype)
    targets, lam = rng.normal(size=(4, M)).astype(dtype), np.array([3.0, 2.0, 1.0, 0.5])
    for strength in (1.0, lam):
        whole = pl.solve(pl.lasso(many, targets, strength), "lasso", threads=2)
        assert whole.solved
        assert whole.x.dtype == dtype
        for i in range(4):
            own = many if shared else many[i]
            level = strength if np.ndim(strength) == 0 else strength[i]
            one = pl.solve(pl.lasso(own, targets[i], level), "lasso")
            np.testing.assert_allclose(whole.x[i], one.x, rtol=1e-5, atol=1e-6)
            assert whole.iterations[i] == one.iterations[0]


def test_extreme_sizes_are_solved_with_a_start():
    problem = pl.lasso(1e-120 * A, 1e100 * b, 2e-20)
    plain, led = pl.solve(problem), pl.solve(problem, "lasso")
    assert plain.solved
    assert led.solved
    assert led.objective.item() == pytest.approx(plain.objective.item(), rel=1e-6)


def tall(lam, intercept=False, m=1300):
    X = np.random.default_rng(3).normal(size=(m, 40))
    y = X @ np.ones(40) + np.random.default_rng(4).normal(size=m) > 0
    return describe(X, y.astype(float), "logistic", l1=lam, intercept=intercept)


class Spy:
    """A start that remembers the compiled methods that were made of it."""

    def __init__(self, start):
        self.start, self.part, self.made = start, start.part, []

    def compiled(self, *arguments):
        self.made.append(self.start.compiled(*arguments))
        return self.made[-1]


@pytest.mark.parametrize("intercept", [False, True])
def test_auto_begins_with_a_rule_where_most_columns_join(intercept):
    small, large = tall(1e-4, intercept), tall(0.2, intercept)
    for glm, led in ((small, True), (large, False)):
        start = automatic_start(glm)
        assert start is not None
        spy = Spy(start)
        plain, ours = solve_one(glm, None, Limits()), solve_one(glm, None, Limits(), spy)
        assert plain[4] == ours[4] == 0
        assert ours[2] == pytest.approx(plain[2], rel=2e-6)
        assert (spy.made[0].iterations > 0) == led


def test_auto_needs_tall_logistic_problems_in_which_every_column_is_penalised():
    assert automatic_start(tall(1e-4, m=60)) is None
    assert automatic_start(tall(0.0)) is None
    assert automatic_start(describe(np.ones((1300, 40)), np.ones(1300), "squares", l1=1.0)) is None
    groups = describe(
        np.ones((1300, 40)), np.ones(1300), "logistic", level=1.0, groups=np.arange(40) // 4
    )
    assert automatic_start(groups) is None


def test_the_kernel_refuses_weights_of_wrong_types():
    solver = Single(tall(1.0), 0, None).solver
    weights = [w.astype(np.float32) for w in find_start("lasso").weights]
    with pytest.raises(ValueError, match="Buffer dtype mismatch"):
        kernel.CompactStart(solver.A, solver.f, solver.r, 0.25, 0.0, weights, 2.0)
