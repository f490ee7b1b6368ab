"""What long commands show on standard error: a bar in a terminal, plain lines elsewhere."""

import io
import os
import re

import pytest

from proxlearn.cli import main, progress
from proxlearn.cli.progress import Estimate, spoken, watching

SIZES = "--set m=20 --set n=30 --set nonzeros=3 --count 2 --max-iter 20"
COMMANDS = {
    "compare": "compare gaussian-least-squares --optimizers nesterov,lbfgs --set m=30 --set n=10 "
    "--count 2 --max-iter 20",
    "audit": f"audit ista {SIZES}",
    "tune": "tune adam gaussian-lasso --set alpha=0.1,0.01 --count 1 --max-iter 5",
    "train": "train gaussian-lasso --set m=10 --set n=20 --set nonzeros=2 --steps 3 --batch 2 "
    "--horizon 20 --unroll 10 --out mine.safetensors",
    "reproduce": "reproduce ablation --count 1 --iterations 5 --optimizers ista,fista --out out",
}
LINE = re.compile(r"^(\d+)% after \d+ s(, about \d+ (s|min).* left)? \((.+)\)$")


class Clock:
    """A time that a test sets."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def progress_of(capsys):
    """The lines on stderr, without the warning of `tune` that its grid is too short."""
    lines = capsys.readouterr().err.splitlines()
    return [line for line in lines if not line.startswith("warning: alpha")]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_terminal_there_are_lines_with_share_and_time_left(
    command, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "FIRST", 0.0)
    monkeypatch.setattr(progress, "LEAST", 0.0)
    monkeypatch.setattr(progress, "CLOCK", Clock())  # a slow first step would silence the next ones
    assert main(COMMANDS[command].split()) == 0
    lines = progress_of(capsys)
    found = [LINE.match(line) for line in lines]
    assert len(lines) > 2
    assert all(found), lines
    assert any("left" in line for line in lines)
    assert all(0 <= int(line[1]) <= 100 for line in found)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_short_job_prints_no_line(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "CLOCK", Clock())
    monkeypatch.setattr(progress, "FIRST", 2.0)
    assert main(COMMANDS[command].split()) == 0
    assert progress_of(capsys) == []


def test_lines_come_after_two_seconds_and_then_ever_more_rarely(monkeypatch, capsys):
    monkeypatch.setattr(progress, "FIRST", 2.0)
    clock, shown = Clock(), []
    watch = progress._Lines("experiment 1 of 2", clock)
    for second in range(1, 1001):
        clock.now = 100.0 + second
        watch("fista", second, 1000)
        if capsys.readouterr().err:
            shown.append(second)
    assert shown[:3] == [2, 12, 22]
    assert shown[-1] - shown[-2] > 80
    clock.now = 1200.0
    watch("fista", 500, 1000)
    assert (
        capsys.readouterr().err
        == "50% after 18 min 20 s, about 18 min 21 s left (experiment 1 of 2: fista)\n"
    )


def test_the_estimate_does_not_count_what_was_done_before():
    clock = Clock()
    estimate = Estimate(clock)
    assert estimate.left(400, 500) is None
    clock.now += 10
    assert estimate.left(400, 500) is None
    assert estimate.left(420, 500) == pytest.approx(40)
    assert estimate.left(500, 500) == 0


def test_durations_in_words():
    said = ["0 s", "1 min 0 s", "1 min 1 s", "1 h 1 min"]
    assert [spoken(s) for s in (0.2, 59.6, 61, 3661)] == said


@pytest.mark.skipif(os.name == "nt", reason="terminals of POSIX")
def test_in_a_terminal_there_is_a_bar_with_share_and_time_left(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    clock = Clock()
    monkeypatch.setattr(progress, "CLOCK", clock)
    with watching("experiment 1 of 2") as watch:
        watch("ista, iteration 1", 1, 4)
        clock.now += 30
        watch("ista, iteration 2", 2, 4)
    text = re.sub(r"\x1b\[[\d;?]*\w", "", screen.getvalue())
    assert "50%" in text
    assert "1 min 0 s left" in text
    assert "experiment 1 of 2: ista, iteration 2" in text
