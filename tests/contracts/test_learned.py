"""What everything with weights promises, over one table.

Two items are not asked of all: the unrolled methods are made for LASSO of one size and refuse the
rest, and Ada-LISTA's second product with A^T is not a whole gradient. The black-box methods take
the subgradient as a constant in training, so their unrolled gradient is exact over one iteration.
"""

import functools

import pytest
import torch

import proxlearn as pl
from counting import Counting
from leaves import same
from proxlearn.errors import InputError
from proxlearn.methods.checkpoint import Learned, build
from proxlearn.methods.rules.recurrent import VARIANTS
from proxlearn.methods.scheme import View
from proxlearn.problems.smooth import LeastSquares

RULES = {
    **{v: ("recurrent", {"learns": v}) for v in VARIANTS},
    "softplus": ("recurrent", {"activation": "softplus"}),
    "at x": ("recurrent", {"looks_at": "x"}),
    "gaussian start": ("recurrent", {"start": "gaussian"}),
    "fresh start": ("recurrent", {"start": "fresh"}),
    "published": (
        "recurrent",
        {
            "learns": "pba12",
            "bias_activation": "sigmoid",
            "unit": "norm",
            "detach_inputs": True,
            "start": "fresh",
        },
    ),
    "compact": ("compact", {}),
    "banded": ("banded", {}),
    "splitting": ("splitting", {}),
    "l2o-dm": ("l2o-dm", {}),
    "rnnprop": ("rnnprop", {}),
    "published l2o-dm": ("l2o-dm", {"inputs": "plain", "output": "elu", "start": "fresh"}),
    "published rnnprop": (
        "rnnprop",
        {"input_layer": "elu", "start": "fresh", "start_scale": 0.01},
    ),
    "step-lista": ("step-lista", {"layers": 8, "rows": 20, "columns": 30}),
    "ada-lista": ("ada-lista", {"layers": 8, "rows": 20, "columns": 30}),
}
SCHEME = [
    name
    for name, (kind, _) in RULES.items()
    if kind in ("recurrent", "compact", "banded", "splitting")
]
UNROLLED = ["step-lista", "ada-lista"]
BLACK_BOX = ["l2o-dm", "rnnprop", "published l2o-dm", "published rnnprop"]
EVERY = [*SCHEME, *BLACK_BOX, *UNROLLED]
ONE_ITERATION = ["compact", "banded", "splitting", "published", *BLACK_BOX]
"""Rules that take some of their inputs as constants: gradients are exact over one iteration."""
PRODUCTS = {"ada-lista": (1, 2)}
"""Products with A and A^T an iteration, where they are not those of the declared gradients."""
FAMILIES = ["gaussian-lasso", "gaussian-logistic", "gaussian-nnls", "gaussian-simplex",
            "gaussian-group-lasso", "gaussian-softmax"]  # fmt: skip
SIZES = {"gaussian-group-lasso": {"nonzeros": 2}, "gaussian-softmax": {"nonzeros": 3}}


def rule(name, dtype=torch.float64):
    """Weights that are random everywhere, also where training starts from zero."""
    kind, settings = RULES[name]
    generator = torch.Generator().manual_seed(1)
    made = build({"kind": kind, "settings": settings}, generator)
    with torch.no_grad():
        for p in made.parameters():
            p += 0.1 * torch.randn(p.shape, generator=generator)
    return made.to(dtype)


def problem(family="gaussian-lasso", dtype=torch.float64, batch=3):
    sizes = {"m": 20, "n": 30, "nonzeros": 5, **SIZES.get(family, {})}
    return pl.families.NAMES[family](**sizes).sample(batch, 0, dtype=dtype)


def run(optimizer, p, steps=6):
    state = optimizer.init(p, torch.zeros(p.batch, p.n, dtype=p.dtype))
    for _ in range(steps):
        state = optimizer.step(p, state)
    return state


@pytest.mark.parametrize("name", RULES)
def test_a_step_is_pure(name):
    p, optimizer = problem(), rule(name).optimizer()
    state = run(optimizer, p)
    one, two = optimizer.step(p, state), optimizer.step(p, state)
    assert same(one, two)


@pytest.mark.parametrize("name", RULES)
def test_an_instance_gets_the_answer_it_gets_alone(name):
    p, optimizer = problem(), rule(name).optimizer()
    together = run(optimizer, p).x
    for i in range(p.batch):
        alone = run(optimizer, p.select(torch.tensor([i]))).x[0]
        assert torch.allclose(together[i], alone, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", RULES)
def test_it_takes_the_declared_number_of_gradients(name):
    p, optimizer = problem(), rule(name).optimizer()
    A = Counting(p.f.A)
    state = run(optimizer, p, steps=1)  # at the start x is y, and one gradient serves both
    for _ in range(5):
        state = optimizer.step(pl.Problem(LeastSquares(A, p.f.b), p.r), state)
    forward, adjoint = PRODUCTS.get(name, (optimizer.gradients, optimizer.gradients))
    assert A.calls == {"forward": 5 * forward, "adjoint": 5 * adjoint}
    assert optimizer.gradients >= (forward + adjoint) / 2


@pytest.mark.parametrize("name", RULES)
def test_the_unrolled_gradient_equals_finite_differences(name):
    p, made = problem(batch=2), rule(name)
    optimizer = made.optimizer()
    steps = 1 if name in ONE_ITERATION else 4

    def loss():
        return p.objective(run(optimizer, p, steps).y).mean()

    loss().backward()
    generator = torch.Generator().manual_seed(0)
    direction = [torch.randn(w.shape, generator=generator).double() for w in made.parameters()]
    slope = sum(
        float((w.grad * d).sum()) for w, d in zip(made.parameters(), direction, strict=True)
    )
    values = []
    for h in (1e-6, -2e-6):
        with torch.no_grad():
            for w, d in zip(made.parameters(), direction, strict=True):
                w += h * d
            values.append(float(loss()))
    assert slope == pytest.approx((values[0] - values[1]) / 2e-6, rel=2e-4, abs=1e-8)


@pytest.mark.parametrize("name", SCHEME)
@pytest.mark.parametrize("family", FAMILIES)
def test_it_runs_on_any_loss_and_penalty(name, family):
    p = problem(family, dtype=torch.float32)
    x = run(rule(name, torch.float32).optimizer(), p, steps=3).x
    assert x.dtype == torch.float32
    assert bool(x.isfinite().all())


@functools.cache
def least():
    return pl.solve(problem(), "fista-restart", tol=1e-10, max_iter=5000).objective


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("value", [0.0, 1e6, float("nan")])
def test_weights_of_nonsense_end_in_an_honest_status(name, value):
    made = rule(name, torch.float32)
    with torch.no_grad():
        for w in made.parameters():
            w.fill_(value)
    p = problem()
    options = {"tol": 1e-6, "max_iter": made.layers or 60, "engine": "torch"}
    solution = pl.solve(p, Learned(made), **options)
    best = least()
    for status, objective, gap, optimum in zip(
        solution.status,
        solution.objective.tolist(),
        solution.gap.tolist(),
        best.tolist(),
        strict=True,
    ):
        assert gap >= objective - optimum - 1e-9 or status == "NUMERICAL_ERROR"
        if status == "SOLVED":
            assert objective - optimum <= 2e-6 * optimum


def test_the_hidden_state_lives_outside_the_module():
    made = rule("pa")
    before = {k: v.clone() for k, v in made.state_dict().items()}
    run(made.optimizer(), problem())
    assert same(before, dict(made.state_dict()))
    assert not [k for k, v in vars(made).items() if isinstance(v, torch.Tensor)]


def test_an_unlearned_coefficient_has_its_default():
    p, made = problem(), rule("a")
    state = run(made.optimizer(), p)
    c, _ = made(View(p, state.k, state.x, state.y, p.f.evaluate(state.y)), state.memory)
    assert torch.equal(c.p, p.safe_step())
    assert (c.b, c.b1, c.b2) == (1.0, 0.0, 0.0)


def test_learned_biases_can_be_negative():
    p, made = problem(), rule("pba12")
    state = run(made.optimizer(), p)
    c, _ = made(View(p, state.k, state.x, state.y, p.f.evaluate(state.y)), state.memory)
    assert c.b1.amin() < 0 or c.b2.amin() < 0
    assert c.b.amin() >= 0
    assert c.b.amax() <= 2


def test_every_kind_is_in_the_table():
    assert {kind for kind, _ in RULES.values()} == set(pl.optimizers.KINDS)
    assert sorted(EVERY) == sorted(RULES)


@pytest.mark.parametrize("name", BLACK_BOX)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_black_box_runs_where_there_is_a_subgradient(name, family):
    p = problem(family, dtype=torch.float32)
    optimizer = rule(name, torch.float32).optimizer()
    if not p.r.finite:
        with pytest.raises(InputError, match="is a constraint"):
            run(optimizer, p)
        return
    x = run(optimizer, p, steps=3).x
    assert x.dtype == torch.float32
    assert bool(x.isfinite().all())


@pytest.mark.parametrize("name", UNROLLED)
def test_the_unrolled_refuse_other_problems_in_words(name):
    optimizer = Learned(rule(name))
    for family in ("gaussian-logistic", "gaussian-nnls"):
        with pytest.raises(InputError, match="is made for LASSO"):
            pl.solve(problem(family), optimizer, max_iter=8)
    other = pl.families.GaussianLasso(m=21, n=30, nonzeros=5).sample(2, 0)
    with pytest.raises(InputError, match="trained for problems of 20 x 30 and this one has 21 x"):
        pl.solve(other, optimizer, max_iter=8)
    with pytest.raises(InputError, match="has 8 layers and max_iter is 9"):
        pl.solve(problem(), optimizer, max_iter=9, safeguard=False, polish=False)
    with pytest.raises(InputError, match="has 8 layers and was asked for iteration 9"):
        run(optimizer, problem(), steps=9)


@pytest.mark.parametrize("name", UNROLLED)
def test_the_unrolled_equal_their_formula(name):
    p, made = problem(), rule(name)
    A, b, lam, L = p.f.A.forward, p.f.b, p.r.level(), p.lipschitz()[:, None]
    M = made.M if name == "ada-lista" else torch.eye(20, dtype=torch.float64)
    x = torch.zeros(p.batch, p.n, dtype=torch.float64)
    optimizer = made.optimizer()
    state = optimizer.init(p, x)
    thresholds = set()
    with torch.no_grad():
        for k in range(8):
            step, theta = made.log_p[k].exp() / L, lam * made.log_theta[k].exp() / L
            v = x - step * p.f.A.adjoint((A(x) - b) @ M.T @ M)
            x = v.sign() * (v.abs() - theta).clamp(min=0)
            state = optimizer.step(p, state)
            assert (state.x - x).abs().max() < 1e-10
            thresholds.add(bool((theta > lam * step).all()))
    assert thresholds == {True, False}  # both cases of the appendix
    assert x.abs().max() > 0


def test_rnnprop_normalises_as_adam_does():
    p, optimizer = problem(), rule("rnnprop").optimizer()
    one = optimizer.step(p, optimizer.init(p, torch.zeros(3, 30, dtype=torch.float64)))
    assert bool((one.x.abs() <= 0.1).all())
    scaled = pl.Problem(LeastSquares(p.f.A, 1000 * p.f.b), type(p.r)(1000 * p.r.lam))
    two = optimizer.step(scaled, optimizer.init(scaled, torch.zeros(3, 30, dtype=torch.float64)))
    assert torch.allclose(one.x, two.x, atol=1e-5)


FRESH = ["fresh start", "published l2o-dm", "published rnnprop"]


def hidden_of(name, p):
    memory = rule(name).optimizer().init(p, torch.zeros(p.batch, p.n, dtype=p.dtype)).memory
    return getattr(memory, "hidden", memory)


@pytest.mark.parametrize("name", FRESH)
def test_a_fresh_state_is_another_for_every_instance_and_the_same_again(name):
    p = problem()
    one, two = hidden_of(name, p), hidden_of(name, p)
    assert same(one, two)
    assert not torch.equal(one.h[0][0], one.h[0][1])
    assert not torch.equal(one.h[0], one.h[1])
    assert not torch.equal(one.h[0], one.c[0])
    other = hidden_of(name, pl.families.GaussianLasso(m=20, n=30, nonzeros=5).sample(3, 1))
    assert not torch.equal(one.h[0], other.h[0].double())
    scale = 0.01 if name == "published rnnprop" else 1.0
    assert torch.stack(one.h).std().item() == pytest.approx(scale, rel=0.1)


def test_a_fresh_state_does_not_depend_on_the_precision_and_follows_its_seed():
    p = problem()
    exact, rounded = (hidden_of("fresh start", q).h[0] for q in (p, p.to(torch.float32)))
    assert torch.equal(exact, rounded)
    settings = {"start": "fresh", "start_seed": 1}
    made = build({"kind": "recurrent", "settings": settings}, torch.Generator().manual_seed(1))
    reseeded = made.init(p, torch.zeros(3, 30)).hidden.h[0]
    assert not torch.equal(exact.float(), reseeded)


def test_the_published_biases_pass_through_the_activation_of_b():
    p, made = problem(), rule("published")
    state = run(made.optimizer(), p)
    c, _ = made(View(p, state.k, state.x, state.y, p.f.evaluate(state.y)), state.memory)
    for inside in (-c.b1, c.b2):  # the published code adds b1 inside the prox
        assert inside.amin() > 0
        assert inside.amax() < 2


@pytest.mark.parametrize(
    ("family", "divisor"),
    [("gaussian-logistic", 4 * 20), ("gaussian-softmax", 2 * 20), ("gaussian-lasso", None)],
)
def test_the_published_unit_is_the_norm_of_a_where_the_loss_is_a_mean(family, divisor):
    p = problem(family)
    unit = rule("published").init(p, torch.zeros(p.batch, p.n, dtype=p.dtype)).step
    L = p.lipschitz()[:, None]
    expected = 1 / L if divisor is None else 1 / (L * divisor).sqrt()
    torch.testing.assert_close(unit, expected)


def test_detached_inputs_carry_no_gradient():
    p = problem(batch=2)

    def slope(detach):
        settings = {"detach_inputs": detach}
        generator = torch.Generator().manual_seed(1)
        made = build({"kind": "recurrent", "settings": settings}, generator).double()
        p.objective(run(made.optimizer(), p, 4).y).mean().backward()
        return made.cells[0].grad

    assert not torch.allclose(slope(True), slope(False))


def test_plain_inputs_of_l2o_dm_have_units_and_its_output_is_bounded_below():
    p, optimizer = problem(), rule("published l2o-dm").optimizer()
    x0 = torch.zeros(3, 30, dtype=torch.float64)
    first = optimizer.init(p, x0)
    g = p.f.grad(x0) + p.r.subgrad(x0)
    u, _ = optimizer.forward(g, x0, 0, first.memory)
    at_another_x, _ = optimizer.forward(g, x0 + 1, 0, first.memory)
    doubled, _ = optimizer.forward(2 * g, x0, 0, first.memory)
    assert not torch.allclose(u, at_another_x)
    assert not torch.allclose(u, doubled)
    assert u.amin() > -0.1
