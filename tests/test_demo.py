"""The demonstration: its numbers, its table, its picture."""

import contextlib
import io
import re
import sys
from functools import partial
from html import escape

import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

from proxlearn import InputError
from proxlearn.cli import main
from proxlearn.evaluation import coordinate_descent, demo, wide_problem
from proxlearn.evaluation.comparison import Comparison, Run
from proxlearn.evaluation.family_comparison import LEVELS
from proxlearn.evaluation.report import curves
from proxlearn.evaluation.report.page_data import from_comparison
from proxlearn.evaluation.report.tables import reached
from proxlearn.training.families import GaussianLasso

ARGUMENTS = ["--count", "4", "--seed", "1", "--steps", "12"]


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    """The folder, the printed text and the comparison of a small demonstration."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    original, kept, text = demo.solve_fresh, [], io.StringIO()

    def keep(*arguments):
        kept.append(original(*arguments))
        return kept[-1]

    measure = partial(wide_problem.measure, columns=500)
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(text):
        patch.setattr(demo, "solve_fresh", keep)
        patch.setattr(wide_problem, "measure", measure)
        patch.setenv("COLUMNS", "200")
        assert main(["demo", *ARGUMENTS, "--out", str(folder)]) == 0
    return folder, text.getvalue(), kept[0]


LEARNED = ("lasso", demo.TRAINED)
NAMES = (*demo.NAMED, demo.TRAINED, demo.PEER, demo.CORE)


def label(name):
    return f"{name} (learned)" if name in LEARNED else name


@pytest.mark.slow
def test_table_agrees_with_the_comparison(output):
    folder, text, result = output
    assert tuple(result.runs) == NAMES
    assert f"wrote {folder / 'index.html'}" in text
    for name in NAMES:
        (line,) = (line for line in text.splitlines() if f"│ {label(name)} " in line)
        cells = re.findall(r"(\d+) / ([\d.]+)", line)
        for eps, (k, ms) in zip(LEVELS, cells, strict=True):
            assert int(k) == result.iterations_to(name, eps)
            assert float(ms) == pytest.approx(1e3 * result.seconds_to(name, eps) / 4, abs=0.006)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["convergence", "wide"])
def test_the_picture_opens(output, name):
    from matplotlib.image import imread

    pixels = imread(output[0] / f"{name}.png")
    assert pixels.shape[0] > 400
    assert pixels.shape[1] > 800
    assert pixels.std() > 0.05
    assert (output[0] / f"{name}.png").stat().st_size < 150_000


@pytest.mark.slow
def test_nothing_but_the_page_and_its_pictures_is_written(output):
    pictures = [f"{n}.{kind}" for n in ("convergence", "wide") for kind in ("png", "svg")]
    assert sorted(p.name for p in output[0].iterdir()) == sorted(["index.html", *pictures])


@pytest.mark.slow
def test_the_page_names_the_command_that_makes_it_again(output):
    text = (output[0] / "index.html").read_text(encoding="utf-8")
    assert f"<code>proxlearn demo {' '.join(ARGUMENTS)}</code>" in text
    for name in NAMES:
        assert f'<th scope="row">{label(name)}</th><td>' in text


@pytest.mark.slow
def test_three_lines_on_page_and_terminal_say_what_was_seen(output):
    folder, text, result = output
    page = (folder / "index.html").read_text(encoding="utf-8")
    trained, times, wide = text.split("\n\n")[-2].splitlines()
    for line in (trained, times, wide):
        assert escape(line) in page
    k = [result.iterations_to(demo.TRAINED, level) for level in LEVELS]
    assert f"needs {k[0]} and {k[1]} iterations" in trained
    said = [float(number) for number in re.findall(r" (\d+\.\d\d)\b", times)]
    assert len(said) == len(NAMES)
    assert said == sorted(said)
    assert re.search(r"100 × 500 the compiled core takes [\d.]+ ms", wide)
    gaps = re.search(r"gaps (\S+) and (\S+) at the end", wide).groups()
    assert all(float(gap) < 1e-8 for gap in gaps)


@pytest.mark.slow
def test_table_page_and_notes_say_which_optimizer_is_learned(output):
    folder, text, result = output
    assert result.learned == set(LEARNED)
    said = "lasso: a learned rule with 890 weights, trained on gaussian-lasso"
    assert f"\n{said}\n" in text
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert f"<li>{said}</li>" in page
    assert '"label":"lasso (learned)"' in page  # the legend of the plot


@pytest.mark.slow
def test_methods_rank_as_theory_says(output):
    result = output[2]
    fista, restart, shipped, trained, peer, core = (
        result.iterations_to(name, 1e-6) for name in NAMES
    )
    assert shipped < restart < fista <= demo.MAX_ITER
    assert trained < fista  # after a twentieth of the training of the demonstration
    assert core < peer <= coordinate_descent.SWEEPS


@pytest.mark.slow
def test_the_recorded_sweeps_are_those_of_one_fit(output):
    """Fits of one sweep that go on from each other are one fit of many sweeps."""
    problem = GaussianLasso().sample(4, 1)
    A, b = problem.f.A.A[0].double().numpy(), problem.f.b[0].double().numpy()
    with pytest.warns(ConvergenceWarning):
        model = coordinate_descent.lasso(0.1 / len(b), 5).fit(A, b)
    x = torch.from_numpy(model.coef_)[None]
    exact = problem.to(torch.float64).select(torch.tensor([0])).objective(x)
    recorded = output[2].runs[demo.PEER].objective[5, 0]
    torch.testing.assert_close(exact[0], recorded, rtol=1e-4, atol=0)


def test_the_wide_problem_is_solved_by_both():
    found = wide_problem.measure(seed=2, columns=300)
    for curve, gap in zip((found.core, found.peer), found.gaps, strict=True):
        assert gap < wide_problem.END
        assert curve.value[0] > 0.1
        assert curve.value[-1] < 1e-8
        assert (curve.seconds[1:] >= curve.seconds[:-1]).all()
    assert found.experiment(2).against_time
    axes = curves.convergence(found.experiment(2)).axes[0]
    assert axes.get_xlabel() == "milliseconds a problem"
    assert axes.get_xlim()[1] == pytest.approx(
        1e3 * max(found.core.seconds[-1], found.peer.seconds[-1]), rel=0.9
    )


@pytest.mark.slow
def test_same_seed_same_numbers(output):
    again = demo.solve_fresh(demo.train_rule(1, 12), 4, 1)
    for name in NAMES:
        assert torch.equal(again.runs[name].objective, output[2].runs[name].objective)


def test_a_level_that_is_not_reached_is_said():
    run = Run(torch.ones(6, 1).double(), torch.zeros(6, 1), torch.arange(6.0))
    result = Comparison(torch.full((1,), 0.5).double(), {"slow": run})
    assert reached(result, "slow", 1e-3) == "not within 5"


@pytest.mark.slow
def test_the_plot_has_a_named_curve_for_each_optimizer(output):
    experiment = from_comparison("convergence", output[2], demo.fresh_card(4, 1))
    axes = curves.convergence(experiment).axes[0]
    assert [line.get_label() for line in axes.lines] == [label(n) for n in NAMES]
    assert axes.get_yscale() == "log"
    assert "gradient" in axes.get_xlabel()
    iterations, drawn = axes.lines[1].get_data()
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
        demo.solve_fresh(None, 0)


def test_without_scikit_learn_the_line_says_what_to_install(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert main(["demo", "--out", str(tmp_path / "out")]) == 2
    assert "scikit-learn, which is not installed" in capsys.readouterr().err
