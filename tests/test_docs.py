"""The pages in docs/: their code runs, and their numbers are those of the shipped models."""

import contextlib
import io
import json
import re
import sys
import types
from collections import Counter
from dataclasses import asdict
from functools import cache
from html import escape
from pathlib import Path

import numpy as np
import pytest

import proxlearn as pl
from proxlearn.cli import main
from proxlearn.evaluation import experiments
from proxlearn.evaluation.report import claims, verdicts
from proxlearn.evaluation.report.counts import Results, first_below
from proxlearn.training.recipes import RECIPES

DOCS = Path(__file__).resolve().parents[1] / "docs"
RESULTS = DOCS / "results"
MEASURED = {
    "1,024 fresh LASSO problems, 250 x 500": "gaussian-lasso",
    "Spambase, lambda 0.1": "spambase lam 0.1",
    "Spambase, lambda 0.001": "spambase lam 0.001",
    "Ionosphere, lambda 0.001": "ionosphere lam 0.001",
    "Ionosphere, lambda 0.1": "ionosphere lam 0.1",
}
"""What a card calls the problems that the pages name."""
PLACES = {
    "logistic": "{count} synthetic, 1000 x 50",
    "ionosphere": "Ionosphere, 351 x 34",
    "spambase": "Spambase, 4601 x 57",
}
"""The first column of the table about the step."""


def text(name):
    return (DOCS / name).read_text(encoding="utf-8")


def python_of(name):
    return "\n".join(re.findall(r"```python\n(.*?)```", text(name), re.DOTALL))


@pytest.mark.slow
def test_the_tour_prints_what_it_says():
    (expected,) = re.findall(r"```text\n(.*?)```", text("tour.md"), re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(python_of("tour.md"), {})
    assert printed.getvalue().startswith(expected)


def test_the_landing_page_prints_what_it_says():
    (expected,) = re.findall(r"```text\n(.*?)```", text("index.md"), re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(python_of("index.md"), {})
    assert printed.getvalue() == expected


@pytest.mark.parametrize("page", ["for-regression", "for-many-problems", "for-research"])
def test_the_page_of_each_kind_of_user_runs(page):
    """What the pages claim are assertions in their code."""
    code = python_of(f"{page}.md")
    assert "assert " in code
    exec(code, {})


@pytest.mark.slow
def test_a_family_of_ones_own_can_be_trained_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("documented_family")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses look it up
    exec(python_of("train.md"), module.__dict__)
    assert pl.load("mine.safetensors").card["status"] == "finished"


def test_the_guide_to_training_the_command_line_and_the_configuration_agree(monkeypatch, capsys):
    """What the guide advises is the default in Python and on the command line."""
    rows = re.findall(r"^\| `(\w+)` \| `([\w.-]+)` \|", text("train.md"), re.M)
    config = pl.TrainConfig()
    advised = dict(rows)
    assert {name: str(getattr(config, name)) for name in advised} == advised
    shipped = {name: RECIPES[name][1] for name in ("lasso", "logistic", "general")}
    steps = sorted(config.steps for config in shipped.values())
    assert f"had {steps[0]} to {steps[-1]} minibatches" in text("train.md")
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["train", "--help"]) == 0
    printed = capsys.readouterr().out
    assert "[default: compact]" in printed
    for name in ("steps", "batch", "horizon", "unroll", "lr", "schedule", "loss"):
        (line,) = re.findall(rf"^\W*--{name} .*$", printed, re.M)
        assert f"({advised[name]})" in line


def test_the_command_line_trains_with_the_defaults(tmp_path, monkeypatch):
    seen = []

    def stop(family, config, **options):
        seen.append(config)
        raise pl.InputError("not trained here")

    monkeypatch.setattr("proxlearn.evaluation.training_job.train", stop)
    out = str(tmp_path / "mine.safetensors")
    for more in ([], ["--rule", "pa"]):
        assert main(["train", "gaussian-lasso", "--out", out, *more]) == 2
    assert seen == [pl.TrainConfig(), pl.TrainConfig.paper()]
    page, paper = " ".join(text("train.md").split()), pl.TrainConfig.paper()
    assert f"a horizon of {paper.horizon} without warm-up" in page
    assert f"a {paper.schedule} step and the loss `{paper.loss}`" in page
    assert paper.warmup == 0


def test_the_choice_quotes_the_cards():
    rows = re.findall(r"^\| (.+?) \| `([\w-]+)` \| (.+?) \| (\d.+?) \|$", text("choose.md"), re.M)
    assert len(rows) >= 7
    place = ""
    for problems, model, learned, classic in rows:
        place = place if problems == "the same" else MEASURED[problems]
        result = pl.load(model).card["results"][place]
        assert " / ".join(map(str, result[model])) == learned
        assert " / ".join(map(str, result["fista-restart"])) == classic


def counted(page):
    """The pairs of iterations in a page's prose and tables."""
    return re.findall(r"\b\d+ / \d+\b", text(page))


def test_what_is_said_of_the_paper_quotes_the_cards():
    cards = {name: pl.load(name).card["results"] for name in ("lasso", "lasso-pa", "logistic")}
    lasso, ionosphere = "gaussian-lasso", "ionosphere lam 0.001"
    for card, place, model in [
        ("lasso", lasso, "lasso"),
        ("lasso-pa", lasso, "lasso-pa"),
        ("lasso", lasso, "fista-restart"),
        ("logistic", ionosphere, "logistic"),
        ("logistic", ionosphere, "fista-restart"),
        ("logistic", "spambase lam 0.1", "logistic"),
        ("logistic", "spambase lam 0.1", "fista-restart"),
        ("logistic", "ionosphere lam 0.1", "logistic"),
        ("logistic", "ionosphere lam 0.1", "fista-restart"),
    ]:
        assert " / ".join(map(str, cards[card][place][model])) in counted("paper.md")


@cache
def committed():
    """The committed results, and their cards by name."""
    figures = [name for name in experiments.NAMES if experiments.get(name).paper_figure]
    cards = {name: json.loads((RESULTS / f"{name}.json").read_text()) for name in figures}
    assert len(cards) >= 11
    return Results(RESULTS), cards


def test_every_experiment_of_the_paper_has_committed_results():
    _, cards = committed()
    for name, card in cards.items():
        assert card["scale"] == "paper"
        assert card["command"].startswith(f"proxlearn reproduce {name} --scale paper")
        experiment = experiments.get(name)
        small = card["count"] < experiment.paper.count
        assert any("Smaller than the full size" in note for note in card["notes"]) >= small
        assert card["levels"] == list(experiment.levels)
        for kind in ("parquet", "png", "svg"):
            assert (RESULTS / f"{name}.{kind}").stat().st_size > 1000
    tracked = [f for f in RESULTS.iterdir() if f.name not in (".cache", "weights")]
    assert {f.suffix for f in tracked} == {".parquet", ".json", ".png", ".svg", ".html"}
    assert sum(f.stat().st_size for f in tracked) < 12e6


@pytest.mark.slow
def test_the_committed_verdicts_follow_from_the_rows():
    written = json.loads((RESULTS / "claims.json").read_text(encoding="utf-8"))
    assert [asdict(verdict) for verdict in claims.judge(RESULTS)] == written
    assert not [claim["claim"] for claim in written if claim["verdict"] == verdicts.OPEN]
    page = (RESULTS / "index.html").read_text(encoding="utf-8")
    for claim in written:
        assert escape(claim["claim"]) in page
        assert escape(claim["ours"]) in page


def test_the_readme_counts_the_verdicts():
    written = json.loads((RESULTS / "claims.json").read_text(encoding="utf-8"))
    count = Counter(claim["verdict"] for claim in written)
    said = " ".join((DOCS.parent / "README.md").read_text(encoding="utf-8").split())
    assert f"Of {len(written)} of its statements {count[verdicts.YES]} are reproduced" in said
    assert f"{count[verdicts.ONLY]} only with the paper's step" in said
    assert f"and {count[verdicts.NO]} are not" in said


@pytest.mark.slow
def test_what_is_said_of_the_step_quotes_the_rows():
    results, cards = committed()
    rows = re.findall(r"^\| ([^|]+) \| (\d+ / [^|]+) \|(.+)\|$", text("paper.md"), re.M)
    assert len(rows) == 3
    for row, name in zip(rows, ("logistic", "ionosphere", "spambase"), strict=True):
        assert row[0].startswith(PLACES[name].format(**cards[name]))
        shown = [
            ("published step", "fista"),
            ("right step", "fista"),
            ("right step", "fista-restart"),
            ("right step", "logistic-pa"),
            ("right step", "logistic"),
        ]
        cells = [row[1], *map(str.strip, row[2].split("|"))]
        for cell, (step, optimizer) in zip(cells, shown, strict=True):
            counts = (results.to(name, step, optimizer, level) for level in (1e-3, 1e-6))
            assert cell == " / ".join(map(str, counts))


@pytest.mark.slow
def test_what_is_said_of_the_long_horizon_quotes_the_rows():
    results, _ = committed()
    seeds = [
        results.curve("cifar10", "published step", f"published-lowlambda-pa-{k}") for k in range(3)
    ]
    right = [results.curve("cifar10", "right step", name) for name in ("logistic", "fista")]
    others = [*right, results.curve("cifar10", "published step", "fista")]
    section = text("paper.md").split("## A long horizon")[1].split("\n## ")[0]
    rows = re.findall(r"^\| after (\d+)[^|]*\|([^|]+)\|(.+)\|$", section, re.M)
    assert [int(k) for k, _, _ in rows] == [25, 300, 2500, 10_000]
    for k, of_seeds, cells in rows:
        said = [float(number) for number in of_seeds.split(",")]
        assert said == sorted(float(f"{curve[int(k)]:.2g}") for curve in seeds)
        shown = [float(cell) for cell in cells.split("|")]
        assert shown == [float(f"{curve[int(k)]:.2g}") for curve in others]
    arrivals = [first_below(curve, 1e-2).value for curve in (*seeds, *others)]
    last = re.search(r"^\| iterations to 1e-2 \|(.+)\|$", section, re.M)[1]
    said = [int(number) for number in re.split(r"[|,]", last)]
    assert said == sorted(arrivals[:3]) + arrivals[3:]
    lowest = [np.minimum.accumulate(curve) for curve in seeds]
    assert all((curve <= 1.01 * low).all() for curve, low in zip(seeds, lowest, strict=True))
    fista = first_below(others[2], float(sorted(curve[25] for curve in seeds)[1])).value
    assert f"worth {fista} of FISTA" in " ".join(section.split())
    for name, early, late in (("l2o-dm", "0.41", "5100"), ("rnnprop", "0.29", "0.59")):
        curve = results.curve("cifar10", "published step", f"published-lowlambda-{name}-0")
        assert float(f"{curve[25]:.2g}") == float(early)
        assert float(f"{curve[10_000]:.2g}") == float(late)
        assert early in section
        assert late in section
    stalled = results.curve("cifar10", "right step", "lowlambda-pa")
    assert 0.05 < stalled[-1] < stalled[300] < 0.1


@pytest.mark.slow
def test_what_is_said_of_convergence_quotes_the_rows():
    results, _ = committed()
    said = " ".join(text("paper.md").split())

    def arrived(experiment, setting, name):
        words = results.share(experiment, setting, name, 1e-6).split()
        return int(words[0]), int(words[2])

    some, count = arrived("lasso-bsds", "", "lasso-pa")
    assert f"Of {count} patches" in said
    assert f"solves {some} to 1e-6 and diverges on the others" in said
    assert some < count - 1
    assert not np.isfinite(results.curve("lasso-bsds", "", "lasso-pa")[-1])
    assert arrived("lasso-bsds", "", "lasso") == (count, count)
    scaled = "in the units of the training"
    some, count = arrived("lasso-bsds", scaled, "lasso-pa")
    assert f"the same weights solve {some} of the {count}" in said
    counts = {
        name: [results.to("lasso-bsds", scaled, name, level).value for level in (1e-2, 1e-6)]
        for name in ("lasso-pa", "fista-restart")
    }
    pair = {name: " / ".join(map(str, found)) for name, found in counts.items()}
    assert f"after {pair['lasso-pa']} iterations" in said
    assert f"(FISTA with restart: {pair['fista-restart']})" in said
    some, count = arrived("cross", "right step", "lasso-pa")
    few, _ = arrived("cross", "right step", "lasso")
    assert f"on {some} of {count} problems and the compact rule `lasso` on {few}" in said
    reached = results.to("cross", "right step", "lasso", 1e-6)
    assert f"mean gap was below 1e-6 after {reached}." in said


@pytest.mark.slow
def test_the_audit_in_the_pages_is_what_the_command_prints(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["audit", "fista-restart,lasso,lasso-pa"]) == 0
    printed, shown = capsys.readouterr().out, text("audit.txt")
    for name in ("fista-restart", "lasso", "lasso-pa"):
        ours, theirs = (
            next(line.split() for line in lines.splitlines() if line.startswith(f" {name} "))
            for lines in (printed, shown)
        )
        assert float(ours[1]) < 1e-13  # the drift, which is rounding
        assert ours[2:] == theirs[2:]
    assert printed.splitlines()[-5:] == shown.splitlines()[-5:]
