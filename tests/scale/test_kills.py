"""Whatever happens to processes and disks: no wrong or half result, and the same bytes in the end.

Real processes are killed with SIGKILL at random moments; a failure says how many chunks were there.
"""

import os
import random
import resource
import shutil
import signal
import sys

import numpy as np
import psutil
import pytest

from dask_processes import dask_cluster, end, start, until
from many_problems import content
from proxlearn.scale import results, work
from proxlearn.scale.chunked_files import Batches
from proxlearn.scale.cluster import Lost, connected, run_each
from proxlearn.scale.results import PREFIX

pytest.importorskip("zarr")
pytestmark = [pytest.mark.filterwarnings("ignore:chunks of"), pytest.mark.slow]
CHUNKS, CHUNK = 30, 150
CHUNKED = ("--chunk", str(CHUNK))


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("in") / "problems.npz"
    A, b = rng.standard_normal((60, 200)), rng.standard_normal((CHUNKS * CHUNK, 60))
    np.savez(path, kind="lasso", A=A, b=b, lam=3.0)
    return path


@pytest.fixture(scope="module")
def undisturbed(problems, tmp_path_factory, client):
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    assert rerun(client, problems, out) == (0, CHUNKS)
    return content(out)


def rerun(client, problems, out):
    """The exit code of another run of the same command, and how many chunks it has solved."""
    outcome = Batches.of(str(problems), str(out), chunk=CHUNK).run(client)
    return outcome.code, outcome.computed


def finished(out):
    """Chunks whose last file is there."""
    return len(list((out / "iterations").glob("[0-9]*"))) if out.exists() else 0


def require_whole_or_nothing(out, undisturbed):
    """Every file under its own name has the bytes that it has in an undisturbed run."""
    found = {k: v for k, v in content(out).items() if PREFIX not in k and k != "zarr.json"}
    assert all(undisturbed[name] == value for name, value in found.items())
    return found


def workers_of(process):
    """The worker processes of a cluster that a command has started."""
    try:
        children = psutil.Process(process.pid).children(recursive=True)
        return [p for p in children if "spawn_main" in " ".join(p.cmdline())]
    except psutil.Error:
        return []


def test_killed_workers_are_replaced(problems, undisturbed, tmp_path):
    out = tmp_path / "out"
    process = start(problems, out, *CHUNKED, "--workers", "2")
    for moment in sorted(random.sample(range(1, CHUNKS - 5), 2)):
        until(lambda moment=moment: finished(out) >= moment or process.poll() is not None)
        if victims := workers_of(process):
            print("killed a worker after", finished(out), "chunks")
            victims[0].kill()
    code, said, errors = end(process)
    assert code == 0, errors
    assert f"{CHUNKS} chunks, " in said
    assert content(out) == undisturbed


def test_a_killed_client_takes_its_cluster_along_and_loses_nothing(
    problems, undisturbed, tmp_path, client
):
    out = tmp_path / "out"
    process = start(problems, out, *CHUNKED, "--workers", "2")
    moment = random.randrange(1, CHUNKS - 5)
    until(lambda: finished(out) >= moment)
    workers = workers_of(process)
    assert len(workers) == 2
    process.kill()  # with the scheduler, which is in the same process
    print("killed the client after", finished(out), "chunks")
    end(process)
    until(lambda: not any(worker.is_running() for worker in workers), seconds=30)
    there = require_whole_or_nothing(out, undisturbed)
    assert len(there) >= moment
    code, computed = rerun(client, problems, out)
    assert code == 0
    assert 0 < computed <= CHUNKS - moment
    assert content(out) == undisturbed


@pytest.mark.parametrize("victims", ["scheduler", "all"])
def test_a_killed_scheduler_loses_nothing(victims, problems, undisturbed, tmp_path, client):
    out = tmp_path / "out"
    with dask_cluster(tmp_path) as (address, processes):
        process = start(problems, out, *CHUNKED, "--scheduler", address)
        moment = random.randrange(1, CHUNKS - 10)
        until(lambda: finished(out) >= moment)
        killed = processes[:1] if victims == "scheduler" else [process, *processes]
        for victim in random.sample(killed, len(killed)):
            victim.kill()
        print("killed", victims, "after", finished(out), "chunks")
        code, _, errors = end(process)
    if victims == "scheduler" and code != 0:  # it may have been done
        assert code == 2
        assert "connection to the scheduler was lost" in errors
        assert errors.count("error: ") == 1
        assert "Traceback" not in errors
    require_whole_or_nothing(out, undisturbed)
    assert rerun(client, problems, out)[0] == 0
    assert content(out) == undisturbed


def test_a_full_disk_is_one_line_and_loses_nothing(problems, undisturbed, tmp_path, client):
    out = tmp_path / "out"
    sizes = [len(v) for k, v in undisturbed.items() if k.startswith("x/") and "json" not in k]
    most = sorted(sizes)[len(sizes) // 2]  # half of the chunks fit

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    code, said, errors = end(start(problems, out, *CHUNKED, "--workers", "1", preexec_fn=limit))
    assert (code, said) == (2, "")
    assert errors.count("error: ") == 1
    assert "Traceback" not in errors
    assert "cannot be written: File too large; make room" in errors
    require_whole_or_nothing(out, undisturbed)
    assert not list(out.rglob(f"{PREFIX}*"))
    assert rerun(client, problems, out)[0] == 0
    assert content(out) == undisturbed


@pytest.mark.parametrize("survives", [0, 1, 4])
def test_a_death_in_the_middle_of_a_chunk(
    survives, problems, undisturbed, tmp_path, client, monkeypatch
):
    """The files of a chunk are renamed one by one: any of them may be the last."""
    out = tmp_path / "out"
    shutil.copytree(_folder_of(undisturbed, tmp_path), out)
    for name in ("x/7.0", "objective/7", "gap/7", "status/7", "iterations/7")[survives:]:
        (out / name).unlink()
    (out / "x" / f"{PREFIX}0123456789abcdef").write_bytes(b"half")
    assert rerun(client, problems, out) == (0, 1)
    assert content(out) == undisturbed


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "other"])
def test_a_damaged_chunk_costs_itself_alone(damage, problems, undisturbed, tmp_path, client):
    out = _folder_of(undisturbed, tmp_path)
    file = out / "x" / "3.0"
    whole = file.read_bytes()
    changed = bytearray(whole)
    changed[len(whole) // 2] ^= 1
    file.write_bytes(
        {"cut": whole[:-9], "changed": bytes(changed), "empty": b"", "other": b"0123"}[damage]
    )
    assert rerun(client, problems, out) == (0, 1)
    assert content(out) == undisturbed
    assert rerun(client, problems, out) == (0, 0)


def _folder_of(files, tmp_path):
    """The files in a new folder."""
    for name, value in files.items():
        path = tmp_path / "copy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(value)
    return tmp_path / "copy"


def test_no_room_for_a_chunk_leaves_nothing_behind(
    problems, undisturbed, tmp_path, client, monkeypatch
):
    class Full:
        """A file on a disk that is full after a few bytes."""

        def __init__(self, path):
            self.stream = path.open("xb")

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.stream.close()

        def write(self, data):
            self.stream.write(data[:10])
            raise OSError(28, "No space left on device")

    out = _folder_of(undisturbed, tmp_path)
    (out / "gap" / "5").unlink()
    monkeypatch.setattr(results, "_opened", Full)
    with pytest.raises(ValueError, match="No space left on device; make room"):
        rerun(client, problems, out)
    monkeypatch.undo()
    assert not list(out.rglob(f"{PREFIX}*"))
    assert rerun(client, problems, out) == (0, 1)
    assert content(out) == undisturbed


def die(place):
    """A task that a worker does not survive, as one that takes all memory."""
    if place == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return place


def test_a_task_that_kills_its_workers_costs_itself_alone():
    import dask

    setting = dask.config.set({"distributed.scheduler.allowed-failures": 1})
    with setting, connected(None, 1) as cluster:
        found = dict(run_each(cluster, die, ((k,) for k in range(5))))
    assert isinstance(found.pop(1), Lost)
    assert found == {k: k for k in (0, 2, 3, 4)}


def test_no_memory_for_a_chunk_is_a_line(problems, tmp_path, client, monkeypatch):
    solve = work.solve_chunk
    seen = []

    def short_of_memory(*arguments):
        seen.append(1)
        if len(seen) == 3:
            raise MemoryError
        return solve(*arguments)

    monkeypatch.setattr(work, "solve_chunk", short_of_memory)
    outcome = Batches.of(str(problems), str(tmp_path / "out"), chunk=CHUNK).run(client)
    assert (outcome.code, outcome.computed) == (2, CHUNKS - 1)
    (line,) = outcome.failed
    assert "not enough memory; choose a smaller chunk" in line
    assert rerun(client, problems, tmp_path / "out") == (0, 1)


def test_a_cluster_of_our_own_listens_on_the_loopback_interface_alone():
    with connected(None, 1) as found:
        family = [psutil.Process(), *psutil.Process().children(recursive=True)]
        sockets = [s for p in family for s in p.net_connections() if s.status == "LISTEN"]
        modules = found.run(lambda: sorted(sys.modules))
    assert sockets
    assert {s.laddr.ip for s in sockets} == {"127.0.0.1"}
    (names,) = modules.values()
    assert "bokeh" not in names
