"""Batches in shards: whatever happens to the workers, the results are those of one undisturbed."""

import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import proxlearn as pl
from proxlearn.cli import main
from proxlearn.errors import InputError
from proxlearn.shards import Settings, claims, collect, solve_batch, work
from shard_problems import lasso_arrays, lasso_files

WORKER = str(Path(__file__).parent / "shard_worker.py")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "TORCHELASTIC_ERROR_FILE": ""}
OPTIONS = ["--shard-size", "4", "--tol", "1e-4"]
SETTINGS = Settings(shard_size=4, tol=1e-4)
SHARDS = 3 + 3 + 2
"""Of the files that `lasso_files` makes."""


@pytest.fixture(autouse=True)
def one_thread():
    """As the other processes: sums of several threads end in other bits."""
    torch.set_num_threads(1)


@pytest.fixture
def problems(tmp_path):
    return lasso_files(tmp_path / "in")


@pytest.fixture
def undisturbed(problems, tmp_path):
    outcome = solve_batch(str(problems), str(tmp_path / "alone"), SETTINGS)
    assert (outcome.code, outcome.computed) == (0, SHARDS)
    return content(tmp_path / "alone")


def content(folder):
    """Every visible file with its bytes."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


def hidden(folder):
    return [path.name for path in folder.rglob(".*")]


def start(log, *disturbances, arguments=(), torchrun=0):
    log.mkdir(exist_ok=True)
    command = [WORKER, str(log), *map(str, disturbances), "--", *map(str, arguments), *OPTIONS]
    if torchrun:
        ranks = ["--standalone", f"--nproc-per-node={torchrun}"]
        command = ["-m", "torch.distributed.run", *ranks, *command]
    return subprocess.Popen([sys.executable, *command], env=ENVIRONMENT, stderr=subprocess.PIPE)


def end(process):
    _, errors = process.communicate(timeout=120)
    return process.returncode, errors.decode()


def beside(*arguments, **options):
    """A worker in a thread, and the list that its outcome will be in."""
    outcomes = []

    def run():
        outcomes.append(solve_batch(*arguments, **options))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, outcomes


def wrote(log):
    """The shards that each process wrote."""
    return {file.name: file.read_text().split() for file in log.glob("wrote-*")}


@pytest.mark.slow
@pytest.mark.parametrize(("where", "finished"), [("solve", 2), ("write", 2)])
def test_a_killed_worker_loses_nothing(where, finished, problems, undisturbed, tmp_path):
    log, out = tmp_path / "log", tmp_path / "out"
    code, _ = end(start(log, "--die", where, "--at", "3", arguments=[problems, out]))
    assert code == -9
    (first,) = wrote(log).values()
    assert len(first) == finished
    assert sorted(n for n in content(out) if n.endswith(".npz")) == sorted(first)  # none in part
    assert hidden(out)  # the claim, and half a file
    before = {name: (out / name).stat().st_mtime_ns for name in first}
    _, outcomes = beside(str(problems), str(out), SETTINGS, stale=600)
    until(lambda: outcomes, seconds=60)
    assert outcomes[0].computed == SHARDS - finished
    assert content(out) == undisturbed
    assert {name: (out / name).stat().st_mtime_ns for name in first} == before
    (out / ".mine").touch()
    solve_batch(str(problems), str(out), SETTINGS, stale=1e-3)  # long dead, by that measure
    assert hidden(out) == [".mine"]


@pytest.mark.slow
@pytest.mark.parametrize("known", [True, False])
def test_a_shard_goes_to_another_worker_when_its_own_dies_and_not_before(
    known, problems, undisturbed, tmp_path, monkeypatch
):
    log, out = tmp_path / "log", tmp_path / "out"
    stale = 600 if known else 1.0  # a process of this machine, or one of which only files are seen
    if not known:
        monkeypatch.setattr(claims, "_place", lambda: None)
    busy = start(log, "--hang", arguments=[problems, out, "--stale", stale])
    until(lambda: list(log.glob("hanging-*")))
    other, outcomes = beside(str(problems), str(out), SETTINGS, stale=stale, worker=1, workers=2)
    until(lambda: len(list(out.rglob("*.npz"))) == SHARDS - 1)
    time.sleep(2.5)  # the worker is slow, but it lives
    settled = len(list(out.rglob("*.npz")))
    busy.kill()
    end(busy)
    assert settled == SHARDS - 1
    other.join(60)
    assert outcomes[0].computed == SHARDS
    solve_batch(str(problems), str(out), SETTINGS)
    assert content(out) == undisturbed


def until(condition, seconds=90):
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "waited in vain"
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("torchrun", [False, True])
def test_two_workers_share_the_work(torchrun, problems, undisturbed, tmp_path):
    log, out = tmp_path / "log", tmp_path / "out"
    disturbances = ["--together", 2, "--delay", 0.2]
    if torchrun:
        processes = [start(log, *disturbances, arguments=[problems, out], torchrun=2)]
    else:
        processes = [start(log, *disturbances, arguments=[problems, out]) for _ in range(2)]
    for process in processes:
        code, errors = end(process)
        assert code == 0, errors[-3000:]
    shares = wrote(log)
    assert len(shares) == 2
    assert all(len(share) >= 2 for share in shares.values())
    assert sum(len(share) for share in shares.values()) == SHARDS  # none twice
    assert content(out) == undisturbed
    assert not hidden(out)


def test_a_shard_that_was_settled_just_before_the_claim_is_left(problems, tmp_path, monkeypatch):
    claimed, others = work.claimed, []

    def late(path, stale):
        if not others:
            monkeypatch.setattr(work, "claimed", claimed)
            others.append(solve_batch(str(problems), str(tmp_path / "out"), SETTINGS))
        return claimed(path, stale)

    monkeypatch.setattr(work, "claimed", late)
    outcome = solve_batch(str(problems), str(tmp_path / "out"), SETTINGS)
    assert (others[0].computed, outcome.computed) == (SHARDS, 0)


def test_a_second_start_solves_only_what_is_missing(problems, undisturbed, tmp_path):
    out = tmp_path / "alone"
    assert solve_batch(str(problems), str(out), SETTINGS).computed == 0
    (out / "part1" / "0000000004-0000000008.npz").unlink()
    (out / "part2" / "0000000000-0000000004.npz").write_bytes(b"damaged by a disk")
    assert solve_batch(str(problems), str(out), SETTINGS).computed == 2
    assert content(out) == undisturbed
    np.savez(problems / "part3.npz", kind="lasso", lam=0.1, **lasso_arrays(4, 3))
    outcome = solve_batch(str(problems), str(out), SETTINGS)
    assert (outcome.computed, outcome.summary.instances) == (1, 34)


def test_other_settings_and_changed_files_are_refused(problems, undisturbed, tmp_path):
    out = str(tmp_path / "alone")
    with pytest.raises(InputError, match=r"begun with other settings: tol 0.0001 \(now 0.001\)"):
        solve_batch(str(problems), out, Settings(shard_size=4, tol=1e-3))
    np.savez(problems / "part1.npz", kind="lasso", lam=0.2, **lasso_arrays(10, 1))
    lines = []
    outcome = solve_batch(str(problems), out, SETTINGS, warn=lines.append)
    assert (outcome.code, outcome.computed, outcome.summary.instances) == (2, 0, 20)
    assert len(lines) == 1
    assert "part1.npz has changed since" in lines[0]


def test_other_weights_are_other_settings(problems, tmp_path):
    out = str(tmp_path / "out")
    for name in ("here.safetensors", "there.safetensors"):
        (tmp_path / name).write_bytes(pl.zoo.path("lasso").read_bytes())
    here, there = (
        Settings(shard_size=4, tol=1e-4, optimizer=str(tmp_path / f"{name}.safetensors"))
        for name in ("here", "there")
    )
    solve_batch(str(problems), out, here)
    assert solve_batch(str(problems), out, there).computed == 0  # another name, the same weights
    (tmp_path / "there.safetensors").write_bytes(pl.zoo.path("general").read_bytes())
    with pytest.raises(InputError, match="begun with other settings: weights"):
        solve_batch(str(problems), out, there)
    assert Settings().record()["proxlearn"] == pl.__version__


def foreign_claim(folder, seconds):
    """The claim of a process elsewhere on the first shard, renewed so many seconds ago."""
    claim = folder / ".0000000000-0000000004.claim"
    claim.parent.mkdir(parents=True, exist_ok=True)
    claim.write_text(json.dumps({"host": "elsewhere", "pid": 1, "place": "there", "token": "t"}))
    then = time.time() - seconds
    os.utime(claim, (then, then))
    return claim


def test_a_stale_claim_is_taken_over_and_a_fresh_one_is_not(tmp_path):
    claim = foreign_claim(tmp_path, seconds=30)
    with claims.claimed(claim, stale=60) as mine:
        assert not mine
    assert "elsewhere" in claim.read_text()
    with claims.claimed(claim, stale=20) as mine:
        assert mine
        assert json.loads(claim.with_name(claim.name + ".1").read_text())["pid"] == os.getpid()
        with claims.claimed(claim, stale=20) as again:
            assert not again
    assert not os.listdir(tmp_path)


def test_a_claim_is_renewed_while_its_owner_works(tmp_path):
    claim = tmp_path / ".claim"
    with claims.claimed(claim, stale=0.4):
        os.utime(claim, (1, 1))
        until(lambda: claims.age(claim) < 0.4, seconds=10)


def test_a_claim_that_was_renewed_while_it_was_judged_is_left(tmp_path, monkeypatch):
    claim = foreign_claim(tmp_path, seconds=30)
    fresh = '{"host": "third"}'
    judge = claims.age
    monkeypatch.setattr(claims, "age", lambda path: (judge(path), path.write_text(fresh))[0])
    with claims.claimed(claim, stale=20) as mine:
        assert not mine
    assert os.listdir(tmp_path) == [claim.name]
    assert claim.read_text() == fresh


@pytest.mark.parametrize("_", range(5))
def test_one_winner_among_many(tmp_path, monkeypatch, _):
    claim = foreign_claim(tmp_path, seconds=30)
    everyone, winners = threading.Barrier(8), []
    monkeypatch.setattr(claims, "age", lambda path, age=claims.age: (age(path), pause())[0])

    def pause():
        """Between the judgement and the deed: short for some, long for others."""
        time.sleep(0.02 * random.random())

    def compete():
        everyone.wait()
        with claims.claimed(claim, stale=20) as mine:
            winners.append(mine)
            everyone.wait()  # nobody lets go before all have tried

    threads = [threading.Thread(target=compete) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(winners) == [False] * 7 + [True]


def test_a_bad_file_costs_one_line_and_stops_nothing(problems, undisturbed, tmp_path, capsys):
    (problems / "cut.npz").write_bytes((problems / "part0.npz").read_bytes()[:500])
    arrays = lasso_arrays(12, 5)
    arrays["A"][[1, 6, 7]] = np.nan
    np.savez(problems / "nan.npz", kind="lasso", lam=0.1, **arrays)
    out = tmp_path / "out"
    command = ["solve-batch", str(problems), str(out), *OPTIONS]
    assert main(command) == 2
    printed, errors = capsys.readouterr()
    assert "34 instances: 34 SOLVED" in printed
    cut, nan = errors.splitlines()
    assert "cut.npz is truncated or no .npz file" in cut
    assert "nan.npz, instances 0 to 3: A holds 128 values that are NaN or infinite" in nan
    failed = json.loads((out / "summary.json").read_text())["failed"]
    assert list(failed) == ["cut.npz", "nan/0000000000-0000000004", "nan/0000000004-0000000008"]
    files = content(out)
    assert all(files[n] == undisturbed[n] for n in undisturbed if n != "summary.json")
    assert main(command) == 2
    assert "9 shards, 0 of them by this worker, 3 failed" in capsys.readouterr().out
    assert main([*command, "--retry"]) == 2
    assert "9 shards, 2 of them by this worker, 3 failed" in capsys.readouterr().out


def test_an_unsolved_instance_is_named(problems, tmp_path, capsys):
    command = ["solve-batch", str(problems), str(tmp_path / "out"), "--max-iter", "0"]
    assert main(command) == 1
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    statuses = [collect(tmp_path / "out" / f"part{i}")["status"].tolist() for i in range(3)]
    missed = [
        {"file": f"part{part}", "instance": i, "status": "MAX_ITER"}
        for part, found in enumerate(statuses)
        for i, status in enumerate(found)
        if status == "MAX_ITER"
    ]
    assert len(missed) > 20
    assert summary["unsolved"] == missed
    assert f"30 instances: {len(missed)} MAX_ITER" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--optimizer", "fast"], "unknown optimizer 'fast'"),
        (["--engine", "compiled"], "unknown engine 'compiled'"),
        (["--tol", "-1"], "tol is -1.0"),
        (["--dtype", "half"], "unknown dtype 'half'"),
        (["--stale", "0"], "stale is 0.0"),
    ],
)
def test_bad_options_are_found_before_any_work(options, message, problems, tmp_path, capsys):
    assert main(["solve-batch", str(problems), str(tmp_path / "out"), *options]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_input_without_problems(tmp_path, capsys):
    assert main(["solve-batch", str(tmp_path), str(tmp_path / "out")]) == 2
    assert "holds no .npz file" in capsys.readouterr().err
    assert main(["solve-batch", str(tmp_path / "no"), str(tmp_path / "out")]) == 2
    assert "no does not exist" in capsys.readouterr().err


def test_missing_shards_are_not_passed_over(problems, undisturbed, tmp_path):
    folder = tmp_path / "alone" / "part0"
    assert len(collect(folder)["x"]) == 12
    (folder / "0000000004-0000000008.npz").unlink()
    with pytest.raises(InputError, match="lacks instance 4 of 12"):
        collect(folder)
    with pytest.raises(InputError, match="holds no results"):
        collect(tmp_path)


def test_progress_counts_what_all_have_settled(problems, tmp_path, monkeypatch):
    monkeypatch.setattr(work, "LOOK", 0.0)
    seen = []
    watch = lambda done, total: seen.append((done, total))  # noqa: E731
    solve_batch(str(problems), str(tmp_path / "out"), SETTINGS, watch=watch)
    assert seen[0] == (0, 30)
    assert seen[-1] == (30, 30)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert len({done for done, _ in seen}) > 3


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info < (3, 11), reason="zarr needs Python 3.11")
def test_the_documented_example_runs(tmp_path, monkeypatch):
    page = Path(__file__).resolve().parents[1] / "docs" / "scale.md"
    code = "".join(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(code, names)
    assert names["outcome"].code == 0
    assert names["x"].shape == (1000, 40)
    for results in ("results", "from-zarr"):
        assert len(list((tmp_path / results / "problems").glob("*.npz"))) == 4
    np.testing.assert_array_equal(names["x"], collect("from-zarr/problems")["x"])
