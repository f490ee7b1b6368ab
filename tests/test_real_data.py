"""`auto` on real data: always solved, and for a fraction of what FISTA with restart costs."""

import pytest
import torch

import proxlearn as pl
from proxlearn.problems import datasets

PARTS = [0.5, 0.1, 0.01, 0.001]
"""Of lambda_max."""


def problems():
    """LASSO and logistic regression on standardised features, at every part of lambda_max."""
    for name in ("spambase", "ionosphere"):
        A, b = getattr(datasets, name)()
        A = datasets.standardise(A)
        y = b - b.mean()
        for part in PARTS[:3] if name == "spambase" else PARTS:  # 0.001 takes FISTA minutes there
            yield pl.lasso(A, y, part * float((A.T @ y).abs().max()))
            yield pl.logistic(A, b, part * float((A.T @ (0.5 - b)).abs().max()) / len(b))


@pytest.mark.slow
def test_auto_is_always_solved_and_cheap(data_folder, monkeypatch):
    monkeypatch.setenv("PROXLEARN_DATA", str(data_folder))
    ratios = []
    for problem in problems():
        fista = pl.solve(problem, "fista-restart", max_iter=20_000, polish=False)
        auto = pl.solve(problem, max_iter=5000)
        assert fista.solved
        assert auto.solved
        assert auto.objective.item() == pytest.approx(fista.objective.item(), rel=3e-6)
        ratios.append(auto.grad_evals.item() / fista.grad_evals.item())
    assert len(ratios) == 14
    assert torch.tensor(ratios).median() <= 0.35
    assert max(ratios) <= 1
