"""Douglas-Rachford behind operators whose least squares have a proximal operator in closed form."""

import pytest
import torch

import proxlearn as pl
from proxlearn.imaging import Blur, Fourier, Mask, Wavelet, gaussian_kernel, open_blur
from proxlearn.methods.checkpoint import Learned, build
from proxlearn.methods.optimizers import get
from proxlearn.methods.rules.splitting import CHANGE, LARGEST_RHO, SLOWER
from proxlearn.solving.safeguard import Safeguarded


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def seen(*shape):
    return (drawn(*shape, seed=7) > -0.2).double()


OPERATORS = {
    "mask": lambda: Mask(seen(3, 8, 8)),
    "blur": lambda: Blur(gaussian_kernel(1.0)[None] * drawn(3, 1, 1), (8, 8)),
    "signal": lambda: Blur(drawn(3, 5), 16),
    "fourier": lambda: Fourier(seen(3, 8, 8), (8, 8)),
    "fourier, odd sides": lambda: Fourier(seen(3, 7, 9), (7, 9)),
    "fourier, complex": lambda: Fourier(seen(3, 8, 8), (8, 8), complex_pictures=True),
    "wavelets": lambda: Fourier(seen(3, 8, 8), (8, 8)) @ Wavelet((8, 8), "db2").T,
    "shared": lambda: Blur(gaussian_kernel(1.0), (8, 8)) @ Wavelet((8, 8), "haar").T,
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", OPERATORS)
def test_the_implicit_residual_solves_its_equation(name, dtype):
    A = OPERATORS[name]().convert(dtype)
    assert A.has_implicit_residual
    m, n = A.shape
    w, b = drawn(3, n).to(dtype), drawn(3, m, seed=1).to(dtype)
    gamma = torch.tensor([[0.1], [3.0], [50.0]], dtype=dtype)
    u, pulled = A.implicit_residual(w, b, gamma)
    left = u + gamma * A.forward(A.adjoint(u))
    tol = 1e-11 if dtype == torch.float64 else 1e-3
    assert torch.allclose(left, A.forward(w) - b, atol=tol, rtol=tol)
    assert torch.allclose(A.adjoint(u), pulled, atol=tol, rtol=tol)


def test_operators_without_a_closed_form_say_so():
    coils = drawn(2, 8, 8, 2)
    w = drawn(1, 64)
    open_, grid = open_blur(gaussian_kernel(1.0), (8, 8))
    for A in (Fourier(seen(8, 8), coils=coils), open_):
        assert not A.has_implicit_residual
        wide = drawn(1, A.shape[1])
        assert A.implicit_residual(wide, drawn(1, A.shape[0]), torch.ones(1, 1)) is None
    assert grid == (14, 14)
    problem = pl.lasso(drawn(20, 64), drawn(20), 0.1)
    assert not problem.f.has_proximal
    assert problem.f.evaluate_proximal(w, torch.ones(1, 1)) is None


def problem(dtype=torch.float64, batch=3):
    """Signals behind a mask, with different levels of the penalty."""
    A = Mask(seen(batch, 16, 16), dtype=dtype)
    b = A.forward(drawn(batch, 256, seed=2).cumsum(-1).to(dtype))
    lam = torch.logspace(-1, 1, batch, dtype=dtype)
    return pl.sparse_recovery(A, b, lam, basis="haar", shape=(16, 16))


def rule(seed, scale=0.3):
    """Weights that are random everywhere."""
    generator = torch.Generator().manual_seed(seed)
    made = build({"kind": "splitting", "settings": {}}, generator)
    with torch.no_grad():
        for w in made.parameters():
            w += scale * torch.randn(w.shape, generator=generator)
    return Learned(made)


def test_the_evaluation_is_that_of_f_at_the_proximal_point():
    p = problem()
    w, gamma = drawn(3, 256, seed=3), torch.tensor([[0.5], [2.0], [9.0]], dtype=torch.float64)
    at = p.f.evaluate_proximal(w, gamma)
    there = p.f.evaluate(at.point)
    for found, expected in zip(
        (at.value, at.grad, at.dual), (there.value, there.grad, there.dual), strict=True
    ):
        assert torch.allclose(found, expected, atol=1e-11)
    assert torch.allclose(at.point + gamma * at.grad, w, atol=1e-11)


@pytest.mark.parametrize("seed", range(3))
def test_random_weights_converge_without_the_safeguard(seed):
    p = problem()
    best = pl.solve(p, "fista-restart", tol=1e-9, max_iter=20_000)
    assert best.solved
    found = pl.solve(p, rule(seed), tol=1e-5, max_iter=20_000, safeguard=False, polish=False)
    assert found.solved
    assert (found.objective <= best.objective * (1 + 1e-5)).all()
    assert (found.gap >= found.objective - best.objective - 1e-9 * best.objective).all()


def test_gamma_changes_by_a_finite_sum():
    p, optimizer = problem(), rule(0, 3.0)
    state = optimizer.init(p, torch.zeros(3, 256, dtype=torch.float64))
    changed = []
    with torch.no_grad():
        for k in range(1, 60):
            last = state.memory.log_gamma
            state = optimizer.step(p, state)
            moved = (state.memory.log_gamma - last).abs()
            assert (moved <= CHANGE / (1 + k / SLOWER) ** 2 + 1e-12).all()
            assert ((state.memory.rho > 0) & (state.memory.rho <= LARGEST_RHO)).all()
            changed.append(bool((moved > 0).any()))
    assert any(changed)


def test_a_minimiser_is_a_fixed_point():
    p = problem()
    x = pl.solve(p, "fista-restart", tol=1e-13, max_iter=50_000).x
    optimizer = rule(0)
    state = optimizer.init(p, x)
    state = state.__class__(
        x, 0, None, x, state.memory._replace(d=-p.f.grad(x))
    )  # -grad f is a subgradient of r there
    after = optimizer.step(p, state).x
    assert (after - x).abs().max() <= 1e-4 * x.abs().max()


def test_instances_change_to_fista_by_themselves():
    """A mixed batch evaluates f for both methods, each at its own point."""
    p, guarded = problem(), Safeguarded(rule(0))
    state = guarded.init(p, torch.zeros(3, 256, dtype=torch.float64))
    with torch.no_grad():
        state = guarded.step(p, state)
        some = torch.tensor([True, False, True])
        mixed = guarded.step(p, guarded._to_fista(p, state, ~some))
        trusted = guarded.step(p, state)
        other = guarded.step(p, guarded._to_fista(p, state, torch.ones_like(some)))
    assert torch.equal(mixed.x[some], trusted.x[some])
    assert torch.equal(mixed.x[~some], other.x[~some])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_auto_takes_it_and_its_answers_are_certified(dtype):
    p = problem(dtype)
    solution = pl.solve(p, tol=1e-3)
    best = pl.solve(problem(), "fista-restart", tol=1e-9, max_iter=20_000).objective
    assert solution.solved
    assert (solution.gap <= 1e-3 * solution.objective).all()
    assert (solution.objective - best <= solution.gap + 1e-9 * best).all()
    named = pl.solve(p, "imaging-splitting", tol=1e-3)
    assert torch.equal(named.x, solution.x)
    assert get("imaging-splitting").card["rule"]["kind"] == "splitting"
