"""L-BFGS in a comparison: counted gradients, the same objective, refusals."""

import pytest
import torch
from scipy.optimize import minimize

import proxlearn as pl
from proxlearn.evaluation.comparison import compare
from proxlearn.evaluation.competitors import compare_named
from proxlearn.evaluation.lbfgs import lbfgs
from proxlearn.training.families import GaussianLeastSquares, GaussianRidgeLogistic

SMOOTH = [GaussianLeastSquares(m=20, n=8), GaussianRidgeLogistic(m=40, n=8)]


@pytest.mark.parametrize("family", SMOOTH, ids=lambda family: type(family).__name__)
def test_rows_are_the_points_that_scipy_asks_for(family):
    problem = family.sample(3, 0)
    run = lbfgs(problem, 25)
    assert run.objective.shape == run.grad_evals.shape == (26, 3)
    assert run.objective.dtype == torch.float64
    assert run.seconds.shape == (26,)
    assert (run.seconds.diff() >= 0).all()
    exact = problem.to(torch.float64)
    zero = torch.zeros(3, problem.n, dtype=torch.float64)
    torch.testing.assert_close(run.objective[0], exact.objective(zero), rtol=1e-14, atol=0)
    assert (run.objective.diff(dim=0) <= 0).all()
    for i in range(3):
        one, seen = exact.select(torch.tensor([i])), []

        def fun(x, one=one, seen=seen):
            value, grad = one.f.value_and_grad(torch.tensor(x)[None])
            seen.append(value.item())
            return value.item(), grad[0].numpy()

        minimize(fun, zero[0].numpy(), jac=True, method="L-BFGS-B", options={"maxcor": 10})
        k = min(len(seen), 26)
        expected = torch.tensor(seen[:k], dtype=torch.float64).cummin(0).values
        torch.testing.assert_close(run.objective[:k, i], expected, rtol=1e-12, atol=0)
    assert run.grad_evals[:5].tolist() == [[k] * 3 for k in range(5)]


@pytest.mark.slow
def test_it_reaches_the_optimum_before_nesterov():
    problem = GaussianLeastSquares(m=60, n=30).sample(8, 0)
    result = compare(problem, ["nesterov"], 300).with_run("lbfgs", lbfgs(problem, 300))
    assert list(result.runs) == ["nesterov", "lbfgs"]
    assert result.iterations_to("lbfgs", 1e-6) < result.iterations_to("nesterov", 1e-3)
    assert (result.relative_gap("lbfgs") >= 0).all()
    assert result.relative_gap("lbfgs")[-1].max() < 1e-12


def test_a_lower_value_lowers_the_optimum():
    problem = SMOOTH[0].sample(2, 0)
    high = compare(problem, ["ista"], 3, optimum=torch.full((2,), 1e3))
    result = high.with_run("lbfgs", lbfgs(problem, 50))
    torch.testing.assert_close(result.optimum, pl.optimum(problem), rtol=1e-9, atol=0)


def test_an_early_end_keeps_the_last_value():
    run = lbfgs(SMOOTH[0].sample(2, 0), 400)
    assert (run.grad_evals[-1] < 400).all()
    assert (run.objective[-1] == run.objective[-2]).all()


def test_penalties_are_refused_in_words():
    problem = pl.families.GaussianLasso(m=10, n=20, nonzeros=2).sample(1, 0)
    with pytest.raises(pl.InputError, match=r"'lbfgs' minimises a smooth f alone.*L1; use"):
        lbfgs(problem, 5)


def test_names_keep_their_order():
    problem = SMOOTH[0].sample(2, 0)
    names = ["lbfgs", "nesterov"]
    assert list(compare_named(problem, names, "gaussian-least-squares", 5).runs) == names
    alone = compare_named(problem, ["lbfgs"], "gaussian-least-squares", 5)
    assert list(alone.runs) == ["lbfgs"]
    with pytest.raises(pl.InputError, match="no optimizers"):
        compare_named(problem, [], "gaussian-least-squares", 5)
