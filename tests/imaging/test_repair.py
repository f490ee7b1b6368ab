"""Means and repairs of dual points: bounds that hold, and certificates that come earlier."""

import pytest
import torch

import proxlearn as pl
from proxlearn.imaging import Fourier
from proxlearn.methods import optimizers
from proxlearn.problems.tensors import start_point
from proxlearn.solving import dual_repair
from proxlearn.solving.dual_points import DualAverage, exact_bound
from proxlearn.solving.dual_repair import STEPS, DualRepair, Point, better_of, repaired
from proxlearn.training import families

FOUR = ("deblur", "mri", "inpaint", "tomography")


def small(name, seed=3, batch=2, size=16):
    return families.NAMES[name](size=size, wavelet="haar").sample(batch, seed, dtype=torch.float64)


@pytest.mark.slow
@pytest.mark.parametrize("name", FOUR)
def test_bounds_of_means_of_dual_points_hold(name):
    problem = small(name)
    best = pl.solve(problem, "fista-restart", tol=1e-5, max_iter=500, polish=False)
    optimizer, mean = optimizers.get("fista-restart"), DualAverage()
    state, better = optimizer.init(problem, start_point(problem, None)), 0
    for k in range(1, 81):
        state = optimizer.step(problem, state)
        mean.add(k, state.at)
        bound = mean.bound(problem)
        assert bool((bound <= best.objective * (1 + 1e-12)).all())
        better += int((bound > problem.lower_bound(state.at)).sum())
    assert better > 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.slow
def test_few_samples_are_certified_honestly(dtype):
    problem = small("mri", seed=1, size=32).to(dtype)
    found = pl.solve(problem, "fista-restart", tol=1e-3, max_iter=3000)
    assert found.solved
    exact = problem.to(torch.float64)
    best = pl.solve(exact, "fista-restart", tol=1e-6, max_iter=2000)
    missed = exact.objective(found.x.double()) - best.objective
    assert best.solved
    assert bool((missed <= found.gap).all())
    assert bool((found.gap <= 1e-3 * found.objective).all())


@pytest.mark.slow
def test_an_instance_of_a_batch_is_certified_as_it_is_alone():
    problem = small("mri", batch=3)
    together = pl.solve(problem, "fista-restart", tol=1e-3)
    alone = pl.solve(problem.select(torch.tensor([1])), "fista-restart", tol=1e-3)
    assert together.solved
    assert int(alone.iterations[0]) == int(together.iterations[1])
    assert int(alone.grad_evals[0]) == int(together.grad_evals[1])


def test_single_precision_is_certified_as_early_as_double():
    """The mean of the dual points counts in float32, too; what it proves is computed in float64."""
    exact = small("mri", seed=1, size=32)
    single = exact.to(torch.float32)
    solutions = [
        pl.solve(p, tol=1e-3, max_iter=1000, polish=False, safeguard=False) for p in (exact, single)
    ]
    double, found = solutions
    assert double.solved
    assert found.solved
    assert bool((found.iterations <= double.iterations + 4).all())
    best = pl.solve(exact, "fista-restart", tol=1e-6, max_iter=2000)
    missed = exact.objective(found.x.double()) - best.objective
    assert bool((missed <= found.gap).all())
    assert bool((found.gap <= 1e-3 * found.objective).all())


def test_single_precision_that_runs_out_of_iterations_has_the_gap_of_double():
    exact = small("mri", seed=1, size=32)
    double, single = (
        pl.solve(p, tol=1e-12, max_iter=30, polish=False) for p in (exact, exact.to(torch.float32))
    )
    assert not double.solved
    torch.testing.assert_close(single.gap, double.gap, rtol=0.05, atol=0)


def start_of(problem, k=12):
    """A dual point of FISTA's, and an upper bound on F*."""
    optimizer, mean = optimizers.get("fista-restart"), DualAverage()
    state = optimizer.init(problem, start_point(problem, None))
    for i in range(1, k + 1):
        state = optimizer.step(problem, state)
        mean.add(i, state.at)
    return better_of(problem, state.at, mean), problem.upper_bound(state.at, state.x)


def behind_coils():
    """Two coils, which have no closed form, with a penalty for each scale."""
    drawn = torch.randn(2, 16, 16, 2, generator=torch.Generator().manual_seed(0)).double()
    seen = torch.rand(16, 16, generator=torch.Generator().manual_seed(1)) < 0.5
    A = Fourier(seen.double(), coils=drawn)
    b = A.forward(torch.linspace(0, 1, 256, dtype=torch.float64)[None])
    return pl.sparse_recovery(A, b, 0.05, basis="haar", weights=[0.5, 1.0, 1.0, 1.0, 2.0])


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FOUR, "coils"])
def test_repaired_points_prove_more_and_never_too_much(name):
    problem = behind_coils() if name == "coils" else small(name)
    best = pl.solve(problem, "fista-restart", tol=1e-5, max_iter=1000, polish=False)
    start, upper = start_of(problem)
    found, steps = repaired(problem, start, upper, torch.zeros_like(upper))
    assert bool((found.bound >= start.bound).all())
    if name != "tomography":  # behind rays nothing is gained as early as this
        assert bool((found.bound > start.bound).any())
    assert bool((found.bound <= best.objective * (1 + 1e-12)).all())
    assert bool(((steps >= 1) & (steps <= STEPS)).all())
    # What is returned is a dual point and its product with A^T, and the bound is what it proves.
    g = problem.f.A.adjoint(found.u)
    assert torch.allclose(g, found.g, atol=1e-9 * float(found.g.abs().max()))
    assert torch.allclose(exact_bound(problem, found.u), found.bound, rtol=1e-9)


def test_a_feasible_point_is_left_as_it_is():
    problem = small("mri")
    start, upper = start_of(problem)
    zero = Point(0 * start.u, 0 * start.g, torch.zeros_like(upper))
    found, _ = repaired(problem, zero, upper, torch.zeros_like(upper))
    assert not bool(found.u.any())
    assert not bool(found.bound.any())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["deblur", "mri"])
def test_repairs_save_gradients_and_are_counted(name, dtype, monkeypatch):
    problem = small(name, batch=1, size=32).to(dtype)
    found = pl.solve(problem, tol=1e-3, polish=False)
    monkeypatch.setattr(dual_repair, "FIRST", 0.0)
    without = pl.solve(problem, tol=1e-3, polish=False)
    assert found.solved
    assert without.solved
    assert bool((found.grad_evals > found.iterations).all())
    assert int(found.grad_evals[0]) < int(without.grad_evals[0])


def test_repairs_take_a_bounded_share_of_the_gradients():
    """A tolerance that is never met: at most a quarter of the iterations, and one repair."""
    problem = small("deblur", size=32)
    allowed = torch.full((2,), 1e-12, dtype=torch.float64)
    start, upper = start_of(problem)
    repairs = DualRepair(upper, 2)
    both = torch.arange(2)
    for k in range(1, 200):
        if bool(repairs.due(k, 5 * allowed, allowed).all()):
            repairs.repair(problem, start, upper, allowed, both)
            repairs.within.fill_(10.0)
    assert bool((repairs.spent <= dual_repair.SHARE * 200 + STEPS + 1).all())
    assert bool((repairs.spent > 0).all())
