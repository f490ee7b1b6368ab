"""`solve` in the core and in the loop: shapes, limits, statuses; records and counts of the loop."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
import torch

import proxlearn as pl
from counting import Counting
from proxlearn.errors import InputError
from proxlearn.methods import optimizers
from proxlearn.methods.scheme import Coefficients, Scheme
from proxlearn.problems import penalties, smooth
from proxlearn.problems.operators import Dense
from proxlearn.solving import dual_repair
from proxlearn.solving.dual_points import exact_bound
from proxlearn.solving.first_order import Progress

B, M, N = 5, 40, 30
RNG = np.random.default_rng(3)
A = RNG.normal(size=(B, M, N)) / M**0.5
b = np.einsum("bmn,bn->bm", A, RNG.normal(size=(B, N)) * (RNG.random((B, N)) < 0.3))
LAM = np.array([0.3, 0.1, 0.03, 0.01, 0.003])  # each instance takes longer than the one before
over_engines = pytest.mark.parametrize("engine", ["core", "torch"])


def batch():
    return pl.lasso(torch.tensor(A), b, lam=LAM)


def alone(i=1):
    return pl.lasso(torch.tensor(A[i]), b[i], lam=LAM[i])


@pytest.mark.parametrize(
    ("engine", "polish"),
    [
        ("core", True),
        *(pytest.param("torch", polish, marks=pytest.mark.slow) for polish in (True, False)),
    ],
)
def test_instances_of_a_batch_get_what_they_get_alone(engine, polish):
    together = pl.solve(batch(), tol=1e-9, polish=polish, engine=engine)
    assert together.solved
    assert len(together.iterations.unique()) >= 2  # some leave the batch before others
    for i in range(B):
        one = pl.solve(alone(i), tol=1e-9, polish=polish, engine=engine)
        assert torch.allclose(together.x[i], one.x, rtol=0, atol=1e-9)
        assert together.objective[i] == pytest.approx(one.objective.item(), rel=1e-12)
        assert abs(together.iterations[i] - one.iterations[0]) <= 1
        assert abs(together.grad_evals[i] - one.grad_evals[0]) <= 1


def test_the_core_gives_the_same_bits_with_any_number_of_threads():
    one, two = (pl.solve(batch(), tol=1e-9, engine="core", threads=k) for k in (1, 2))
    assert torch.equal(one.x, two.x)
    assert torch.equal(one.gap, two.gap)


@over_engines
def test_the_answer_comes_in_the_library_of_the_arrays(engine):
    arrays = pl.solve(pl.lasso(A, b, LAM), engine=engine)
    lists = pl.solve(pl.lasso(A.tolist(), b.tolist(), LAM.tolist()), engine=engine)
    tensors = pl.solve(batch(), engine=engine)
    other = pl.solve(pl.lasso(A, torch.tensor(b), LAM), engine=engine)
    fields = ("x", "objective", "gap", "iterations", "grad_evals")
    for name in fields:
        assert isinstance(getattr(arrays, name), np.ndarray)
        assert isinstance(getattr(tensors, name), torch.Tensor)
        assert isinstance(getattr(other, name), torch.Tensor)
        np.testing.assert_array_equal(getattr(lists, name), getattr(arrays, name))
        if name != "gap":
            np.testing.assert_allclose(getattr(tensors, name), getattr(arrays, name), rtol=1e-9)
    assert arrays.engine == tensors.engine == engine
    assert arrays.x.dtype == np.float64
    assert pl.solve(pl.lasso(A.astype("f4"), b, LAM), engine=engine, tol=1e-4).x.dtype == np.float32
    assert str(arrays).startswith("5 SOLVED: objective")


def test_records_and_callbacks_of_numpy_problems_are_numpy():
    seen = []
    problem = pl.lasso(A, b, LAM)
    solution = pl.solve(problem, max_iter=4, record=True, callback=seen.append)
    assert solution.engine == "torch"
    assert isinstance(solution.history.gap, np.ndarray)
    assert isinstance(solution.history.seconds, np.ndarray)
    assert all(isinstance(p.x, np.ndarray) and isinstance(p.index, np.ndarray) for p in seen)


def test_the_core_is_used_wherever_it_covers_a_problem(monkeypatch):
    x0 = np.ones(N)
    assert pl.solve(alone()).engine == "core"
    assert pl.solve(batch(), time_limit=10, x0=x0, safeguard=False).engine == "core"
    assert pl.solve(alone(), "fista-restart").engine == "core"
    assert pl.solve(alone(), "lasso", safeguard=False).engine == "core"
    assert pl.solve(alone(), pl.load("lasso")).engine == "core"
    assert pl.solve(alone(), "fista-restart", polish=False).engine == "torch"
    assert pl.solve(alone(), "lasso", polish=False, max_iter=3).engine == "torch"
    assert pl.solve(alone(), "lasso", record=True, max_iter=3).engine == "torch"
    assert pl.solve(alone(), "lasso-pa", max_iter=3).engine == "torch"
    assert pl.solve(alone(), "ista", max_iter=3).engine == "torch"
    assert pl.solve(alone(), tol=0, max_iter=3).engine == "torch"
    assert pl.solve(alone(), polish=False).engine == "torch"
    assert pl.solve(pl.group_lasso(A[0], b[0], 0.1, np.arange(N))).engine == "core"
    assert pl.solve(pl.simplex_ls(A[0], b[0])).engine == "core"
    monkeypatch.setenv("PROXLEARN_ENGINE", "torch")
    assert pl.solve(alone()).engine == "torch"
    assert pl.solve(alone(), engine="core").engine == "core"
    monkeypatch.setenv("PROXLEARN_ENGINE", "compiled")
    with pytest.raises(InputError, match="unknown engine 'compiled'; known are: auto, core, torch"):
        pl.solve(alone())


@pytest.mark.parametrize(
    ("problem", "options", "message"),
    [
        (alone, {"optimizer": "ista"}, "cannot begin this problem with optimizer 'ista'"),
        (alone, {"record": True}, "neither records nor calls back"),
        (alone, {"callback": print}, "neither records nor calls back"),
        (alone, {"tol": 0}, "needs tol > 0"),
        (alone, {"max_iter": 0}, "needs tol > 0 and max_iter > 0"),
        (alone, {"polish": False}, "polish=False"),
        (
            lambda: pl.Problem(
                smooth.Quadratic(Dense(torch.eye(3).double()), torch.ones(1, 3).double()),
                penalties.L1(torch.ones(1).double()),
            ),
            {},
            "does not solve Quadratic with L1",
        ),
        (
            lambda: pl.Problem(
                alone().f, penalties.AbsoluteDeviation(torch.zeros(1, N, 1).double())
            ),
            {},
            "does not solve LeastSquares with AbsoluteDeviation",
        ),
        (
            lambda: pl.lasso(Counting(Dense(torch.tensor(A[0]))), b[0], 0.1),
            {},
            "needs A as a dense or sparse matrix on the CPU",
        ),
    ],
)
def test_asking_for_the_core_names_what_it_lacks(problem, options, message):
    with pytest.raises(InputError, match=message) as caught:
        pl.solve(problem(), engine="core", **options)
    assert "\n" not in str(caught.value)


@over_engines
def test_shapes(engine):
    one = pl.solve(alone(), engine=engine)
    assert one.x.shape == (N,)
    assert one.objective.shape == one.gap.shape == one.iterations.shape == (1,)
    assert len(one.status) == 1
    for problem in (batch(), pl.lasso(A[0], b, lam=0.1), pl.lasso(A, b[0], lam=0.1)):
        many = pl.solve(problem, engine=engine)
        assert many.x.shape == (B, N)
        assert many.objective.shape == many.gap.shape == many.iterations.shape == (B,)
        assert many.grad_evals.shape == (B,)
        assert len(many.status) == B
    assert pl.solve(pl.lasso(A[0], b[:1], lam=0.1), engine=engine).x.shape == (1, N)
    assert pl.solve(pl.lasso(A[0], b[0], lam=LAM), engine=engine).x.shape == (B, N)


@over_engines
def test_the_answer_needs_no_gradient_and_the_problem_is_untouched(engine):
    problem = batch()
    before = problem.f.A.A.clone()
    assert not pl.solve(problem, max_iter=3, engine=engine).x.requires_grad
    assert torch.equal(problem.f.A.A, before)
    differentiated = torch.tensor(A[0], requires_grad=True)
    assert not pl.solve(pl.lasso(differentiated, b[0], 0.1), engine=engine).x.requires_grad


@over_engines
def test_warm_start_at_the_solution_ends_at_once(engine):
    cold = pl.solve(batch(), tol=1e-9, polish=False)
    warm = pl.solve(batch(), tol=1e-8, x0=cold.x, engine=engine)
    assert warm.solved
    assert warm.iterations.max() <= 2
    assert cold.iterations.max() > 20


def test_x0_is_used_and_kept():
    x0 = np.ones(N)
    assert torch.equal(pl.solve(alone(), x0=x0, max_iter=0).x, torch.ones(N).double())
    for engine in ("core", "torch"):
        pl.solve(alone(), x0=x0, engine=engine)
        assert (x0 == 1).all()
    given = torch.ones(B, N, dtype=torch.float64)
    pl.solve(batch(), x0=given, max_iter=5)
    assert (given == 1).all()
    shared = pl.solve(batch(), x0=np.ones(N), max_iter=0)
    assert torch.equal(shared.x, given)


@over_engines
@pytest.mark.parametrize("start", [-np.ones(N), 3 * np.ones(N)])
def test_a_start_outside_the_set_ends_inside(start, engine):
    f = smooth.LeastSquares(Dense(torch.tensor(A[0])), torch.tensor(b[:1]))
    low, high = torch.zeros(1, 1).double(), torch.ones(1, 1).double()
    for r in (penalties.Box(low, high), penalties.NonNegative()):
        solution = pl.solve(pl.Problem(f, r), x0=start, max_iter=3000, engine=engine)
        assert solution.solved
        assert r.value(solution.x).item() == 0


@pytest.mark.parametrize("start", [-np.ones(N), 3 * np.ones(N)])
def test_a_start_outside_the_set_is_not_called_solved(start):
    f = smooth.LeastSquares(Dense(torch.tensor(A[0])), torch.tensor(b[:1]))
    low, high = torch.zeros(1, 1).double(), torch.ones(1, 1).double()
    for r in (penalties.Box(low, high), penalties.Simplex(high[0])):
        solution = pl.solve(pl.Problem(f, r), x0=start, max_iter=0)
        assert solution.status == (pl.Status.MAX_ITER,)
        assert solution.objective.isinf().all()
        assert pl.solve(pl.Problem(f, r), x0=start, max_iter=3000).solved


@pytest.mark.parametrize("max_iter", [0, 1, 7])
def test_max_iter(max_iter):
    solution = pl.solve(batch(), tol=1e-12, max_iter=max_iter, polish=False)
    assert solution.status == (pl.Status.MAX_ITER,) * B
    assert (solution.iterations == max_iter).all()
    assert not solution.solved
    assert "raise max_iter" in solution.status[0].advice


def test_an_instance_that_ran_out_is_solved_only_if_it_meets_the_tolerance():
    ran = pl.solve(alone(), tol=0, max_iter=20)
    reached = (ran.gap / ran.objective).item()
    assert 1e-8 < reached < 1e-1
    just_missed = pl.solve(alone(), tol=0.99 * reached, max_iter=20, polish=False)
    assert torch.equal(just_missed.x, ran.x)
    assert just_missed.status == (pl.Status.MAX_ITER,)
    met = pl.solve(alone(), tol=1.01 * reached, max_iter=20, engine="torch")
    assert met.status == (pl.Status.SOLVED,)


@over_engines
def test_time_limit_zero(engine):
    solution = pl.solve(batch(), time_limit=0, engine=engine)
    assert solution.status == (pl.Status.TIME_LIMIT,) * B
    assert (solution.iterations == 0).all()
    assert (solution.x == 0).all()
    assert torch.allclose(solution.objective, torch.tensor(b).square().sum(1) / 2)


def test_time_limit_stops_a_long_run():
    # FISTA would reach machine precision in this time, and that is SOLVED.
    solution = pl.solve(alone(), "subgradient", tol=0, max_iter=10**7, time_limit=0.05)
    assert solution.status == (pl.Status.TIME_LIMIT,)
    assert 0.05 <= solution.seconds < 5
    assert solution.iterations.item() >= 1


def test_tolerance_zero_runs_exactly_max_iter_iterations():
    problem = pl.lasso(np.eye(N), b[0, :N], lam=0.1)  # the first step solves it
    assert pl.solve(problem, "fista-restart", engine="torch").iterations.item() <= 2
    assert pl.solve(problem, tol=0, max_iter=13).iterations.item() == 13
    assert (pl.solve(batch(), tol=0, max_iter=300).iterations == 300).all()


def test_callback_sees_every_iteration():
    seen = []
    solution = pl.solve(batch(), tol=1e-6, callback=seen.append)
    assert all(isinstance(p, Progress) for p in seen)
    assert [p.iteration for p in seen] == list(range(1, int(solution.iterations.max()) + 1))
    assert all(p.x.shape == (len(p.index), N) for p in seen)
    assert all(one.seconds <= two.seconds for one, two in pairwise(seen))
    for i in range(B):
        at_work = [p.iteration for p in seen if i in p.index]
        assert len(at_work) == solution.iterations[i] - 1  # it has left by its last one
    assert len(seen[-1].index) == 0


def test_history_is_measured_at_x():
    iterates = [torch.zeros(B, N, dtype=torch.float64)]

    def keep(progress):
        x = iterates[-1].clone()
        x[progress.index] = progress.x
        iterates.append(x)

    solution = pl.solve(batch(), tol=0, max_iter=40, record=True, callback=keep)
    history = solution.history
    assert history.objective.shape == history.gap.shape == history.grad_evals.shape == (41, B)
    assert history.seconds.shape == (41,)
    assert (history.seconds.diff() >= 0).all()
    for k in (0, 1, 2, 17, 40):
        assert torch.allclose(history.objective[k], batch().objective(iterates[k]), rtol=1e-12)
    assert torch.equal(history.objective[-1], solution.objective)
    assert torch.equal(history.gap[-1], solution.gap)
    assert torch.equal(history.grad_evals, torch.arange(41)[:, None].expand(41, B))
    assert pl.solve(batch(), max_iter=2).history is None


def test_frozen_instances_keep_their_last_row():
    solution = pl.solve(batch(), tol=1e-6, record=True)
    longest = int(solution.iterations.max())
    assert solution.history.objective.shape == (longest + 1, B)
    for i in range(B):
        k = int(solution.iterations[i])
        assert (solution.history.objective[k:, i] == solution.objective[i]).all()
        assert (solution.history.gap[k:, i] == solution.gap[i]).all()
        assert solution.history.gap[k - 1, i] > solution.gap[i]


def test_recording_changes_nothing():
    plain, recorded = pl.solve(batch(), engine="torch"), pl.solve(batch(), record=True)
    assert torch.equal(plain.x, recorded.x)
    assert torch.equal(plain.grad_evals, recorded.grad_evals)


@pytest.mark.parametrize("method", ["ista", "fista-restart", "pgd", "adam"])
@pytest.mark.parametrize("tol", [0, 1e-6])
def test_gradients_are_counted_as_they_are_computed(method, tol, monkeypatch):
    proofs = []  # of repaired dual points: A^T u alone, which counts as a gradient
    monkeypatch.setattr(
        dual_repair, "exact_bound", lambda *point: proofs.append(1) or exact_bound(*point)
    )
    A1 = Counting(Dense(torch.tensor(A[1])))
    problem = pl.lasso(A1, b[1], lam=LAM[1])
    solution = pl.solve(problem, method, tol=tol, max_iter=60)
    # The certificate of the answer is part of the answer, not of the method's cost.
    assert A1.calls["adjoint"] == solution.grad_evals.item() + 1
    assert A1.calls["forward"] + len(proofs) == solution.grad_evals.item() + 1
    if tol == 0:
        assert solution.grad_evals.item() == 60


@dataclass(frozen=True)
class Explodes:
    """ISTA, but for the instance marked by `bad` the step is far too long."""

    bad: int
    factor: float = 1e30
    looks_at = "y"
    gradients = 1

    def init(self, problem, x0):
        step = problem.safe_step().clone()
        step[self.bad] *= self.factor
        return step

    def __call__(self, view, step):
        return Coefficients(p=step), step


@pytest.mark.parametrize("bad", [2, *(pytest.param(i, marks=pytest.mark.slow) for i in (0, 4))])
def test_one_broken_instance_does_not_harm_the_others(bad):
    lam = np.full(B, 0.3)
    problem = pl.lasso(torch.tensor(A), b, lam=lam)
    solution = pl.solve(problem, Scheme(Explodes(bad)), tol=1e-6, max_iter=3000, record=True)
    good = [i for i in range(B) if i != bad]
    assert solution.status[bad] == pl.Status.NUMERICAL_ERROR
    assert [solution.status[i] for i in good] == [pl.Status.SOLVED] * (B - 1)
    assert solution.x.isfinite().all()
    assert solution.objective.isfinite().all()
    assert solution.iterations[bad] < 20
    assert "another optimizer" in solution.status[bad].advice
    reference = pl.solve(problem, "ista", tol=1e-6, max_iter=3000, polish=False)
    assert torch.allclose(solution.x[good], reference.x[good], atol=1e-10)
    assert not solution.solved


def test_nan_from_the_function_of_one_instance():
    def value(x, target):
        poisoned = torch.where(target[:, 0] > 100, torch.nan, 1.0)
        return poisoned * 0.5 * (x - target).square().sum(-1)

    target = torch.tensor([[1.0, 2.0], [101.0, 1.0], [0.01, 3.0]], dtype=torch.float64)
    lam = torch.full((3,), 0.1, dtype=torch.float64)
    f = smooth.Autograd(value, 2, torch.ones(3, dtype=torch.float64), (target,))
    solution = pl.solve(pl.Problem(f, penalties.L1(lam)), tol=1e-8, max_iter=50)
    assert solution.status[1] == pl.Status.NUMERICAL_ERROR
    assert torch.equal(solution.x[1], torch.zeros(2).double())  # the last finite point
    expected = torch.tensor([[0.9, 1.9], [0.0, 2.9]], dtype=torch.float64)
    assert torch.allclose(solution.x[[0, 2]], expected, atol=1e-6)
    assert pl.Status.NUMERICAL_ERROR not in (solution.status[0], solution.status[2])


def test_the_core_stops_at_max_iter_with_a_true_gap():
    generator = np.random.default_rng(0)
    hard = generator.normal(size=(100, 400)) @ np.diag(np.logspace(0, -3, 400))
    target = hard @ generator.normal(size=400)
    lam = 1e-4 * np.abs(hard.T @ target).max()
    stopped = pl.solve(pl.lasso(hard, target, lam), max_iter=1, tol=1e-9, engine="core")
    best = pl.solve(pl.lasso(hard, target, lam), tol=1e-9, engine="core")
    assert best.solved
    assert stopped.status == (pl.Status.MAX_ITER,)
    assert stopped.iterations.tolist() == [1]
    assert stopped.objective - best.objective <= stopped.gap
    assert stopped.gap > 1e-9 * stopped.objective


def test_text_of_a_solution():
    text = str(pl.solve(batch(), max_iter=60, tol=1e-6, polish=False))
    assert "SOLVED" in text
    assert "MAX_ITER" in text
    assert "objective" in text
    assert str(pl.Status.SOLVED) == "SOLVED"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tol": -1}, "tol is -1"),
        ({"tol": float("nan")}, "tol is nan"),
        ({"tol": float("inf")}, "tol is inf"),
        ({"tol": "small"}, "tol is small"),
        ({"tol": None}, "tol is None"),
        ({"max_iter": -3}, "max_iter is -3"),
        ({"max_iter": 2.5}, "max_iter is 2.5"),
        ({"max_iter": float("inf")}, "max_iter is inf"),
        ({"max_iter": float("nan")}, "max_iter is nan"),
        ({"max_iter": "many"}, "max_iter is many"),
        ({"time_limit": -1}, "time_limit is -1"),
        ({"time_limit": float("nan")}, "time_limit is nan"),
        ({"time_limit": "1s"}, "time_limit is 1s"),
        ({"x0": np.zeros(N + 1)}, r"x0 has shape \(31,\); expected \(30,\) or \(5, 30\)"),
        ({"x0": np.zeros((2, N))}, r"x0 has shape \(2, 30\)"),
        ({"x0": np.full(N, np.nan)}, "x0 holds 30 values that are NaN"),
        ({"x0": ["a"] * N}, "x0 has dtype"),
        ({"optimizer": "fist"}, "unknown optimizer 'fist'"),
    ],
)
@pytest.mark.parametrize("engine", [None, "torch"])
def test_bad_input_is_named_in_one_line(options, message, engine):
    with pytest.raises(InputError, match=message) as caught:
        pl.solve(batch(), engine=engine, **options)
    assert "\n" not in str(caught.value)


def test_a_whole_max_iter_may_be_a_float():
    assert (pl.solve(batch(), tol=0, max_iter=1e1).iterations == 10).all()


def test_unknown_optimizer_lists_the_known_ones():
    with pytest.raises(InputError) as caught:
        pl.solve(batch(), "sgd")
    assert all(name in str(caught.value) for name in optimizers.NAMES)
