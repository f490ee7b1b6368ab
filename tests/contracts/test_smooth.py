"""What every smooth term promises: value, gradient, convexity, a tight L, stability, conjugate."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from contracts.operator_table import gaussian
from contracts.smooth_table import GLMS, ROWS, B
from proxlearn.problems.batch import convert, select
from proxlearn.problems.operators import Dense
from proxlearn.problems.smooth import GLM, Huber, LeastSquares, Logistic, Poisson, Softmax

CLOSE = {"rtol": 1e-10, "atol": 1e-10}
over_rows = pytest.mark.parametrize("name", ROWS)
over_glms = pytest.mark.parametrize("name", [n for n in ROWS if isinstance(ROWS[n]().f, GLM)])
IN_GRAPHS = [f"{name}/{kind}" for name in GLMS for kind in ("batch", "torch-csr")]
BOUNDED = [n for n in ROWS if ROWS[n]().f.curvature_is_bounded]
TIGHT = [n for n in ROWS if n.startswith(("least-squares", "logistic", "softmax-2", "quadratic"))]


@over_rows
def test_value_and_gradient_equal_the_formula(name):
    f, reference = ROWS[name]().f, ROWS[name]().reference
    for scale in (0.0, 1e-3, 1.0, 10.0):
        x = scale * gaussian(B, f.n)
        value, grad = f.value_and_grad(x)
        for i in range(B):
            xi = x[i].clone().requires_grad_()
            expected = reference(i, xi)
            torch.testing.assert_close(value[i], expected.detach(), **CLOSE)
            torch.testing.assert_close(grad[i], torch.autograd.grad(expected, xi)[0], **CLOSE)
        torch.testing.assert_close(f.value(x), value, **CLOSE)
        assert torch.equal(f.grad(x), grad)
        assert torch.equal(f.evaluate(x).point, x)


@over_glms
def test_other_units_are_the_same_term(name):
    f = ROWS[name]().f
    if f.A.largest() is None:
        return  # a matrix-free operator keeps no entries to scale
    shared = f.A.batch == 1
    k, c = (9, -4) if shared else (torch.arange(B) - 20, torch.arange(B))
    zero = torch.zeros(B, dtype=torch.int64)
    power = 2 * (zero + c) if isinstance(f, LeastSquares) else zero
    variable = zero + k + (power // 2 if isinstance(f, LeastSquares) else 0)
    scaled = f.in_units(variable, power)
    x = gaussian(B, f.n)
    inner = x * torch.exp2(-variable.double())[:, None]
    expected = torch.exp2(-power.double()) * f.value(x)
    torch.testing.assert_close(scaled.value(inner), expected, rtol=1e-13, atol=0)
    zeros = torch.zeros(f.batch, f.n, dtype=torch.float64)
    torch.testing.assert_close(f.value_at_zero(), f.value(zeros), rtol=1e-14, atol=0)


@over_rows
def test_convex_along_random_segments(name):
    f = ROWS[name]().f
    for seed, t in enumerate([0.1, 0.5, 0.9]):
        x, y = gaussian(B, f.n, seed=seed), 5 * gaussian(B, f.n, seed=seed + 50)
        chord = t * f.value(x) + (1 - t) * f.value(y)
        assert (f.value(t * x + (1 - t) * y) <= chord + 1e-10 * (1 + chord.abs())).all()
        # The tangent lies below: the gradient belongs to the value.
        tangent = f.value(x) + (f.grad(x) * (y - x)).sum(1)
        assert (f.value(y) >= tangent - 1e-10 * (1 + tangent.abs())).all()


def top_direction(f, x):
    """The eigenvector of the largest eigenvalue of the Hessian at x, and that eigenvalue."""

    def grad(points):
        return f.evaluate(points).grad

    H = torch.stack(
        [
            (grad(x + 1e-5 * unit) - grad(x - 1e-5 * unit)) / 2e-5
            for unit in torch.eye(f.n, dtype=x.dtype)
        ],
        1,
    )
    values, vectors = torch.linalg.eigh((H + H.mT) / 2)
    return vectors[:, :, -1], values[:, -1]


@pytest.mark.parametrize("name", BOUNDED)
def test_lipschitz_bounds_the_change_of_the_gradient(name):
    f = ROWS[name]().f
    L = f.lipschitz().expand(B)
    zero = torch.zeros(B, f.n, dtype=torch.float64)
    pairs = [
        (s * gaussian(B, f.n, seed=k), s * gaussian(B, f.n, seed=k + 1))
        for k, s in enumerate([1e-3, 1.0, 100.0])
    ]
    top, _ = top_direction(f, zero)
    pairs += [(zero, step * top) for step in (1e-3, 1.0)] + [(-1e-3 * top, 1e-3 * top)]
    for x, y in pairs:
        change, distance = (f.grad(x) - f.grad(y)).norm(dim=1), (x - y).norm(dim=1)
        assert (change <= L * distance * (1 + 1e-9) + 1e-12).all()


@pytest.mark.parametrize("name", [n for n in ROWS if n not in BOUNDED])
def test_lipschitz_bounds_the_curvature_where_f_is_at_most_f_of_0(name):
    f = ROWS[name]().f
    zero = torch.zeros(B, f.n, dtype=torch.float64)
    down = -f.grad(zero)
    for step in (0.0, 0.01, 0.1, 1.0, 10.0):
        x = step * down
        while (f.value(x) > f.value(zero)).any():
            x = torch.where((f.value(x) > f.value(zero))[:, None], 0.9 * x, x)
        _, curvature = top_direction(f, x)
        assert (curvature <= f.lipschitz() * (1 + 1e-9)).all()


@pytest.mark.parametrize("name", TIGHT)
def test_lipschitz_is_attained_within_the_margin(name):
    # At x = 0 every class is equally likely, where logistic and two-class losses curve most.
    f = ROWS[name]().f
    _, curvature = top_direction(f, torch.zeros(B, f.n, dtype=torch.float64))
    assert (f.lipschitz() <= 1.0201 * curvature).all()


def test_lipschitz_of_the_constant_is_zero():
    assert ROWS["no-smooth"]().f.lipschitz().tolist() == [0.0]


@pytest.mark.parametrize("name", BOUNDED)
def test_descent_lemma(name):
    f = ROWS[name]().f
    x, y = gaussian(B, f.n, seed=3), 3 * gaussian(B, f.n, seed=4)
    e = f.evaluate(y)
    bound = e.value + (e.grad * (x - y)).sum(1) + 0.5 * f.lipschitz() * (x - y).square().sum(1)
    assert (f.value(x) <= bound * (1 + 1e-12) + 1e-12).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("margin", [1e4, 1e8])
def test_logistic_at_huge_margins(dtype, margin):
    z = torch.tensor([[margin, -margin, margin, -margin]], dtype=dtype)
    b = torch.tensor([[1.0, 0.0, 0.0, 1.0]], dtype=dtype)  # two right, two wrong
    f = Logistic(Dense(torch.eye(4, dtype=dtype)), b)
    value, grad = f.value_and_grad(z)
    torch.testing.assert_close(value, torch.tensor([margin / 2], dtype=dtype))
    torch.testing.assert_close(grad, torch.tensor([[0, 0, 0.25, -0.25]], dtype=dtype))
    assert torch.isfinite(f.conjugate(f.evaluate(z), torch.ones(1, dtype=dtype))).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_logistic_keeps_small_losses(dtype):
    # log(1 + e^-30) is below the rounding of 1 in float32: it must not become 0.
    f = Logistic(Dense(torch.eye(1, dtype=dtype)), torch.ones(1, 1, dtype=dtype))
    value, grad = f.value_and_grad(torch.full((1, 1), 30.0, dtype=dtype))
    small = torch.exp(torch.tensor(-30.0, dtype=dtype))
    torch.testing.assert_close(value[0], small, rtol=1e-5, atol=0)
    torch.testing.assert_close(grad[0, 0], -small, rtol=1e-5, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("margin", [1e4, 1e8])
def test_softmax_at_huge_margins(dtype, margin):
    # One sample, three classes, x is the score of each: right, wrong, and two equal at the top.
    scores = torch.tensor([[margin, 0, -margin], [0, margin, -margin], [margin, margin, 0]])
    one_hot = torch.tensor([[[1.0], [0.0], [0.0]]], dtype=dtype)
    f = Softmax(Dense(torch.ones(1, 1, dtype=dtype)), one_hot, 3)
    value, grad = f.value_and_grad(scores.to(dtype))
    log2 = torch.log(torch.tensor(2.0, dtype=dtype))
    torch.testing.assert_close(value, torch.stack([0 * log2, margin + 0 * log2, log2]))
    expected = [[0.0, 0, 0], [-1.0, 1, 0], [-0.5, 0.5, 0]]
    torch.testing.assert_close(grad, torch.tensor(expected, dtype=dtype))


@over_rows
def test_conjugate_is_fenchels_equality_at_the_gradient(name):
    f = ROWS[name]().f
    for scale in (0.0, 1.0, 20.0):
        x = scale * gaussian(B, f.n)
        e = f.evaluate(x)
        equality = (e.grad * x).sum(1) - e.value
        one = torch.ones(B, dtype=torch.float64)
        torch.testing.assert_close(f.conjugate(e, one), equality, **CLOSE)
        half = f.conjugate(e, one / 2)
        if isinstance(f, GLM):
            assert torch.isfinite(half).all()
        else:
            assert (half == torch.inf).all()  # an unknown bound is no bound


@over_glms
def test_fenchel_young_inequality(name):
    f = ROWS[name]().f
    e = f.evaluate(2 * gaussian(B, f.n))
    for s in (0.0, 0.3, 1.0):
        scale = torch.full((B,), s, dtype=torch.float64)
        conjugate = f.conjugate(e, scale)
        for seed in range(10):
            z = 3 * gaussian(*e.dual.shape, seed=seed)
            product = (s * e.dual * z).flatten(1).sum(1)
            assert (conjugate + f.loss(z) >= product - 1e-10 * (1 + product.abs())).all()


@over_glms
def test_loss_conjugate_at_the_gradient_of_any_prediction(name):
    # Predictions outside the range of A too, and so every dual point inside the domain.
    f = ROWS[name]().f
    z = 3 * gaussian(*f.predict(torch.zeros(B, f.n, dtype=torch.float64)).shape, seed=1)
    u = f.dloss(z)
    expected = (u * z).flatten(1).sum(1) - f.loss(z)
    torch.testing.assert_close(f.loss_conjugate(u), expected, **CLOSE)
    beyond = {LeastSquares: (), Huber: (99 * u, u + 1), Poisson: (u - 99,)}  # Huber's is symmetric
    for outside in beyond.get(type(f), (-u, u + 1)):
        assert (f.loss_conjugate(outside) == torch.inf).all()


@over_glms
def test_hessian_product_equals_autograd(name):
    f = ROWS[name]().f
    z = gaussian(*f.predict(torch.zeros(B, f.n, dtype=torch.float64)).shape, seed=1)
    v = gaussian(*z.shape, seed=2)
    _, expected = torch.autograd.functional.hvp(lambda t: f.loss(t).sum(), z, v)
    torch.testing.assert_close(f.hessian_product(f.dloss(z), v), expected, **CLOSE)


@pytest.mark.parametrize("name", [n for n in ROWS if "linear-operator" not in n])
def test_gradient_can_be_differentiated(name):
    # Training differentiates through the iterations; only NumPy operators cannot take part.
    f, reference = ROWS[name]().f, ROWS[name]().reference
    x, v = gaussian(B, f.n, seed=1).requires_grad_(), gaussian(B, f.n, seed=2)
    if name == "no-smooth":
        assert not f.evaluate(x).grad.requires_grad
        return
    (product,) = torch.autograd.grad((f.evaluate(x).grad * v).sum(), x)
    for i in range(B):
        _, expected = torch.autograd.functional.hvp(
            lambda t, i=i: reference(i, t), x[i].detach(), v[i]
        )
        torch.testing.assert_close(product[i], expected, **CLOSE)


@pytest.mark.parametrize("name", IN_GRAPHS)
def test_all_parts_of_an_evaluation_have_the_derivatives_of_their_formulas(name):
    f = ROWS[name]().f
    x = 0.3 * gaussian(B, f.n, seed=1)

    def formulas(x):
        z = f.predict(x)
        return f.loss(z), f.pull(f.dloss(z)), f.dloss(z)

    def evaluated(x):
        at = f.evaluate(x)
        return at.value, at.grad, at.dual

    weights = [gaussian(*t.shape, seed=2 + i) for i, t in enumerate(formulas(x))]

    def derivatives(of, x, used):
        x = x.clone().requires_grad_()
        parts = of(x)
        total = sum((parts[i] * weights[i]).sin().sum() for i in used)
        (first,) = torch.autograd.grad(total, x, create_graph=True)
        (second,) = torch.autograd.grad((first * first).sum(), x)
        return first.detach(), second

    for used in [(0,), (1,), (2,), (0, 2), (0, 1, 2)]:
        found, expected = derivatives(evaluated, x, used), derivatives(formulas, x, used)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, **CLOSE)


def test_an_evaluation_can_be_differentiated_by_the_data():
    f = ROWS["least-squares/batch"]().f
    b = f.b.clone().requires_grad_()
    x = gaussian(B, f.n).requires_grad_()
    value = replace(f, b=b).evaluate(x).value.sum()
    by_b, by_x = torch.autograd.grad(value, [b, x])
    residual = f.predict(x.detach()) - f.b
    torch.testing.assert_close(by_b, -residual.expand(B, -1).sum_to_size(b.shape), **CLOSE)
    torch.testing.assert_close(by_x, f.pull(residual), **CLOSE)


@over_rows
def test_element_of_a_batch_is_the_problem(name):
    f = ROWS[name]().f
    x = gaussian(B, f.n)
    value, grad = f.value_and_grad(x)
    for i in range(B):
        alone = select(f, torch.tensor([i]))
        assert alone.batch == 1
        vi, gi = alone.value_and_grad(x[i : i + 1])
        torch.testing.assert_close(vi, value[i : i + 1], **CLOSE)
        torch.testing.assert_close(gi, grad[i : i + 1], **CLOSE)
        torch.testing.assert_close(
            alone.lipschitz(), f.lipschitz().expand(B)[i : i + 1], rtol=1e-9, atol=0
        )


@over_rows
def test_convert_keeps_the_function(name):
    f = ROWS[name]().f
    single = convert(f, torch.float32)
    assert single.like.dtype == torch.float32
    x = gaussian(B, f.n)
    value, grad = single.value_and_grad(x.float())
    assert value.dtype == grad.dtype == single.lipschitz().dtype == torch.float32
    torch.testing.assert_close(value.double(), f.value(x), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(grad.double(), f.grad(x), rtol=1e-4, atol=1e-4)


@given(
    m=st.integers(1, 8),
    n=st.integers(1, 8),
    exponent=st.integers(-6, 6),
    seed=st.integers(0, 10**6),
)
def test_glms_of_any_shape_and_scale(m, n, exponent, seed):
    A = 10.0**exponent * gaussian(2, m, n, seed=seed)
    A[:, :, n // 2] = 0  # a column of zeros
    x = gaussian(2, n, seed=seed + 1)
    b = (gaussian(2, m, seed=seed + 2) > 0).double()
    for f in (LeastSquares(Dense(A), b), Logistic(Dense(A), b)):
        e = f.evaluate(x)
        assert torch.isfinite(e.value).all()
        assert (e.grad[:, n // 2] == 0).all()
        change = (f.grad(-x) - e.grad).norm(dim=1)
        assert (change <= f.lipschitz() * (2 * x).norm(dim=1) * (1 + 1e-9)).all()
