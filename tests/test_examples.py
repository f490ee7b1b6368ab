"""The scripts in examples/ run, and show what they say."""

import importlib.util
import re
import runpy
import sys
from pathlib import Path

import pytest
import torch

from proxlearn import Solution

FOLDER = Path(__file__).resolve().parents[1] / "examples"
QUICK = {
    "smooth_case": ["--steps", "2"],
    "nonsmooth_case": [],
    "explicit_subgradient": [],
    "structure_of_rules": [],
}
"""Arguments with which each script takes seconds."""


def load(name, monkeypatch):
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def rows(text, columns=3):
    """The last numbers of each printed line by the words before them."""
    found = {}
    for line in text.splitlines():
        words, *numbers = re.split(r" {2,}", line)
        found[" ".join([words, *numbers[:-columns]])] = numbers[-columns:]
    return found


GALLERY = sorted(FOLDER.glob("plot_*.py"))
"""Scripts that draw, for the gallery of the documentation."""


def test_every_example_is_in_the_table():
    assert {file.stem for file in set(FOLDER.glob("*.py")) - set(GALLERY)} == set(QUICK)
    assert len(GALLERY) >= 8


@pytest.mark.slow
@pytest.mark.parametrize("file", GALLERY, ids=lambda file: file.stem)
def test_gallery_scripts_draw_and_solve(file, monkeypatch, capsys):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    monkeypatch.delenv("PROXLEARN_DATA", raising=False)
    try:
        names = runpy.run_path(str(file), run_name="__main__")
        panels = [a for n in pyplot.get_fignums() for a in pyplot.figure(n).axes]
        assert panels
        assert all(axes.has_data() for axes in panels)
    finally:
        pyplot.close("all")
    solved = [value.solved for value in names.values() if isinstance(value, Solution)]
    assert all(solved)
    said = capsys.readouterr().out.count("SOLVED")
    assert said >= len(solved)
    assert solved or file.stem == "plot_learned_rule"


@pytest.mark.slow
def test_the_papers_rule_needs_the_safeguard_in_other_units(monkeypatch, capsys):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    runpy.run_path(str(FOLDER / "plot_safeguard.py"))
    pyplot.close("all")
    printed = capsys.readouterr().out.splitlines()
    assert ["SOLVED" in line for line in printed] == [False, True, True, True]


@pytest.mark.slow
def test_the_structure_that_the_theorems_construct(monkeypatch):
    module = load("structure_of_rules", monkeypatch)
    rows = module.smooth_table()
    distances, preconditioners, biases, errors = zip(*(row[1:] for row in rows), strict=True)
    assert max(errors) < 1e-14
    assert max(preconditioners) <= 1.2  # tanh' + 0.2 sin^2
    assert biases[-1] < 1e-5 < 1e-1 < biases[0]
    assert distances[-1] < 1e-4
    steps, left = zip(*module.explicit_table(), strict=True)
    assert all(p / 2 < distance for p, distance in zip(steps, left, strict=True))
    assert left[0] > left[1] > left[2]


@pytest.mark.slow
def test_smooth_case(monkeypatch, capsys):
    load("smooth_case", monkeypatch).main(QUICK["smooth_case"])
    table = rows(capsys.readouterr().out)
    assert {"nesterov", "learned pb1", "learned pa", "lbfgs"} < set(table)
    assert int(table["lbfgs"][1]) < int(table["nesterov"][1]) <= 100
    assert float(table["lbfgs"][2]) < 1e-12


@pytest.mark.slow
def test_nonsmooth_case(monkeypatch, capsys):
    load("nonsmooth_case", monkeypatch).main(QUICK["nonsmooth_case"])
    table = rows(capsys.readouterr().out, columns=4)
    one, two, learned = (
        [float(gap) for gap in table[name]] for name in ("ppa, p = 1", "ppa, p = 2", "learned p")
    )
    for k in (1, 2, 3):
        assert learned[k] < two[k] < one[k]
    assert learned[3] < 1e-5 < float(table["learned pb1"][3])


@pytest.mark.slow
def test_explicit_subgradient_prints_and_draws(monkeypatch, capsys, tmp_path):
    module = load("explicit_subgradient", monkeypatch)
    monkeypatch.setattr(module, "learn", lambda rule: torch.full((20,), 0.25).double())
    module.main([*QUICK["explicit_subgradient"], "--plot", str(tmp_path / "plot.png")])
    table = rows(capsys.readouterr().out)
    assert float(table["explicit constant 0.1"][-1]) == pytest.approx(0.1, rel=1e-6)
    assert float(table["implicit constant 0.1"][-1]) == 0
    assert (tmp_path / "plot.png").stat().st_size > 10_000


@pytest.mark.parametrize("p", [0.3, 0.01])
def test_an_explicit_step_that_does_not_vanish_keeps_every_start_away(monkeypatch, p):
    module = load("explicit_subgradient", monkeypatch)
    x0 = module.starts(1000)  # without 0 itself
    x = module.run("explicit", [p] * 200, x0).abs()
    assert (x[1:] + x[:-1] >= p - 1e-12).all()
    assert (torch.maximum(x[1:], x[:-1]) >= p / 2 - 1e-12).all()
    assert (module.run("implicit", [p] * 200, x0)[-1] == 0).all()


@pytest.mark.slow
def test_learned_explicit_steps_vanish_and_implicit_ones_need_not(monkeypatch):
    module = load("explicit_subgradient", monkeypatch)
    explicit, implicit = module.learn("explicit"), module.learn("implicit")
    assert explicit[0] == pytest.approx(0.5, abs=0.02)  # the best first step for all of [-1, 1]
    assert (explicit[8:] < 0.02).all()
    assert (implicit > 0.1).all()
    x0 = module.starts()
    assert (module.run("implicit", implicit, x0)[-1] == 0).all()
    assert module.run("explicit", explicit, x0)[-1].abs().max() > 1e-4
