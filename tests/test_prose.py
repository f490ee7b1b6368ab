"""The code in README and CONTRIBUTING runs, and prints what they say."""

import contextlib
import io
import re
import sys
import types
from pathlib import Path

import pytest
import torch

import proxlearn as pl

ROOT = Path(__file__).resolve().parents[1]


def blocks(name, language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / name).read_text("utf-8"), re.DOTALL)


README = list(zip(blocks("README.md", "python"), blocks("README.md", "text"), strict=True))


@pytest.mark.parametrize(("code", "expected"), README, ids=range(len(README)))
def test_readme_prints_what_it_says(code, expected):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue() == expected


def test_readme_links_exist():
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / "README.md").read_text("utf-8"))
    assert links
    assert all((ROOT / link).is_file() for link in links)


@pytest.fixture
def examples(monkeypatch):
    module = types.ModuleType("contributing_examples")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses look it up
    exec("\n".join(blocks("CONTRIBUTING.md", "python")), module.__dict__)
    return module


def test_contributing_examples_solve_a_problem(examples):
    c = torch.tensor([[1.0, -2.0]], dtype=torch.float64)
    lam = torch.tensor([3.0], dtype=torch.float64)
    problem = pl.Problem(examples.Distance(c), examples.Ridge(lam))
    solution = pl.solve(problem, pl.Scheme(examples.Steady()), tol=1e-10)
    assert solution.solved
    assert solution.gap.isfinite().all()
    torch.testing.assert_close(solution.x, c / 4, rtol=1e-4, atol=0)
    noisy = examples.NoisyLasso(m=10, n=20, nonzeros=2).sample(2, 0)
    assert pl.solve(noisy, tol=1e-4, max_iter=5000).solved


def test_contributing_shows_the_learned_optimizer_as_it_is():
    file = ROOT / "src" / "proxlearn" / "methods" / "optimizers" / "rnnprop.py"
    code = file.read_text("utf-8")
    assert code in blocks("CONTRIBUTING.md", "python")
    assert code.count("\n") <= 60
