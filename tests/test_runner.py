"""Running experiments: what is written, what is kept, and how a run goes on."""

import json
import os
import shutil
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

import proxlearn as pl
from proxlearn.cli import main
from proxlearn.errors import InputError
from proxlearn.evaluation import experiments, tuning
from proxlearn.evaluation.comparison import compare
from proxlearn.evaluation.experiments import compared_methods as methods
from proxlearn.evaluation.experiments import record, runner
from proxlearn.evaluation.experiments.cache import fingerprint
from proxlearn.evaluation.experiments.experiment import Scale, Setting
from proxlearn.evaluation.report import parquet
from proxlearn.methods.checkpoint import Learned, build
from tiny_experiment import LASSO, tiny


def files(folder):
    return sorted(os.listdir(folder))


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """A folder in which the tiny experiment has been run."""
    folder = tmp_path_factory.mktemp("once")
    runner.run(tiny(), "quick", folder)
    return folder


@pytest.fixture
def finished(once, tmp_path):
    """A copy of that folder, to run in again."""
    return shutil.copytree(once, tmp_path / "finished")


def test_rows_have_the_schema_and_the_numbers_of_compare(tmp_path):
    outcome = runner.run(tiny(), "quick", tmp_path, seed=3)
    assert (outcome.computed, outcome.reused) == (12, 0)
    assert files(tmp_path) == [".cache", "tiny.json", "tiny.parquet"]
    rows = parquet.read(outcome.rows)
    assert list(rows) == list(parquet.SCHEMA)
    assert set(rows["instance"]) == {-1, 0, 1, 2, 3, 4}
    for name in ("objective", "gap", "gradients", "seconds"):
        assert rows[name].dtype == np.float32
    assert set(rows["seed"]) == {3}
    assert set(rows["version"]) == {pl.__version__}
    problem = LASSO.block(0, 5, 3)
    expected = compare(problem, ["ista", "fista", "fista-restart"], 30)
    for name in expected.runs:
        gap = expected.relative_gap(name).numpy()
        mean = (rows["optimizer"] == name) & (rows["instance"] == -1)
        assert rows["iteration"][mean].tolist() == list(range(31))
        np.testing.assert_allclose(rows["gap"][mean], gap.mean(1), rtol=1e-4, atol=1e-10)
        np.testing.assert_array_equal(rows["gradients"][mean], np.arange(31))
        for i in range(5):
            one = (rows["optimizer"] == name) & (rows["instance"] == i)
            np.testing.assert_allclose(rows["gap"][one], gap[:, i], rtol=1e-4, atol=1e-10)
        assert (np.diff(rows["seconds"][mean]) >= 0).all()


def test_the_card_says_what_was_run(tmp_path):
    outcome = runner.run(tiny(), "quick", tmp_path, seed=3, optimizers=["fista", "adam"])
    card = json.loads(outcome.card.read_text())
    assert card["command"] == (
        "proxlearn reproduce tiny --scale quick --seed 3 --optimizers fista,adam --out DIR"
    )
    expected = {"count": 5, "iterations": 30, "seed": 3, "scale": "quick", "data": "tiny LASSO"}
    assert card.items() >= expected.items()
    assert card["optimizers"] == [
        {"name": "fista", "label": "FISTA"},
        {"name": "adam", "label": "Adam"},
    ]
    assert "1e-12" in card["optimum"]


def test_another_number_of_instances(finished):
    outcome = runner.run(tiny(), "quick", finished, count=4)
    card = json.loads(outcome.card.read_text())
    assert outcome.computed == 0  # two whole blocks of the three
    assert card["count"] == 4
    assert card["command"] == "proxlearn reproduce tiny --scale quick --count 4 --out DIR"
    assert set(parquet.read(outcome.rows)["instance"]) == {-1, 0, 1, 2, 3}


@pytest.mark.slow
def test_a_run_of_less_than_the_full_size_says_so(tmp_path):
    outcome = runner.run(tiny(), "paper", tmp_path, count=3, iterations=35)
    card = json.loads(outcome.card.read_text())
    assert "--count 3 --iterations 35" in card["command"]
    assert (card["count"], card["iterations"]) == (3, 35)
    assert parquet.read(outcome.rows)["iteration"].max() == 35
    assert card["notes"] == ["Smaller than the full size: 3 of 8 instances, 35 of 40 iterations."]
    whole = runner.run(tiny(), "paper", tmp_path)
    assert json.loads(whole.card.read_text())["notes"] == []


def test_adam_has_the_values_tuned_for_the_family(tmp_path):
    tuned = replace(LASSO, trained_on="gaussian-lasso")
    experiment = tiny(settings=(Setting("", tuned, ("adam", "ista")),))
    first = runner.run(tiny(settings=(Setting("", LASSO, ("adam", "ista")),)), "quick", tmp_path)
    plain = parquet.read(first.rows)
    assert "adam: default values" in json.loads(first.card.read_text())["notes"][-1]
    outcome = runner.run(experiment, "quick", tmp_path)
    assert outcome.computed == 3  # Adam in three blocks: its values are part of the key
    assert "adam: alpha 0.01, beta1 0.95" in json.loads(outcome.card.read_text())["notes"][-1]
    rows = parquet.read(outcome.rows)
    adam = (rows["optimizer"] == "adam") & (rows["iteration"] == 30)
    assert (rows["gap"][adam] != plain["gap"][adam]).all()
    problem, optimizer = LASSO.block(0, 2, 0), tuning.tuned("adam", "gaussian-lasso")
    expected = record.record_gap(problem, optimizer, 30)["objective"][30]
    np.testing.assert_allclose(rows["objective"][adam][1:3], expected, rtol=1e-6)


def test_an_unchanged_experiment_is_not_repeated(finished, monkeypatch):
    before = (finished / "tiny.parquet").read_bytes()
    monkeypatch.setattr(runner, "record_gap", None)
    again = runner.run(tiny(title="Another title"), "quick", finished)
    assert (again.computed, again.reused) == (0, 12)
    assert again.rows.read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "seed", "computed"),
    [
        ({"quick": Scale(5, 31)}, 0, 9),  # all runs, not the optima
        ({"quick": Scale(7, 30)}, 0, 8),  # the third block has grown, and there is a fourth
        ({}, 1, 12),
        ({"timed": True}, 0, 9),
        ({"settings": (Setting("", LASSO, ("ista", "adam")),)}, 0, 3),
        ({"settings": (Setting("other name", LASSO, ("ista", "fista-restart")),)}, 0, 0),
        (
            {"settings": (Setting("", replace(LASSO, dtype=torch.float64), ("ista",)),)},
            0,
            6,
        ),
    ],
)
def test_what_changes_is_computed(finished, changes, seed, computed):
    assert runner.run(tiny(**changes), "quick", finished, seed=seed).computed == computed


def test_an_interrupted_run_goes_on(once, tmp_path, monkeypatch):
    real, calls = record.record_gap, []

    def interrupted(*args):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(runner, "record_gap", interrupted)
    with pytest.raises(KeyboardInterrupt):
        runner.run(tiny(), "quick", tmp_path)
    assert files(tmp_path) == [".cache"]
    assert len(files(tmp_path / ".cache")) == 5  # four runs and an optimum, nothing half
    assert all(name.endswith(".npz") and name[0] != "." for name in files(tmp_path / ".cache"))
    outcome = runner.run(tiny(), "quick", tmp_path)
    assert (outcome.computed, outcome.reused) == (7, 5)
    a, b = parquet.read(outcome.rows), parquet.read(once / "tiny.parquet")
    np.testing.assert_array_equal(a["gap"], b["gap"])


def test_a_watch_is_told_how_much_there_is_and_how_much_is_done(tmp_path):
    """12 parts: three methods and the optimum on three blocks. Parts in the cache do not count."""
    seen = []
    runner.run(tiny(), "quick", tmp_path, watch=lambda *event: seen.append(event))
    assert {total for _, _, total in seen} == {12}
    done = [done for _, done, _ in seen]
    assert done == sorted(done)
    assert done[0] == pytest.approx(1 / 30)
    assert done[-1] == 12
    assert seen[0][0] == "tiny, instances 0 to 1, ista"
    again = []
    runner.run(
        tiny(), "quick", tmp_path, optimizers=["ista", "adam"], watch=lambda *e: again.append(e)
    )
    assert {what.split(", ")[2] for what, _, _ in again} == {"adam"}
    assert again[-1][1:] == (3, 4)  # the last optimum was not yet found to be there


def test_a_damaged_part_is_computed_again(finished):
    part = finished / ".cache" / files(finished / ".cache")[0]
    part.write_bytes(part.read_bytes()[:100])
    assert runner.run(tiny(), "quick", finished).computed == 1
    assert runner.run(tiny(), "quick", finished).computed == 0


def test_a_failed_write_leaves_the_old_rows(finished, monkeypatch):
    before = (finished / "tiny.parquet").read_bytes()

    def full(table, path, **options):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    with pytest.raises(InputError, match="No space left"):
        runner.run(tiny(quick=Scale(5, 31)), "quick", finished)
    assert (finished / "tiny.parquet").read_bytes() == before
    assert files(finished) == [".cache", "tiny.json", "tiny.parquet"]


def test_weights_are_part_of_the_key():
    def learned(seed):
        return Learned(build({"kind": "compact"}, torch.Generator().manual_seed(seed)))

    one, same, other = learned(0), learned(0), learned(0)
    with torch.no_grad():
        next(iter(other.rule.parameters())).flatten()[0] += 1e-6
    assert fingerprint(one) == fingerprint(same) != fingerprint(other)
    names = [pl.optimizers.get(n) for n in ("fista", "fista-restart", "adam", "adamhd")]
    assert len({json.dumps(fingerprint(o)) for o in names}) == 4


def test_an_unrolled_method_ends_after_its_layers(tmp_path, monkeypatch):
    @dataclass(frozen=True)
    class Short:
        layers: int = 3
        gradients = 1

        def init(self, problem, x0):
            return pl.optimizers.get("ista").init(problem, x0)

        def step(self, problem, state):
            assert state.k < self.layers
            return pl.optimizers.get("ista").step(problem, state)

    monkeypatch.setitem(pl.optimizers.NAMES, "short", Short)
    outcome = runner.run(tiny(), "quick", tmp_path, optimizers=["short", "ista"])
    rows = parquet.read(outcome.rows)
    assert rows["iteration"][rows["optimizer"] == "short"].max() == 3
    assert rows["iteration"][rows["optimizer"] == "ista"].max() == 30


def test_missing_models_are_named_in_one_line(tmp_path):
    experiment = tiny(settings=(Setting("", LASSO, ("ista", "lasso-none", "lasso-nil")),))
    with pytest.raises(InputError, match="tiny needs the models lasso-none, lasso-nil") as caught:
        runner.run(experiment, "quick", tmp_path)
    assert "\n" not in str(caught.value)
    assert files(tmp_path) == []
    assert methods.missing(experiment) == ["lasso-none", "lasso-nil"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": "huge"}, "unknown scale 'huge'"),
        ({"optimizers": []}, "no optimizers"),
        ({"count": 0}, "count is 0; expected at least one"),
        ({"iterations": 0}, "iterations is 0; expected at least one"),
        ({"optimizers": ["fast"]}, "unknown optimizer 'fast'"),
    ],
)
def test_bad_options(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        runner.run(tiny(), **{"scale": "quick", "out": tmp_path, **options})


def run(command, capsys):
    code = main(command.split())
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.slow
def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(experiments, "get", lambda name: tiny(name=name))
    code, out, err = run(f"reproduce lasso --out {tmp_path}/new", capsys)
    assert (code, err) == (0, "")
    assert "12 parts computed, 0 from the cache" in out
    pictures = ["lasso.json", "lasso.parquet", "lasso.png", "lasso.svg"]
    assert files(tmp_path / "new") == [".cache", "claims.json", "index.html", *pictures]
    assert f"wrote {tmp_path}/new/index.html" in out
    code, out, _ = run(f"reproduce lasso --out {tmp_path}/new --optimizers ista,fista", capsys)
    assert "0 parts computed, 9 from the cache" in out
    (tmp_path / "new" / "claims.json").unlink()
    code, out, _ = run(f"reproduce claims --out {tmp_path}/new", capsys)
    assert code == 0
    assert "verdict" in out
    claims = json.loads((tmp_path / "new" / "claims.json").read_text())
    assert {claim["verdict"] for claim in claims} == {"not measured"}


@pytest.mark.slow
def test_all_goes_on_after_an_experiment_that_cannot_run(tmp_path, capsys, monkeypatch):
    bad = tiny(settings=(Setting("", LASSO, ("lasso-none",)),))
    monkeypatch.setattr(experiments, "NAMES", ("one", "two"))
    monkeypatch.setattr(
        experiments, "get", lambda name: replace(bad if name == "one" else tiny(), name=name)
    )
    code, out, err = run(f"reproduce all --out {tmp_path}", capsys)
    assert code == 1
    assert err.startswith("error: one needs the models lasso-none")
    assert "two.parquet" in out
    assert out.splitlines()[-1].startswith(f"wrote {tmp_path}/index.html")
    assert "two" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_without_rows_there_is_no_page(tmp_path, capsys, monkeypatch):
    bad = tiny(settings=(Setting("", LASSO, ("lasso-none",)),))
    monkeypatch.setattr(experiments, "get", lambda name: replace(bad, name=name))
    code, out, err = run(f"reproduce all --out {tmp_path}/new", capsys)
    assert code == 1
    assert err.count("error: ") == len(experiments.NAMES)
    assert "index.html" not in out


def test_list_names_them_all(capsys):
    code, out, _ = run("reproduce list", capsys)
    assert code == 0
    assert all(name in out for name in experiments.NAMES)


def test_an_unknown_experiment_is_refused(capsys, tmp_path):
    code, _, err = run(f"reproduce lassso --out {tmp_path}", capsys)
    assert code == 2
    assert err.startswith("error: unknown experiment 'lassso'")
    assert files(tmp_path) == []


def test_rows_of_other_methods_are_kept_where_asked(tmp_path):
    runner.run(tiny(), "quick", tmp_path)
    before = parquet.read(tmp_path / "tiny.parquet")
    runner.run(tiny(), "quick", tmp_path, optimizers=["adam"], keep=True)
    after = parquet.read(tmp_path / "tiny.parquet")
    assert set(after["optimizer"]) == {"ista", "fista", "fista-restart", "adam"}
    old = after["optimizer"] != "adam"
    for name, column in before.items():
        np.testing.assert_array_equal(np.sort(after[name][old]), np.sort(column))
    card = json.loads((tmp_path / "tiny.json").read_text())
    assert [o["name"] for o in card["optimizers"]] == ["ista", "fista", "fista-restart", "adam"]
    assert card["kept"]["optimizers"] == ["ista", "fista", "fista-restart"]
    assert card["panels"][0]["optimizers"] == ["ista", "fista", "fista-restart", "adam"]
    assert card["command"].endswith("--optimizers adam --out DIR --keep")
    runner.run(tiny(), "quick", tmp_path, optimizers=["ista"], keep=True)  # replaces its rows
    again = parquet.read(tmp_path / "tiny.parquet")
    assert len(again["optimizer"]) == len(after["optimizer"])


def test_kept_rows_are_in_the_order_of_the_settings(tmp_path):
    first, second = Setting("z", LASSO, ("ista",)), Setting("a", LASSO, ("fista-restart",))
    runner.run(tiny(settings=(first,)), "quick", tmp_path)
    both = tiny(settings=(first, second))
    runner.run(both, "quick", tmp_path, optimizers=["fista-restart"], keep=True)
    rows = parquet.read(tmp_path / "tiny.parquet")
    assert list(dict.fromkeys(rows["setting"].tolist())) == ["z", "a"]


def test_rows_are_kept_only_where_they_belong_together(tmp_path):
    runner.run(tiny(), "quick", tmp_path)
    with pytest.raises(InputError, match="has iterations 30 and this one 20; make them equal"):
        runner.run(tiny(), "quick", tmp_path, optimizers=["ista"], iterations=20, keep=True)
    other = tiny(settings=(Setting("", replace(LASSO, text="other problems"), ("ista", "fista")),))
    with pytest.raises(InputError, match="run all its optimizers again, without --keep"):
        runner.run(other, "quick", tmp_path, optimizers=["ista"], keep=True)


@pytest.mark.slow
def test_the_command_takes_the_methods_that_only_experiments_know(tmp_path, capsys):
    folder = ["--out", str(tmp_path), "--count", "1", "--iterations", "2"]
    assert main(["reproduce", "lasso", "--optimizers", "published-adamhd", *folder]) == 0
    rows = parquet.read(tmp_path / "lasso.parquet")
    assert set(rows["optimizer"]) == {"published-adamhd"}
    assert main(["reproduce", "logistic", "--optimizers", "logistic-pa-rescaled", *folder]) == 0
    rows = parquet.read(tmp_path / "logistic.parquet")
    assert set(rows["optimizer"]) == {"logistic-pa-rescaled"}
    assert main(["reproduce", "logistic", "--optimizers", "nothing-rescaled", *folder]) == 2
    assert "no checkpoint 'nothing'" in capsys.readouterr().err
    assert main(["reproduce", "lasso", "--optimizers", "published-adagrad", *folder]) == 2
    assert "unknown optimizer 'published-adagrad'" in capsys.readouterr().err
