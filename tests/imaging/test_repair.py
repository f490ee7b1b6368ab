"""Repaired dual points: lower bounds that hold, and certificates that come earlier."""

import pytest
import torch

import proxlearn as pl
from proxlearn.methods.rules.banded import band_curvatures, groups, spread
from proxlearn.solving.repair import repaired_bound
from proxlearn.training import families

FOUR = ("deblur", "mri", "inpaint", "tomography")


def small(name, seed=3, batch=2, size=16):
    return families.NAMES[name](size=size, wavelet="haar").sample(batch, seed, dtype=torch.float64)


@pytest.mark.slow
@pytest.mark.parametrize("name", FOUR)
def test_repaired_bounds_hold_and_are_not_worse(name):
    problem = small(name)
    best = pl.solve(problem, "fista-restart", tol=1e-5, max_iter=500, polish=False)
    c = spread(band_curvatures(problem)[0], groups(problem))
    never = torch.full((2,), -1.0, dtype=torch.float64)  # no gap is small enough to end early
    for iterations in (3, 40):
        short = pl.solve(problem, "fista-restart", tol=0, max_iter=iterations, polish=False)
        at = problem.f.evaluate(short.x)
        bound, cost = repaired_bound(problem, at.dual, at.grad, c, short.objective, never)
        assert bool(((cost >= 1) & (cost <= 6)).all())
        assert bool((bound >= problem.lower_bound(at)).all())
        assert bool((bound <= best.objective * (1 + 1e-12)).all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.slow
def test_few_samples_are_certified_with_fewer_gradients_and_honestly(dtype):
    problem = small("mri", seed=1, size=32).to(dtype)
    plain, repaired = (
        pl.solve(problem, "fista-restart", tol=1e-3, max_iter=3000, polish=polish)
        for polish in (False, True)
    )
    assert plain.solved
    assert repaired.solved
    assert int(repaired.grad_evals.sum()) < 0.8 * int(plain.grad_evals.sum())
    exact = problem.to(torch.float64)
    best = pl.solve(exact, "fista-restart", tol=1e-6, max_iter=2000)
    missed = exact.objective(repaired.x.double()) - best.objective
    assert best.solved
    assert bool((missed <= repaired.gap).all())
    assert bool((repaired.gap <= 1e-3 * repaired.objective).all())


@pytest.mark.slow
def test_an_instance_of_a_batch_is_repaired_as_it_is_alone():
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
