"""The theory's special cases: a rule for smooth f alone, and a proximal-point rule for r alone."""

import pytest
import torch

import proxlearn as pl
from proxlearn.evaluation.comparison import compare
from proxlearn.training.families import GaussianLeastSquares, GaussianRidgeLogistic, WeightedMedian

SOFTPLUS = {"activation": "softplus"}
SMOOTH = {
    "least-squares": GaussianLeastSquares(m=30, n=10, spread=3.0),
    "ridge-logistic": GaussianRidgeLogistic(m=60, n=10, spread=3.0, ridge=0.01),
}
MEDIAN = WeightedMedian(n=10)


def config(rule, **changes):
    small = {"batch": 8, "horizon": 20, "validation": 8, "schedule": "cosine"}
    return pl.TrainConfig.paper(rule=rule, settings=SOFTPLUS, **{**small, **changes})


def untrained(rule):
    return pl.Scheme(config(rule).new_rule())


def test_the_smooth_rule_is_a_preconditioned_gradient_and_a_bias():
    problem = SMOOTH["least-squares"].sample(3, 0, dtype=torch.float64)
    optimizer = untrained("pb1")
    state = optimizer.init(
        problem, torch.randn(3, 10, generator=torch.Generator().manual_seed(0)).double()
    )
    for _ in range(4):
        seen = []

        def rule(view, memory, seen=seen):
            seen.append(optimizer.rule(view, memory))
            return seen[-1]

        rule.looks_at, rule.gradients = "y", 1
        after = pl.Scheme(rule).step(problem, state)
        (c, _), g = seen[0], problem.f.grad(state.x)
        assert (c.a, c.b, c.b2) == (0, 1, 0)
        assert c.p.shape == c.b1.shape == (3, 10)
        assert (c.b1 != 0).all()
        torch.testing.assert_close(after.x, state.x - c.p * g - c.b1, rtol=1e-12, atol=1e-12)
        state = after


@pytest.mark.slow
@pytest.mark.parametrize("name", SMOOTH)
def test_a_smooth_rule_learns(name):
    family = SMOOTH[name]
    learned = pl.train(family, config("pb1", steps=25, loss="log-mean-gap"))
    assert learned.card["status"] == "finished"
    before, after = "untrained", "learned"
    result = compare(family.sample(16, 0), {before: untrained("pb1"), after: learned}, 20)
    assert result.mean_gap(after)[20] < 0.2 * result.mean_gap(before)[20]
    assert result.mean_gap(after)[20] < 0.05 * result.mean_gap(after)[0]


@pytest.mark.slow
def test_a_proximal_point_rule_learns_and_converges():
    learned = pl.train(MEDIAN, config("p", steps=25))
    methods = {"ppa": pl.optimizers.get("ppa"), "untrained": untrained("p"), "learned": learned}
    result = compare(MEDIAN.sample(16, 0), methods, 300)
    ours, theirs = result.iterations_to("learned", 1e-3), result.iterations_to("ppa", 1e-3)
    assert ours <= 0.5 * theirs
    assert ours <= 0.6 * result.iterations_to("untrained", 1e-3)
    assert result.mean_gap("learned")[300] < 1e-5
    solved = pl.solve(MEDIAN.sample(16, 1, dtype=torch.float64), learned, max_iter=5000)
    assert solved.solved
