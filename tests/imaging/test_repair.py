"""Means of dual points: lower bounds that hold, and certificates that come earlier."""

import pytest
import torch

import proxlearn as pl
from proxlearn.methods import optimizers
from proxlearn.problems.tensors import start_point
from proxlearn.solving.dual_points import DualAverage
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
