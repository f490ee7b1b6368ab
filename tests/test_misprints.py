"""The formulas of the paper that are misprinted there, in the form that holds: docs/paper.md."""

import torch

import proxlearn as pl
from proxlearn.methods.rules import Nesterov
from proxlearn.methods.scheme import Scheme

SMOOTH = pl.families.NAMES["gaussian-least-squares"](m=30, n=8)
LASSO = pl.families.GaussianLasso(m=20, n=30, nonzeros=5)


def test_theorem_3_has_the_subgradient_with_a_plus():
    p = LASSO.sample(2, 0, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    x, b = torch.randn(2, 2, 30, generator=generator, dtype=torch.float64)
    P = 0.1 + torch.rand(2, 30, generator=generator, dtype=torch.float64)
    gradient = p.f.grad(x)
    x_next = p.r.prox(x - P * gradient - 0.01 * b, P)
    g = (x - P * gradient - 0.01 * b - x_next) / P
    lam = p.r.level()
    assert bool((g.abs() <= lam + 1e-12).all())  # a subgradient of r at x_next ...
    moved = x_next != 0
    assert torch.allclose(g[moved], (lam * x_next.sign())[moved])
    assert torch.allclose(x_next, x - P * (gradient + g) - 0.01 * b)
    assert not torch.allclose(x_next, x - P * (gradient - g) - 0.01 * b)


def test_theorem_4_has_b_with_a_plus_and_a_is_minus_the_accelerator():
    p = LASSO.sample(2, 0, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    draw = [torch.randn(2, 30, generator=generator, dtype=torch.float64) for _ in range(3)]
    x, y, b1 = draw
    P1, B, a = (torch.rand(2, 30, generator=generator, dtype=torch.float64) for _ in range(3))
    x_hat, y_hat = x - P1 * p.f.grad(x), y - P1 * p.f.grad(y)
    inside = (1 - B) * x_hat + B * y_hat - b1
    P2 = B * P1

    def statement(sign):
        smooth = x - (P1 - P2) * p.f.grad(x) - P2 * p.f.grad(y)
        return smooth - b1 + sign * B * (y - x)  # without - P1 g, which the prox adds

    assert torch.allclose(inside, statement(+1))
    assert not torch.allclose(inside, statement(-1))
    x_next = p.r.prox(inside, P1)
    scheme = x_next + a * (x_next - x)
    A = -a
    assert torch.allclose(scheme, (1 - A) * x_next + A * x)


def test_nesterov_as_gradient_descent_with_a_bias():
    """x' = x - alpha grad f(x) - b at the points where the gradient is taken."""
    p = SMOOTH.sample(2, 0, dtype=torch.float64)
    alpha, grad = p.safe_step(), p.f.grad
    optimizer = Scheme(Nesterov())
    state = optimizer.init(p, torch.zeros(2, p.n, dtype=torch.float64))
    points = [state.y]
    for k in range(6):
        state = optimizer.step(p, state)
        last = points[-2] if k else points[-1]
        x, beta = points[-1], k / (k + 3)
        b = -beta * (x - alpha * grad(x) - last + alpha * grad(last))
        printed = beta * (x - alpha * grad(x) - last - alpha * grad(last))
        assert torch.allclose(state.y, x - alpha * grad(x) - b)
        if k:
            assert not torch.allclose(state.y, x - alpha * grad(x) - printed)
        points.append(state.y)


def test_the_multiplier_of_the_simplex_can_be_negative():
    family = pl.families.NAMES["gaussian-simplex"](m=10, n=4, nonzeros=2)
    p = family.sample(1, 0, dtype=torch.float64)
    v, metric = torch.zeros(1, 4, dtype=torch.float64), torch.full((1, 1), 0.5).double()
    x = p.r.prox(v, metric)
    xi = (v - x) / metric
    assert bool((xi < 0).all())
    torch.testing.assert_close(x.sum(), torch.tensor(1.0, dtype=torch.float64))
