"""The pages in docs/: their code runs, and their numbers are those of the shipped models."""

import contextlib
import io
import re
import sys
import types
from pathlib import Path

import pytest

import proxlearn as pl
from proxlearn.cli import main

DOCS = Path(__file__).resolve().parents[1] / "docs"
MEASURED = {
    "1,024 fresh LASSO problems, 250 x 500": "gaussian-lasso",
    "Spambase, lambda 0.1": "spambase lam 0.1",
    "Spambase, lambda 0.001": "spambase lam 0.001",
    "Ionosphere, lambda 0.001": "ionosphere lam 0.001",
    "Ionosphere, lambda 0.1": "ionosphere lam 0.1",
}
"""What a card calls the problems that the pages name."""


def text(name):
    return (DOCS / name).read_text(encoding="utf-8")


def python_of(name):
    return "\n".join(re.findall(r"```python\n(.*?)```", text(name), re.DOTALL))


def test_the_tour_prints_what_it_says():
    (expected,) = re.findall(r"```text\n(.*?)```", text("tour.md"), re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(python_of("tour.md"), {})
    assert printed.getvalue().startswith(expected)


def test_a_family_of_ones_own_can_be_trained_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("documented_family")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses look it up
    exec(python_of("train.md"), module.__dict__)
    assert pl.load("mine.safetensors").card["status"] == "finished"


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
