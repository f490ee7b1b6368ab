"""The page about extending: its code runs, its counts of lines are true, and additions work."""

import importlib
import re
import sys
from pathlib import Path

import pytest
import torch

import proxlearn as pl
from proxlearn.evaluation.experiments import runner

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "proxlearn"
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
SECTIONS = {
    title.lower(): code
    for title, code in re.findall(r"^## ([^\n]+)\n.*?```python\n(.*?)```", PAGE, re.M | re.S)
}
ROWS = re.findall(r"^\| ([a-z ]+) \| (\d+) \| `([^|]+)` \| `([^|]+)` \| ([^|]+) \|$", PAGE, re.M)


def lines(code):
    """Lines of code: no imports, no docstrings, no comments, no blank lines."""
    plain = re.sub(r'""".*?"""', "", code, flags=re.S)
    plain = re.sub(r"^from .*? import \([^)]*\)$", "", plain, flags=re.M)
    found = [line for line in plain.splitlines() if line.strip()]
    return len([line for line in found if not re.match(r"(from|import|#)\b|\s*#", line)])


@pytest.fixture(scope="module")
def added(tmp_path_factory):
    """A module of one's own, outside of the package, with all sections of the page in order."""
    folder = tmp_path_factory.mktemp("added")
    code = "\n".join(SECTIONS.values())
    (folder / "my_additions.py").write_text(code, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield importlib.import_module("my_additions")
        patch.delitem(sys.modules, "my_additions")


def test_the_page_counts_the_lines_of_every_addition(capsys):
    counted = {title: lines(code) for title, code in SECTIONS.items()}
    with capsys.disabled():
        print("\nlines of code of an addition:", counted)
    assert {title: int(count) for title, count, *_ in ROWS} == counted


def test_the_places_of_the_table_exist():
    for title, _, folder, registry, row in ROWS:
        assert (PACKAGE / folder).is_dir(), title
        assert (PACKAGE / registry).is_file(), title
        for table in re.findall(r"`(tests/[^`]+)`", row):
            assert (ROOT / table).is_file(), title


def test_a_penalty_a_smooth_term_and_a_rule_solve_a_problem(added):
    c = torch.tensor([[1.0, -2.0]], dtype=torch.float64)
    lam = torch.tensor([3.0], dtype=torch.float64)
    problem = pl.Problem(added.Distance(c), added.Ridge(lam))
    solution = pl.solve(problem, pl.Scheme(added.Steady()), tol=1e-10)
    assert solution.solved
    assert solution.gap.isfinite().all()
    torch.testing.assert_close(solution.x, c / 4, rtol=1e-4, atol=0)


def test_a_classic_optimizer_runs_by_itself(added):
    problem = pl.families.GaussianLeastSquares(m=20, n=5).sample(2, 0, dtype=torch.float64)
    result = pl.compare(problem, {"heavy ball": added.HeavyBall(), "ista": "ista"}, max_iter=200)
    ours, theirs = (result.iterations_to(name, 1e-6) for name in ("heavy ball", "ista"))
    assert ours < theirs


def test_a_family_can_be_solved_and_trained_on(added):
    family = added.NoisyLasso(m=10, n=20, nonzeros=2)
    assert pl.solve(family.sample(2, 0), tol=1e-4, max_iter=5000).solved
    config = pl.TrainConfig(steps=2, horizon=10, unroll=10, batch=4, validation=4)
    assert pl.train(family, config).card["status"] == "finished"


def test_an_experiment_runs_without_results_at_the_papers_size(added, tmp_path):
    runner.run(added.EXPERIMENT, "quick", tmp_path)
    assert (tmp_path / "noise.parquet").stat().st_size > 1000


def test_the_page_shows_the_learned_optimizer_as_it_is():
    code = (PACKAGE / "methods" / "optimizers" / "rnnprop.py").read_text(encoding="utf-8")
    assert code == SECTIONS["learned optimizer"]
    assert code.count("\n") <= 60
