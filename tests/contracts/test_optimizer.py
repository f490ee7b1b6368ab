"""What every optimizer promises, over one table of methods and of the problems they accept."""

import copy

import numpy as np
import pytest
import torch

import proxlearn as pl
import textbook
from counting import Counting
from leaves import leaves, same
from proxlearn.errors import InputError
from proxlearn.methods import optimizers
from proxlearn.problems import penalties, smooth
from proxlearn.problems.operators import Dense

B, M, N = 3, 30, 20
GROUPS = np.arange(N) // 4
STEPS = 50


def data(labels=False):
    """A (B, M, N), b (B, M) and a start (B, N); the last instance on another scale."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(B, M, N))
    b = np.einsum("bmn,bn->bm", A, rng.normal(size=(B, N)) * (rng.random((B, N)) < 0.3))
    b += 0.1 * rng.normal(size=b.shape)
    b[-1] *= 30
    return A, (b > 0).astype(float) if labels else b, 0.1 * rng.normal(size=(B, N))


def full(value):
    return torch.full((B,), value, dtype=torch.float64)


def case(name):
    """The problem of that name, and its B instances in plain NumPy."""
    A, b, _ = data(labels=name == "logistic")
    f = smooth.LeastSquares(Dense(torch.tensor(A)), torch.tensor(b))
    if name == "logistic":
        f = smooth.Logistic(f.A, f.b)
    if name.startswith("penalty"):
        f = smooth.NoSmooth(N, torch.zeros(B, dtype=torch.float64))
    one = torch.ones(1, 1, dtype=torch.float64)
    r, plain_r = {
        "lasso": (penalties.L1(full(2.0)), textbook.l1(2.0)),
        "logistic": (penalties.L1(full(0.05)), textbook.l1(0.05)),
        "elastic-net": (penalties.ElasticNet(full(2.0), full(0.5)), textbook.elastic_net(2.0, 0.5)),
        "group": (
            penalties.GroupL1(full(3.0), torch.tensor(GROUPS)),
            textbook.group_l1(3.0, GROUPS),
        ),
        "smooth": (penalties.Zero(), textbook.no_penalty()),
        "nnls": (penalties.NonNegative(), textbook.box(0.0, np.inf)),
        "box": (penalties.Box(-0.5 * one, one), textbook.box(-0.5, 1.0)),
        "simplex": (penalties.Simplex(full(2.0)), textbook.simplex(2.0)),
        "penalty-l1": (penalties.L1(full(0.01)), textbook.l1(0.01)),
        "penalty-simplex": (penalties.Simplex(full(2.0)), textbook.simplex(2.0)),
    }[name]
    plain = []
    for i in range(B):
        if name == "logistic":
            plain_f = textbook.logistic(A[i], b[i])
        elif name.startswith("penalty"):
            plain_f = textbook.no_smooth(N)
        else:
            plain_f = textbook.least_squares(A[i], b[i])
        plain.append(textbook.Plain(*plain_f, *plain_r))
    return pl.Problem(f, r), plain


SEPARABLE = ["lasso", "logistic", "elastic-net", "smooth", "nnls", "box"]
WITH_PROX = [*SEPARABLE, "group", "simplex"]
FINITE = ["lasso", "logistic", "elastic-net", "group", "smooth"]
PENALTY = ["penalty-l1", "penalty-simplex"]
ACCEPTS = {
    "ista": WITH_PROX,
    "fista": WITH_PROX,
    "fista-restart": WITH_PROX,
    "nesterov": ["smooth"],
    "pgd": SEPARABLE,
    "ppa": PENALTY,
    "subgradient": FINITE,
    "adam": FINITE,
    "adamhd": FINITE,
}
FIXED_AT_A_MINIMISER = ["ista", "fista", "fista-restart", "nesterov", "pgd", "ppa"]
PAIRS = [(method, name) for method, names in ACCEPTS.items() for name in names]
over_pairs = pytest.mark.parametrize(("method", "name"), PAIRS)


def start():
    return torch.tensor(data()[2])


def run(optimizer, problem, x, steps):
    """x_1, ..., x_K, (K, B, n), and the last state."""
    state = optimizer.init(problem, x)
    rows = []
    for _ in range(steps):
        state = optimizer.step(problem, state)
        rows.append(state.x)
    return torch.stack(rows), state


def test_every_optimizer_is_in_the_table():
    assert set(ACCEPTS) == set(optimizers.NAMES)


@over_pairs
def test_equals_the_textbook_loop(method, name):
    problem, plain = case(name)
    ours, _ = run(optimizers.get(method), problem, start(), STEPS)
    loop = getattr(textbook, method.replace("-", "_"))
    for i in range(B):
        theirs = loop(plain[i], data()[2][i], STEPS)
        error = np.abs(ours[:, i].numpy() - theirs).max() / max(1, np.abs(theirs).max())
        assert error < 1e-12


@over_pairs
def test_declared_number_of_gradients(method, name):
    problem, _ = case(name)
    optimizer = optimizers.get(method)
    if problem.f.gradients_are_free:
        assert optimizer.gradients == 0
        return
    A = Counting(problem.f.A)
    problem = pl.Problem(type(problem.f)(A, problem.f.b), problem.r)
    state = optimizer.init(problem, start())
    for _ in range(10):
        A.calls.update(forward=0, adjoint=0)
        state = optimizer.step(problem, state)
        assert A.calls == {"forward": optimizer.gradients, "adjoint": optimizer.gradients}


@over_pairs
def test_step_is_pure(method, name):
    problem, _ = case(name)
    optimizer = optimizers.get(method)
    _, state = run(optimizer, problem, start(), 5)
    before = copy.deepcopy((problem, state))
    once, again = optimizer.step(problem, state), optimizer.step(problem, state)
    assert same(once, again)
    assert same(before, (problem, state))
    assert once.k == again.k == 6
    assert not torch.equal(once.x, state.x) or name == "penalty-simplex"  # solved in one step


@over_pairs
def test_an_instance_of_a_batch_gets_what_it_gets_alone(method, name):
    problem, _ = case(name)
    optimizer = optimizers.get(method)
    together, _ = run(optimizer, problem, start(), STEPS)
    for i in range(B):
        one = problem.select(torch.tensor([i]))
        alone, _ = run(optimizer, one, start()[i : i + 1], STEPS)
        torch.testing.assert_close(together[:, i], alone[:, 0], rtol=1e-10, atol=1e-12)


def test_adamhd_step_sizes_are_an_instances_own():
    problem, _ = case("lasso")
    _, state = run(optimizers.get("adamhd"), problem, start(), 5)
    alpha = state.memory.alpha
    assert alpha.shape == (B, 1)
    assert len(alpha.unique()) == B
    assert (alpha != 1e-2).all()


@over_pairs
def test_dtype_is_kept(method, name):
    problem, _ = case(name)
    for dtype in (torch.float32, torch.float64):
        _, state = run(optimizers.get(method), problem.to(dtype), start().to(dtype), 3)
        assert {t.dtype for t in leaves(state) if t.is_floating_point()} == {dtype}
        assert state.x.shape == (B, N)


@pytest.fixture(scope="module")
def minimiser():
    answers = {}

    def of(name):
        if name not in answers:
            problem, _ = case(name)
            answers[name] = pl.solve(problem, tol=1e-14, max_iter=800)
            assert all(answers[name].gap <= 1e-11 * answers[name].objective) or name in (
                "smooth",  # certified by its gradient instead
                "nnls",
            )
        return answers[name].x

    return of


@pytest.mark.parametrize(("method", "name"), [p for p in PAIRS if p[0] in FIXED_AT_A_MINIMISER])
def test_a_minimiser_is_a_fixed_point(method, name, minimiser):
    problem, _ = case(name)
    x = minimiser(name)
    rows, _ = run(optimizers.get(method), problem, x, 10)
    assert (rows - x).abs().max() <= 1e-7 * max(1, x.abs().max())
    away, _ = run(optimizers.get(method), problem, x + 0.1, 1)
    assert (away - x - 0.1).abs().max() > 1e-4


REFUSALS = [
    *[("nesterov", name, "smooth f alone") for name in WITH_PROX if name != "smooth"],
    *[("ppa", name, "penalty alone") for name in WITH_PROX],
    *[("pgd", name, "couples coordinates") for name in ("group", "simplex")],
    *[
        (method, name, "is a constraint")
        for method in ("subgradient", "adam", "adamhd")
        for name in ("nnls", "box", "simplex")
    ],
]


@pytest.mark.parametrize(("method", "name", "why"), REFUSALS)
def test_what_a_method_cannot_do_it_refuses_in_words(method, name, why):
    problem, _ = case(name)
    with pytest.raises(InputError, match=why) as caught:
        pl.solve(problem, method)
    message = str(caught.value)
    assert f"'{method}'" in message
    assert "; use" in message
    assert "\n" not in message


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(InputError, match="unknown optimizer 'fist'") as caught:
        optimizers.get("fist")
    assert all(name in str(caught.value) for name in optimizers.NAMES)


def test_an_object_is_its_own_optimizer():
    optimizer = optimizers.Subgradient(scale=2.0)
    assert optimizers.get(optimizer) is optimizer
