"""Facts that the documentation quotes, measured again: iterations of correctly stepped methods.

Iterations are to a mean relative suboptimality (F - F*)/F* at x over the instances.
"""

from dataclasses import dataclass, replace

import pytest
import torch

import proxlearn as pl
from proxlearn.methods.rules import Fista
from proxlearn.methods.scheme import Scheme
from proxlearn.problems import datasets
from proxlearn.training import families


def iterations(problem, optimizer, best, levels, max_iter):
    """The first iteration at which the mean relative suboptimality is at most each level."""
    history = pl.solve(problem, optimizer, tol=0, max_iter=max_iter, record=True).history
    mean = ((history.objective - best) / best).mean(1)
    assert (mean[-1] <= levels[-1]).all(), f"only {mean[-1]:.1e} after {max_iter} iterations"
    return [int((mean <= level).nonzero()[0]) for level in levels]


def optimum(problem):
    solution = pl.solve(problem, tol=1e-12, max_iter=5000)
    assert solution.solved
    return solution.objective


@pytest.mark.slow
def test_restarted_fista_on_the_lasso_of_the_paper():
    problem = families.GaussianLasso().sample(16, 0, dtype=torch.float64)
    best = optimum(problem)
    to_3, to_6 = iterations(problem, "fista-restart", best, [1e-3, 1e-6], 80)
    assert 26 <= to_3 <= 31
    assert 43 <= to_6 <= 52


@dataclass(frozen=True)
class PublishedStep(Fista):
    """FISTA with 1/||A|| for 1/L, as the paper's baseline had it."""

    def init(self, problem, x0):
        memory = super().init(problem, x0)
        return memory._replace(step=1 / problem.f.A.norm().expand(len(x0))[:, None])


@pytest.fixture(scope="module")
def spambase(data_folder):
    A, b = datasets.spambase(data_folder)
    problem = pl.logistic(datasets.standardise(A), b, lam=0.1)
    return problem, optimum(problem)


def test_the_right_step_of_the_logistic_loss(spambase):
    problem, _ = spambase
    A = problem.f.A.A
    assert problem.lipschitz().item() == pytest.approx(
        torch.linalg.matrix_norm(A, 2).item() ** 2 / (4 * len(A)), rel=0.02
    )


def test_restarted_fista_on_spambase(spambase):
    problem, best = spambase
    to_3, to_6 = iterations(problem, "fista-restart", best, [1e-3, 1e-6], 40)
    assert abs(to_3 - 8) <= 1
    assert abs(to_6 - 17) <= 1


@pytest.mark.slow
def test_the_published_step_is_many_times_slower_on_spambase(spambase):
    problem, best = spambase
    (published,) = iterations(problem, Scheme(PublishedStep()), best, [1e-3], 150)
    (right,) = iterations(problem, "fista", best, [1e-3], 40)
    assert abs(published - 96) <= 2
    assert abs(right - 8) <= 1
    assert published > 10 * right


def test_the_published_step_differs_in_nothing_but_the_step(spambase):
    """The comparison is fair: with the right step the same rule is FISTA."""
    problem, _ = spambase

    @dataclass(frozen=True)
    class Right(PublishedStep):
        def init(self, problem, x0):
            memory = super().init(problem, x0)
            norm = problem.f.A.norm()[:, None]
            return memory._replace(step=memory.step * 4 * problem.f.m / norm)

    ours = pl.solve(problem, Scheme(replace(Right(), restart=True)), tol=0, max_iter=20)
    theirs = pl.solve(problem, "fista-restart", tol=0, max_iter=20)
    assert torch.allclose(ours.x, theirs.x, atol=1e-10)
