"""Comparisons: certified optima, counted iterations, long-format rows."""

import numpy as np
import pytest
import torch

import proxlearn as pl
from proxlearn.evaluation.comparison import Comparison, Row, Run, compare, optimum
from proxlearn.evaluation.report import rows
from proxlearn.training.families import NAMES, GaussianLasso, GaussianLogistic

SMALL = GaussianLasso(m=20, n=40, nonzeros=4)


def test_optimum_agrees_with_coordinate_descent():
    from sklearn.linear_model import Lasso

    problem = SMALL.sample(4, 0, dtype=torch.float64)
    best = optimum(problem)
    for i in range(4):
        A, b, lam = problem.f.A.A[i].numpy(), problem.f.b[i].numpy(), problem.r.lam[i].item()
        model = Lasso(alpha=lam / len(b), fit_intercept=False, tol=1e-14, max_iter=100_000)
        x = model.fit(A, b).coef_
        peer = 0.5 * np.square(A @ x - b).sum() + lam * np.abs(x).sum()
        assert best[i].item() == pytest.approx(peer, rel=1e-11)


IMAGING = ("deblur", "mri", "inpaint", "tomography", "imaging", "invertible")
"""Families behind operators: only first-order methods solve them, to fewer digits."""
SLOW = (*IMAGING, "gaussian-ridge-logistic", "weighted-median")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in NAMES]
)
def test_every_family_has_a_certified_optimum(name):
    problem = NAMES[name]().sample(1, 0)
    tol = 1e-10 if name in IMAGING else 1e-12
    best = optimum(problem, tol)
    assert best.dtype == torch.float64
    assert best.shape == (1,)
    found = pl.solve(problem.to(torch.float64), tol=1e-7, max_iter=5000)
    assert found.solved
    assert best.item() <= found.objective.item() * (1 + tol)
    if found.gap.isfinite().all():
        assert best.item() >= (found.objective - found.gap).item() * (1 - tol)


def test_optimum_that_is_not_certified_is_refused():
    with pytest.raises(
        pl.InputError, match="3 of 3 instances is not certified to 1e-12 after 1"
    ) as e:
        optimum(SMALL.sample(3, 0), max_iter=1)
    assert "\n" not in str(e.value)


def test_runs_are_those_of_solve():
    problem = SMALL.sample(3, 1)
    result = compare(problem, ["ista", "fista"], max_iter=30)
    assert list(result.runs) == ["ista", "fista"]
    history = pl.solve(problem, "fista", tol=0, max_iter=30, record=True).history
    run = result.runs["fista"]
    assert run.objective.shape == run.grad_evals.shape == (31, 3)
    assert run.seconds.shape == (31,)
    assert run.objective.dtype == torch.float64
    torch.testing.assert_close(run.objective, history.objective, rtol=0, atol=0)
    assert torch.equal(run.grad_evals, history.grad_evals)
    assert bool((run.seconds.diff() > 0).all())


def test_blocks_change_nothing(monkeypatch):
    problem = SMALL.sample(5, 2, dtype=torch.float64)
    whole = compare(problem, ["fista"], max_iter=20)
    monkeypatch.setattr("proxlearn.evaluation.comparison.BLOCK", 2)
    blocks = compare(problem, ["fista"], max_iter=20)
    torch.testing.assert_close(blocks.optimum, whole.optimum, rtol=1e-11, atol=0)
    run = blocks.runs["fista"]
    torch.testing.assert_close(run.objective, whole.runs["fista"].objective, rtol=1e-12, atol=0)
    assert torch.equal(run.grad_evals, whole.runs["fista"].grad_evals)
    assert run.seconds.shape == (21,)


@pytest.mark.slow
def test_gaps_are_relative_to_the_optimum_and_never_negative():
    problem = SMALL.sample(3, 1, dtype=torch.float64)
    result = compare(problem, ["fista-restart"], max_iter=1500)
    gap = result.relative_gap("fista-restart")
    assert bool((gap >= 0).all())
    assert gap[-1].max().item() < 1e-11
    first = problem.objective(torch.zeros(3, 40, dtype=torch.float64))
    torch.testing.assert_close(gap[0], first / result.optimum - 1)
    torch.testing.assert_close(result.mean_gap("fista-restart"), gap.mean(1))


def made_up():
    """Two instances with optima 1 and 2, three iterations."""
    objective = torch.tensor([[2.0, 4.0], [1.5, 2.2], [1.0, 2.4], [1.0, 2.0]], dtype=torch.float64)
    gradients = torch.arange(4)[:, None].expand(4, 2)
    run = Run(objective, gradients, torch.tensor([0.0, 0.5, 1.0, 2.0]))
    return Comparison(torch.tensor([1.0, 2.0]).double(), {"made-up": run})


def test_counts_by_hand():
    result = made_up()
    np.testing.assert_allclose(result.mean_gap("made-up"), [1.0, 0.3, 0.1, 0.0], atol=1e-15)
    assert result.iterations_to("made-up", 0.4) == 1
    assert result.iterations_to("made-up", 2.0) == 0
    assert result.iterations_to("made-up", 1e-9) == 3
    assert result.iterations_to("made-up", 0.0) is None
    assert result.seconds_to("made-up", 0.2) == 1.0
    assert result.seconds_to("made-up", 0.0) is None


def test_rows_hold_everything_once(tmp_path):
    found = list(made_up().rows())
    assert len(found) == 8
    assert found[0] == Row("made-up", 0, 0, 2.0, 1.0, 0, 0.0)
    assert found[-1] == Row("made-up", 1, 3, 2.0, 0.0, 3, 2.0)
    assert {(r.instance, r.iteration) for r in found} == {(i, k) for i in (0, 1) for k in range(4)}
    rows.save(made_up(), tmp_path / "rows.csv")
    lines = (tmp_path / "rows.csv").read_text().splitlines()
    assert lines[0] == "optimizer,instance,iteration,objective,relative_gap,grad_evals,seconds"
    assert lines[1] == "made-up,0,0,2.0,1.0,0,0.0"
    assert len(lines) == 9


def test_objects_and_a_given_optimum():
    problem = GaussianLogistic(m=40, n=10, nonzeros=5).sample(2, 0)
    mine = {"mine": pl.optimizers.get("fista"), "other": pl.optimizers.get("ista")}
    best = optimum(problem)
    result = compare(problem, mine, max_iter=5, optimum=best)
    assert list(result.runs) == ["mine", "other"]
    assert torch.equal(result.optimum, best)
    too_high = compare(problem, mine, max_iter=5, optimum=best + 1)
    assert bool((too_high.relative_gap("mine") >= 0).all())


def test_a_watch_sees_every_iteration(monkeypatch):
    monkeypatch.setattr("proxlearn.evaluation.comparison.BLOCK", 2)
    seen = []
    compare(SMALL.sample(3, 0), ["ista"], max_iter=3, watch=lambda *event: seen.append(event))
    ista = [(what, done) for what, done, _ in seen if what.startswith("ista")]
    assert [what for what, _ in ista] == 2 * [f"ista, iteration {k}" for k in (1, 2, 3)]
    assert [what.split(",")[0] for what, _, _ in seen[:: len(seen) - 1]] == ["optimum", "ista"]
    # The optimum is the first of two parts; two of the three instances are in the first block.
    expected = [1 + k * 2 / 9 for k in (1, 2, 3)] + [1 + 2 / 3 + k / 9 for k in (1, 2, 3)]
    assert [done for _, done in ista] == pytest.approx(expected)
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)
    assert {total for _, _, total in seen} == {2}


def test_a_comparison_knows_which_runs_are_learned():
    result = compare(SMALL.sample(1, 0), ["ista", "lasso"], max_iter=1)
    assert result.learned == {"lasso"}
    assert [result.label(name) for name in result.runs] == ["ista", "lasso (learned)"]
    assert result.with_run("more", result.runs["ista"]).learned == {"lasso"}


@pytest.mark.parametrize(
    ("optimizers", "message"),
    [([], "at least one"), ("ista", "a list of names"), (["isat"], "unknown optimizer 'isat'")],
)
def test_bad_optimizers(optimizers, message):
    with pytest.raises(pl.InputError, match=message):
        compare(SMALL.sample(1, 0), optimizers, max_iter=1)


def test_bad_optimum():
    with pytest.raises(pl.InputError, match=r"shape \(3,\); expected \(2,\)"):
        compare(SMALL.sample(2, 0), ["ista"], max_iter=1, optimum=torch.ones(3))
