"""The equation itself: a NumPy transcription, and the special cases of the paper's appendix."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

import proxlearn as pl
import textbook
from proxlearn.methods import optimizers
from proxlearn.methods.scheme import Coefficients, Scheme

B, M, N, LAM = 2, 15, 12, 0.3
RNG = np.random.default_rng(1)
A = RNG.normal(size=(B, M, N)) / M**0.5
b = RNG.normal(size=(B, M))
X0 = RNG.normal(size=(B, N))
PROBLEM = pl.lasso(A, b, lam=[LAM] * B)
PLAIN = [textbook.Plain(*textbook.least_squares(A[i], b[i]), *textbook.l1(LAM)) for i in range(B)]


@dataclass(frozen=True)
class Fed:
    """A rule that plays back coefficients given by hand."""

    coefficients: tuple
    looks_at: str = "y"
    gradients: int = 1

    def init(self, problem, x0):
        return ()

    def __call__(self, view, memory):
        return self.coefficients[view.k], memory


def iterate(rule, steps, problem=PROBLEM, x0=X0):
    """x_1, ..., x_K and y_1, ..., y_K, each (K, B, n)."""
    scheme = Scheme(rule)
    state = scheme.init(problem, torch.tensor(x0))
    rows = []
    for _ in range(steps):
        state = scheme.step(problem, state)
        rows.append((state.x.numpy(), state.y.numpy()))
    return np.array([x for x, _ in rows]), np.array([y for _, y in rows])


def transcription(plain, x, coefficients):
    """The paper's final scheme, word for word, for one instance."""
    y = x
    rows = []
    for p, a, b, b1, b2 in coefficients:
        x_hat = x - p * plain.grad(x)
        y_hat = y - p * plain.grad(y)
        x_next = plain.prox((1 - b) * x_hat + b * y_hat - b1, p)
        y = x_next + a * (x_next - x) + b2
        x = x_next
        rows.append((x, y))
    return np.array([x for x, _ in rows]), np.array([y for _, y in rows])


def drawn(steps, seed=0, **fixed):
    """Coefficients (steps, 5, B, n), all of both signs but p; `fixed` overrides some by numbers."""
    rng = np.random.default_rng(seed)
    L = max(plain.L for plain in PLAIN)
    values = {
        "p": rng.uniform(0.2, 1, (steps, B, N)) / L,
        "a": rng.uniform(-0.5, 1, (steps, B, N)),
        "b": rng.uniform(0.05, 0.95, (steps, B, N)),
        "b1": rng.normal(size=(steps, B, N)) / 20,
        "b2": rng.normal(size=(steps, B, N)) / 20,
    }
    fed = []
    for k in range(steps):
        named = {name: torch.tensor(v[k]) for name, v in values.items()}
        fed.append(Coefficients(**{**named, **fixed}))
    full = [np.full((steps, B, N), fixed[v]) if v in fixed else values[v] for v in values]
    return tuple(fed), np.stack(full, 1)


VARIANTS = {
    "all five": {},
    "p": {"a": 0.0, "b": 1.0, "b1": 0.0, "b2": 0.0},
    "pa": {"b": 1.0, "b1": 0.0, "b2": 0.0},
    "pba": {"b1": 0.0, "b2": 0.0},
    "pba1": {"b2": 0.0},
    "pba2": {"b1": 0.0},
    "b fixed at 0": {"b": 0.0},
    "b fixed at 1": {"b": 1.0},
    "b a whole number": {"b": 1},
    "b fixed between": {"b": 0.5},
}


@pytest.mark.parametrize("looks_at", ["x", "y"])
@pytest.mark.parametrize("fixed", VARIANTS.values(), ids=VARIANTS)
def test_equals_its_transcription(fixed, looks_at):
    fed, values = drawn(20, **fixed)
    x, y = iterate(Fed(fed, looks_at), 20)
    for i in range(B):
        expected_x, expected_y = transcription(PLAIN[i], X0[i], values[:, :, i])
        assert np.abs(x[:, i] - expected_x).max() < 1e-12
        assert np.abs(y[:, i] - expected_y).max() < 1e-12


@pytest.mark.parametrize(
    ("fixed", "looks_at", "gradients"),
    [
        ({"b": 1.0}, "y", 1),
        ({"b": 1}, "y", 1),
        ({"b": 0.0}, "x", 1),
        ({"b": 0}, "x", 1),
        ({"b": 0.5}, "y", 2),
        ({}, "y", 2),
        ({}, "x", 2),
    ],
)
def test_gradients_an_iteration(fixed, looks_at, gradients, monkeypatch):
    fed, _ = drawn(6, **fixed)
    scheme = Scheme(Fed(fed, looks_at, gradients))
    assert scheme.gradients == gradients
    calls = []

    def counted(f, u):
        calls.append(u)
        return f.A.adjoint(u)

    monkeypatch.setattr(type(PROBLEM.f), "pull", counted)
    state = scheme.step(PROBLEM, scheme.init(PROBLEM, torch.tensor(X0)))
    for _ in range(5):  # at the first step x = y, and one gradient serves both
        calls.clear()
        state = scheme.step(PROBLEM, state)
        assert len(calls) == gradients


def test_fista_is_a_special_case():
    t, fed = 1.0, []
    p = torch.tensor([[1 / plain.L] for plain in PLAIN])
    for _ in range(50):
        t_next = (1 + (1 + 4 * t * t) ** 0.5) / 2
        fed.append(Coefficients(p=p, a=(t - 1) / t_next))
        t = t_next
    x, _ = iterate(Fed(tuple(fed)), 50)
    for i in range(B):
        assert np.abs(x[:, i] - textbook.fista(PLAIN[i], X0[i], 50)).max() < 1e-12
    named, _ = iterate(optimizers.get("fista").rule, 50)
    assert np.abs(x - named).max() < 1e-12


def test_variable_metric_proximal_gradient_is_a_special_case():
    fed, values = drawn(30, a=0.0, b=0.0, b1=0.0, b2=0.0)
    x, y = iterate(Fed(fed, "x"), 30)
    assert np.array_equal(x, y)
    for i in range(B):
        row = X0[i]
        for k in range(30):
            p = values[k, 0, i]
            row = PLAIN[i].prox(row - p * PLAIN[i].grad(row), p)
            assert np.abs(x[k, i] - row).max() < 1e-12


@dataclass(frozen=True)
class StepLista:
    """The b1 of the appendix, which turns the threshold lam p into theta."""

    p: float
    theta: float
    looks_at = "x"
    gradients = 1

    def init(self, problem, x0):
        return ()

    def __call__(self, view, memory):
        x_hat = view.x - self.p * view.at.grad
        more = self.theta - LAM * self.p
        if more > 0:
            b1 = x_hat.sign() * torch.minimum(torch.tensor(more), x_hat.abs())
        else:  # the appendix writes x_hat > theta and means its absolute value
            b1 = torch.where(x_hat.abs() > self.theta, x_hat.sign() * more, 0.0)
        p = torch.full((B, 1), self.p, dtype=torch.float64)
        return Coefficients(p=p, b=0.0, b1=b1), memory


@pytest.mark.parametrize("ratio", [0.2, 0.9, 1.0, 1.1, 4.0])
def test_step_lista_is_a_special_case(ratio):
    p = 0.7 / max(plain.L for plain in PLAIN)
    theta = ratio * LAM * p
    x, _ = iterate(StepLista(p, theta), 20)
    for i in range(B):
        row = X0[i]
        for k in range(20):
            row = textbook.l1(1.0)[0](row - p * PLAIN[i].grad(row), theta)
            assert np.abs(x[k, i] - row).max() < 1e-12


def test_the_rule_sees_the_gradient_where_it_asked():
    seen = []

    @dataclass(frozen=True)
    class Looking(Fed):
        def __call__(self, view, memory):
            seen.append(view)
            return super().__call__(view, memory)

    fed, _ = drawn(4)
    for looks_at in "xy":
        seen.clear()
        iterate(Looking(fed, looks_at), 4)
        for k, view in enumerate(seen):
            point = view.x if looks_at == "x" else view.y
            assert view.k == k
            assert torch.equal(view.at.point, point)
            assert torch.equal(view.at.grad, PROBLEM.f.grad(point))
        assert not torch.equal(seen[-1].x, seen[-1].y)
