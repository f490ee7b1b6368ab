"""The demonstration: its numbers, its table, its picture."""

import contextlib
import io
import re
import sys

import pytest
import torch

from proxlearn import InputError
from proxlearn.cli import main
from proxlearn.evaluation import demo
from proxlearn.evaluation.comparison import Comparison, Run
from proxlearn.evaluation.report import curves
from proxlearn.evaluation.report.results import from_comparison
from proxlearn.evaluation.report.tables import reached


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    """The folder, the printed text and the comparison of a small demonstration."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    original, kept, text = demo.run, [], io.StringIO()

    def keep(*arguments):
        kept.append(original(*arguments))
        return kept[-1]

    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(text):
        patch.setattr(demo, "run", keep)
        patch.setenv("COLUMNS", "200")
        assert main(["demo", "--count", "4", "--seed", "1", "--out", str(folder)]) == 0
    return folder, text.getvalue(), kept[0]


def label(name):
    return {"lasso": "lasso (learned)"}.get(name, name)


@pytest.mark.slow
def test_table_agrees_with_the_comparison(output):
    folder, text, result = output
    assert f"wrote {folder / 'index.html'}" in text
    for name in demo.OPTIMIZERS:
        (line,) = (line for line in text.splitlines() if f"│ {name} " in line)
        cells = re.findall(r"(\d+) / ([\d.]+)", line)
        for eps, (k, ms) in zip(demo.LEVELS, cells, strict=True):
            assert int(k) == result.iterations_to(name, eps)
            assert float(ms) == pytest.approx(1e3 * result.seconds_to(name, eps) / 4, abs=0.006)


@pytest.mark.slow
def test_the_picture_opens(output):
    from matplotlib.image import imread

    folder, _, _ = output
    names = ["convergence.png", "convergence.svg", "index.html"]
    assert sorted(p.name for p in folder.iterdir()) == names
    pixels = imread(folder / "convergence.png")
    assert pixels.shape[0] > 400
    assert pixels.shape[1] > 800
    assert pixels.std() > 0.05
    assert (folder / "convergence.png").stat().st_size < 150_000


@pytest.mark.slow
def test_the_page_names_the_command_that_makes_it_again(output):
    text = (output[0] / "index.html").read_text(encoding="utf-8")
    assert "<code>proxlearn demo --count 4 --seed 1</code>" in text
    for name in demo.OPTIMIZERS:
        assert f'<th scope="row">{label(name)}</th><td>' in text


@pytest.mark.slow
def test_table_page_and_notes_say_which_optimizer_is_learned(output):
    folder, text, result = output
    assert result.learned == {"lasso"}
    assert "│ lasso (learned) " in text
    assert text.count("(learned)") == 1
    said = "lasso: a learned rule with 890 weights, trained on gaussian-lasso"
    assert f"\n{said}\n" in text
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert f"<li>{said}</li>" in page
    assert '"label":"lasso (learned)"' in page  # the legend of the plot


@pytest.mark.slow
def test_methods_rank_as_theory_says(output):
    result = output[2]
    ista, fista, restart, learned = (result.iterations_to(name, 1e-6) for name in demo.OPTIMIZERS)
    assert learned < restart < fista < ista <= demo.MAX_ITER


@pytest.mark.slow
def test_same_seed_same_numbers(output):
    again = demo.run(4, 1)
    for name in demo.OPTIMIZERS:
        assert torch.equal(again.runs[name].objective, output[2].runs[name].objective)


def test_a_level_that_is_not_reached_is_said():
    run = Run(torch.ones(6, 1).double(), torch.zeros(6, 1), torch.arange(6.0))
    result = Comparison(torch.full((1,), 0.5).double(), {"slow": run})
    assert reached(result, "slow", 1e-3) == "not within 5"


@pytest.mark.slow
def test_the_plot_has_a_named_curve_for_each_optimizer(output):
    experiment = from_comparison("convergence", output[2], demo.card(4, 1))
    axes = curves.convergence(experiment).axes[0]
    assert [line.get_label() for line in axes.lines] == [label(n) for n in demo.OPTIMIZERS]
    assert axes.get_yscale() == "log"
    assert "gradient" in axes.get_xlabel()
    iterations, drawn = axes.lines[2].get_data()
    expected = output[2].mean_gap("fista-restart").clamp(min=curves.FLOOR).numpy()
    assert (drawn == expected[iterations.astype(int)]).all()
    assert iterations[0] == 0
    assert iterations[-1] == len(expected) - 1
    assert len(drawn) > 100


def test_without_matplotlib_the_line_says_what_to_install(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["demo", "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.startswith("error: plots need matplotlib")
    assert not (tmp_path / "out").exists()


def test_bad_count():
    with pytest.raises(InputError, match="at least one problem"):
        demo.run(0)
