"""Whatever the weights, a safeguarded solve ends solved, and at a bounded cost."""

import copy

import pytest
import torch

import proxlearn as pl
from leaves import same
from proxlearn.methods.checkpoint import Learned, build
from proxlearn.solving.safeguard import Safeguarded
from proxlearn.training.families import GaussianLasso, GaussianLogistic, GaussianNnls

PROBLEMS = {
    "lasso": lambda: GaussianLasso(m=60, n=120, nonzeros=12).sample(8, 3, dtype=torch.float64),
    "logistic": lambda: GaussianLogistic(m=200, n=40, nonzeros=10, lam=0.005).sample(
        8, 3, dtype=torch.float64
    ),
    "nnls": lambda: GaussianNnls(m=60, n=40, nonzeros=10).sample(4, 1, dtype=torch.float64),
}
HOW = ("random", "zeros", "nan", "huge", "uphill")
KINDS = ("compact", "recurrent", "l2o-dm", "rnnprop")
"""Rules whose steps come about in different ways."""
CASES = [
    *[("lasso", kind, how) for kind in KINDS for how in HOW],
    # The other problems with all kinds of bad weights, and with all rules that are meant for them.
    ("logistic", "compact", "uphill"),
    ("logistic", "compact", "random"),
    ("logistic", "recurrent", "zeros"),
    ("logistic", "l2o-dm", "nan"),
    ("logistic", "rnnprop", "huge"),
    ("nnls", "compact", "random"),
    ("nnls", "compact", "nan"),
    ("nnls", "recurrent", "zeros"),
    ("nnls", "recurrent", "huge"),
    ("nnls", "recurrent", "uphill"),
]


def spoilt(kind, how):
    """A rule with weights that are of no use, or worse."""
    rule = build({"kind": kind, "settings": {}}, torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, weight in rule.named_parameters():
            if how == "random":
                weight.copy_(torch.randn(weight.shape, generator=generator))
            elif how == "uphill":  # steps and momentum as large as the rule can make them
                weight.fill_(10.0 if name == "head_bias" else 0.0)
            else:
                weight.fill_({"zeros": 0.0, "nan": float("nan"), "huge": 1e30}[how])
    return Learned(rule)


@pytest.fixture(scope="module")
def fista():
    costs = {}

    def of(name):
        if name not in costs:
            problem = PROBLEMS[name]()
            costs[name] = pl.solve(problem, "fista-restart", max_iter=20_000, polish=False)
            assert costs[name].solved
        return costs[name]

    return of


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind", "how"), CASES)
def test_any_weights_end_solved(name, kind, how, fista):
    problem = PROBLEMS[name]()
    solution = pl.solve(problem, spoilt(kind, how), max_iter=20_000, engine="torch")
    reference = fista(name)
    assert solution.solved
    assert (solution.objective - reference.objective <= 2e-6 * reference.objective).all()
    if problem.r.finite:
        assert (solution.gap <= 1e-6 * solution.objective).all()
    cost = solution.grad_evals.double() / reference.grad_evals
    assert cost.mean() <= 1.5


@pytest.mark.slow
@pytest.mark.parametrize("how", HOW)
def test_without_polish_too(how, fista):
    solution = pl.solve(PROBLEMS["lasso"](), spoilt("compact", how), max_iter=20_000, polish=False)
    assert solution.solved
    assert (solution.grad_evals.double() / fista("lasso").grad_evals).mean() <= 1.5


@pytest.mark.parametrize("name", ["lasso", "lasso-pa"])
def test_good_weights_are_left_alone(name):
    problem = GaussianLasso().sample(4, 5, dtype=torch.float64)
    options = {"tol": 0, "max_iter": 25, "record": True}
    guarded = pl.solve(problem, name, safeguard=True, **options)
    bare = pl.solve(problem, name, safeguard=False, **options)
    assert torch.equal(guarded.x, bare.x)
    assert torch.equal(guarded.history.objective, bare.history.objective)
    assert torch.equal(guarded.grad_evals, bare.grad_evals)


def test_instances_lose_trust_by_themselves():
    good = GaussianLasso(m=60, n=120, nonzeros=12).sample(2, 3, dtype=torch.float64)
    optimizer = Safeguarded(_half_bad())
    state = optimizer.init(good, torch.zeros(2, 120, dtype=torch.float64))
    seen = []
    with torch.no_grad():
        for _ in range(14):
            state = optimizer.step(good, state)
            seen.append(state.trusted.tolist())
    assert seen[8] == [True, True]
    assert seen[-1] == [True, False]
    assert state.upper[1] <= good.objective(torch.zeros(2, 120, dtype=torch.float64))[1]


def _half_bad():
    """FISTA's weights for the first instance, steps that are far too long for the second."""
    from proxlearn.methods.rules import Fista
    from proxlearn.methods.scheme import Coefficients, Scheme

    class HalfBad(Fista):
        def __call__(self, view, memory):
            c, memory = super().__call__(view, memory)
            factor = torch.tensor([[2.0], [40.0]], dtype=c.p.dtype)
            return Coefficients(p=c.p * factor / 2, a=0.6), memory

    return Scheme(HalfBad())


def test_a_step_is_pure():
    problem = PROBLEMS["lasso"]()
    optimizer = Safeguarded(spoilt("compact", "uphill"))
    state = optimizer.init(problem, torch.zeros(8, 120, dtype=torch.float64))
    with torch.no_grad():
        for _ in range(45):
            state = optimizer.step(problem, state)
        before = copy.deepcopy(state)
        one, two = optimizer.step(problem, state), optimizer.step(problem, state)
    assert same(one, two)
    assert same(before, state)


def test_an_unrolled_method_hands_over_after_its_layers():
    settings = {"layers": 5, "rows": 60, "columns": 120}
    optimizer = Learned(build({"kind": "step-lista", "settings": settings}))
    solution = pl.solve(PROBLEMS["lasso"](), optimizer, max_iter=5000, polish=False)
    assert solution.solved
    assert solution.iterations.min() > 5
