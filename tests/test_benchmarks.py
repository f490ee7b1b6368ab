"""The benchmarks against other solvers: same objective for all, honest gaps, whole output."""

import json
import sys
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import counts
import peers as command
from contest import clock, growth, race, rows, tables
from contest.peers import NAMES, peers
from contest.race import Course, Entry
from contest.roofline import roofline
from contest.task import Task, relative_gap
from contest.variant import EXACT, GRID, OURS, SINGLE, Peer, Variant

import proxlearn as pl
from proxlearn.training.families import GaussianLasso, GaussianLogistic

LASSO, LOGISTIC = GaussianLasso(20, 30, 4), GaussianLogistic(60, 8, 3, lam=0.02)


def tiny(kind, count=3, seed=0):
    if kind == "lasso":
        return rows.drawn(LASSO, "lasso", count, seed)
    task = rows.drawn(LOGISTIC, "logistic", count, seed)
    if kind == "logistic":
        return task
    if kind == "path":
        return Task("logistic", task.A[0], task.b[:1], np.geomspace(0.2, 2e-2, count), path=True)
    lasso = rows.drawn(LASSO, "lasso", count, seed)
    return Task("lasso", lasso.A[0], lasso.b, lasso.lam)


KINDS = ("lasso", "shared", "logistic", "path")
CASES = [
    pytest.param(kind, peer.name, variant, id=f"{kind}-{peer.name}-{variant.settings}")
    for kind in KINDS
    for peer in peers(tiny(kind), "lasso" if kind in KINDS[:2] else "logistic", 1)
    for variant in peer.variants
    if peer.name != "skglm"  # the compilation takes 20 seconds: below, one of each objective
]


@pytest.fixture
def quick(monkeypatch):
    """Small families, no photographs, one setting of each peer."""
    monkeypatch.setattr(rows, "GaussianLasso", lambda **sizes: LASSO)
    monkeypatch.setattr(rows, "GaussianLogistic", lambda lam: replace(LOGISTIC, lam=lam))
    monkeypatch.setattr(
        rows, "patches", lambda lam: lambda count, seed: tiny("shared", count, seed)
    )
    monkeypatch.setattr(rows, "spambase", partial(tiny, "path"))
    monkeypatch.setattr(growth, "BASE", LASSO)
    monkeypatch.setattr(growth, "DOUBLINGS", 1)
    monkeypatch.setattr(race, "TRIES", 1)
    for module in (command, growth):
        monkeypatch.setattr(module, "peers", one_setting)


def one_setting(*arguments):
    return [replace(p, variants=p.variants[:1]) for p in peers(*arguments)]


def settled(kind, variant):
    """The gap at a tight tolerance, 1e-9, or 1e-5 where float32 may not see more."""
    task = tiny(kind)
    tight = {len(EXACT): 0, len(GRID): 18}.get(len(variant.grid), 10)
    found = clock.run(variant, task, variant.grid[tight], 1)
    assert 0 <= found.setup <= found.total
    return relative_gap(task.objective(found.X), best(kind))


@cache
def best(kind):
    return tiny(kind).optimum(1e-11)


@pytest.mark.parametrize(("kind", "name", "variant"), CASES)
def test_every_setting_minimises_the_same_objective(kind, name, variant):
    assert settled(kind, variant).max() < (1e-6 if len(variant.grid) != len(SINGLE) else 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_skglm_minimises_the_same_objective(kind):
    (peer,) = (p for p in peers(tiny(kind), "lasso", 1, names=["skglm"]) if p.name == "skglm")
    assert settled(kind, peer.variants[-1]).max() < 1e-6


def test_the_objective_is_that_of_proxlearn():
    for kind in KINDS[:3]:
        task = tiny(kind)
        X = np.random.default_rng(0).normal(size=(task.count, task.n))
        ours = task.problem(np.float64).objective(torch.from_numpy(X)).numpy()
        np.testing.assert_allclose(task.objective(X), ours, rtol=1e-12)


def test_a_gap_is_the_true_one():
    assert relative_gap(np.array([3.0, np.nan]), np.array([2.0, 1.0])).tolist() == [0.5, np.inf]


def synthetic(task, error, grid=GRID, settings="", name="a"):
    """A solver whose relative gap is `error(tol)`, and which counts its calls."""
    best = [torch.as_tensor(task.optimum(1e-12))]
    calls = []

    def solve(part, tol):
        calls.append((part.count, tol))
        return np.full((part.count, task.n), error(tol))

    class Known(Task):
        def objective(self, X):
            return best[0].numpy()[: self.count] * (1 + X[:, 0])

        def optimum(self, tol):
            return best[0].numpy()[: self.count]

        def part(self, first, last):
            return Known(*vars(super().part(first, last)).values())

    known = Known(*vars(task).values())
    return Peer(name, (Variant(settings, lambda part: part, solve, grid),)), known, calls


def test_the_loosest_tolerance_that_reaches_the_target_is_found():
    peer, task, _ = synthetic(tiny("lasso"), lambda tol: 5 * tol)
    (entry,) = race.race([peer], Course(task, task, 1e-3), 1, 2)
    assert entry.tol == 1e-4  # 3.2e-4 gives 1.6e-3
    assert entry.worst == pytest.approx(5e-4)
    assert len(entry.seconds) == len(entry.setup) == 2


def test_a_miss_on_the_timed_problems_tightens_the_tolerance():
    trial, timed = tiny("lasso", 2), tiny("lasso", 3)
    peer, task, calls = synthetic(timed, lambda tol: tol)
    hard = peer.variants[0]

    def harder(part, tol):  # only the timed problems are three
        return hard.solve(part, 20 * tol if part.count == 3 else tol)

    peer = Peer("a", (replace(hard, solve=harder),))
    (entry,) = race.race([peer], Course(task, task.part(0, 2), 1e-3), 1, 1)
    assert trial.count == 2
    assert entry.tol == 3.2e-5  # 1e-3 on the trial
    assert entry.worst <= 1e-3
    assert calls


def test_who_never_reaches_the_target_is_not_timed_and_says_so():
    peer, task, _ = synthetic(tiny("lasso"), lambda tol: 1.0, EXACT)
    (entry,) = race.race([peer], Course(task, task, 1e-3), 1, 2)
    assert not entry.seconds
    assert "not reached" in entry.note


def test_processes_give_the_answers_of_one():
    task = tiny("lasso", 5)
    (peer,) = (p for p in peers(task, "lasso", 2, names=["celer"]) if p.name == "celer")
    alone, spread = (clock.run(peer.variants[0], task, 1e-8, threads) for threads in (1, 3))
    np.testing.assert_array_equal(alone.X, spread.X)
    assert spread.setup <= spread.total


def test_blocks_do_not_change_the_answers(monkeypatch):
    task = tiny("lasso", 5)
    variant = peers(task, "lasso", 1)[len(OURS)].variants[0]
    whole = clock.run(variant, task, 1e-8, 1).X
    monkeypatch.setattr("contest.task.BLOCK", 2 * 8 * task.m * task.n)
    assert len(task.blocks()) == 3
    np.testing.assert_array_equal(clock.run(variant, task, 1e-8, 1).X, whole)


def test_ratios_are_their_time_over_ours_in_the_same_repeat():
    ours = Entry("proxlearn", "s", 1e-3, [1.0, 2.0, 4.0], [0.1] * 3, 1e-4, 1e-5)
    fista = replace(ours, name="FISTA start", seconds=[0.5] * 3)
    slow = replace(ours, name="slow", seconds=[10.0, 10.0, 10.0])
    peer = replace(ours, name="other", seconds=[2.0, 8.0, 4.0])
    assert tables.ratios(peer, ours) == [2, 4, 1]
    assert tables.best_peer([ours, fista, slow, peer]) is peer
    line = tables.cells([ours, fista, slow, peer], 1)[-1]
    assert line[0] == "other *"
    assert line[-2:] == ("2.00", "1.50-3.00")


def test_the_exponent_is_the_slope():
    assert growth.Growth("a", "m", [1, 2, 4], [3.0, 12.0, 48.0]).exponent == pytest.approx(2)


def test_an_iteration_is_the_difference_of_two_runs():
    A = torch.randn(4, 50, 60)
    asked = []
    found = roofline(A, lambda k: asked.append(k) or [A.sum() for _ in range(100 * k)], 2, 3)
    assert set(asked) == {2, 4}
    assert 0 < found.read_cache < found.iteration


@pytest.mark.slow
def test_all_rows_end_to_end(quick, tmp_path, capsys):
    out, table = tmp_path / "r.json", tmp_path / "t.md"
    arguments = ["--count=2", "--threads=1", "--repeats=1", "--peers=sklearn,celer,spams"]
    arguments += ["--json", str(out), "--markdown", str(table), "--verbose"]
    assert command.main(arguments) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 100
    for row in range(1, 6):
        assert f"{row}. " in printed
    record = json.loads(out.read_text())
    assert record["threads"] == 1
    assert record["versions"]["torch"] == torch.__version__
    results = record["results"]
    assert [r["row"] for r in results] == [1, 1, 1, 2, 2, 3, 4, 4, 4, 5]
    for result in results:
        for entry in result.get("entries", []):
            assert entry["note"] or entry["worst"] <= result["target"], entry["name"]
            assert entry["note"] or len(entry["seconds"]) == len(entry["ratios"]) == 1
    assert table.read_text().count("| proxlearn |") >= 8


@pytest.mark.parametrize(
    "arguments",
    [["--rows", "7"], ["--peers", "glmnet"], ["--threads", "0"], ["--count", "-1"]],
)
def test_bad_arguments_are_one_line(arguments, capsys):
    with pytest.raises(SystemExit) as error:
        command.main(arguments)
    assert error.value.code == 2
    assert "expected" in capsys.readouterr().err


def test_the_peers_have_names():
    assert {p.name for p in peers(tiny("lasso"), "lasso", 1, names=NAMES)} >= {"SPAMS", "skglm"}


def test_counts_that_have_grown_are_named():
    before = {"a": {"iterations": 100}, "b": {"iterations": 3, "gradients": None}}
    assert not counts.grown(before, {"a": {"iterations": 110}, "b": {"iterations": 4}})
    worse = counts.grown(before, {"a": {"iterations": 111}, "b": {"iterations": 5}})
    assert worse == ["a: iterations 100 before, 111 now", "b: iterations 3 before, 5 now"]
    assert counts.grown(before, {"a": {"iterations": 1}}) == ["b: iterations 3 before, None now"]


def test_the_kept_counts_are_those_of_the_fixed_problems():
    kept = json.loads(counts.FILE.read_text(encoding="utf-8"))["counts"]
    named = [name for name, _ in counts.problems()]
    assert set(named) < set(kept)
    name, problem = next(counts.problems())
    now = {name: {"iterations": int(pl.solve(problem, tol=1e-8).iterations.sum())}}
    assert not counts.grown({name: kept[name]}, now)
