"""What ``solve-batch`` prints and returns; clusters with TLS, and with too little memory."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

import proxlearn as pl
from dask_processes import ENVIRONMENT, dask_cluster, end, start
from many_problems import content
from proxlearn.cli import main
from proxlearn.scale.chunk import KINDS
from proxlearn.scale.chunked_files import Batches
from proxlearn.scale.cluster import connected, run_each

zarr = pytest.importorskip("zarr")
rng = np.random.default_rng(5)
A = rng.standard_normal((20, 60))
b = rng.standard_normal((25, 20))
b[::2] = 0  # x = 0 is the answer, found without an iteration
LAM = 0.01


@pytest.fixture
def problems(tmp_path):
    path = tmp_path / "problems.npz"
    np.savez(path, kind="logistic", A=A, b=b > 0, lam=1e-4)
    return path


@pytest.mark.parametrize("sparse", [False, True])
def test_missed_tolerances_are_counted_with_their_places(
    problems, tmp_path, capsys, in_threads, sparse
):
    out = tmp_path / "out"
    options = ["--chunk", "4", "--max-iter", "1", "--tol", "1e-9", *["--sparse"][: int(sparse)]]
    assert main(["solve-batch", str(problems), str(out), *options]) == 1
    said = capsys.readouterr()
    group = zarr.open_group(out, mode="r")
    status = group["status"][:]
    places = np.flatnonzero(status)
    assert 0 < len(places) <= 25
    listed = ", ".join(f"{place} MAX_ITER" for place in places[:10])
    assert f"{len(places)} of 25 problems did not reach the tolerance: {listed}" in said.err
    assert f"{len(places)} MAX_ITER" in said.out
    assert group.attrs["status_counts"]["MAX_ITER"] == len(places)
    assert group.attrs["unsolved"] == [[int(place), "MAX_ITER"] for place in places]
    assert group.attrs["complete"]
    record = group.attrs["proxlearn"]
    assert record["versions"]["proxlearn"] == pl.__version__
    assert (record["kind"], record["tol"], record["max_iter"]) == ("logistic", 1e-9, 1)
    assert len(record["input"]) == 64
    x = pl.scale.sparse_x(group).toarray() if sparse else group["x"][:]
    expected = pl.scale.solve(A, b > 0, 1e-4, loss="logistic", max_iter=1, tol=1e-9, chunk=25)
    np.testing.assert_array_equal(x, expected.x)
    np.testing.assert_array_equal(group["gap"][:], expected.gap)


def test_a_log_file_gets_plain_lines_with_an_estimate(
    problems, tmp_path, capsys, in_threads, monkeypatch
):
    monkeypatch.setattr("proxlearn.cli.progress.FIRST", 0.0)
    monkeypatch.setattr("proxlearn.cli.progress.LEAST", 0.0)
    assert main(["solve-batch", str(problems), str(tmp_path / "out"), "--chunk", "4"]) == 0
    lines = capsys.readouterr().err.splitlines()
    words = r"\d+% after \d+ s, about \d+ s left \(\d+ of 25 problems\)"
    assert any(re.fullmatch(words, line) for line in lines), lines


def test_the_dashboard_is_for_a_cluster_of_our_own(problems, tmp_path, capsys, monkeypatch):
    command = ["solve-batch", str(problems), str(tmp_path / "out"), "--dashboard", "8787"]
    assert main([*command, "--scheduler", "tcp://127.0.0.1:1"]) == 2
    assert "a running cluster has its own dashboard" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "bokeh", None)
    assert main(command) == 2
    assert "install bokeh, or leave out --dashboard" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.fixture
def certificate(tmp_path):
    """Options of Dask's commands, and settings of its clients, for a certificate of our own."""
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = ["openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt"]
    command += ["ec_paramgen_curve:prime256v1", "-days", "1", "-subj", "/CN=localhost"]
    try:
        made = subprocess.run([*command, "-keyout", key, "-out", cert], capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl, which makes the certificate, is not installed")
    assert made.returncode == 0, made.stderr
    options = ["--tls-ca-file", str(cert), "--tls-cert", str(cert), "--tls-key", str(key)]
    prefix = "DASK_DISTRIBUTED__COMM__TLS__"
    settings = {f"{prefix}CA_FILE": str(cert)}
    settings |= {f"{prefix}CLIENT__CERT": str(cert), f"{prefix}CLIENT__KEY": str(key)}
    return [*options, "--protocol", "tls"], settings


@pytest.mark.slow
def test_tls_settings_pass_through(problems, tmp_path, certificate):
    from distributed import Client
    from distributed.security import Security

    options, settings = certificate
    with dask_cluster(tmp_path, options, workers=1) as (address, _):
        assert address.startswith("tls://127.0.0.1")
        environment = {**ENVIRONMENT, **settings}
        chunks = ("--chunk", "9", "--scheduler", address)
        code, _, errors = end(start(problems, tmp_path / "out", *chunks, env=environment))
        assert code == 0, errors
        plain = address.replace("tls:", "tcp:")
        for wrong, given in ((address, ENVIRONMENT), (plain, environment)):
            command = start(problems, tmp_path / "no", "--scheduler", wrong, env=given)
            code, _, errors = end(command)
            assert code == 2
            assert f"no scheduler of Dask answers at {wrong}" in errors
            assert "Traceback" not in errors
        assert not (tmp_path / "no").exists()
        security = Security(
            require_encryption=True, tls_ca_file=options[1],
            tls_client_cert=options[3], tls_client_key=options[5],
        )  # fmt: skip
        with Client(address, security=security, set_as_default=False) as client:
            found = pl.scale.solve(A, b, LAM, client=client)
    np.testing.assert_array_equal(found.x, pl.scale.solve(A, b, LAM).x)


HOG = """
import time
import numpy as np
from proxlearn.scale import work

def hungry(settings, arrays, *others):
    if arrays["b"][0, 0] == 7.0:
        held = []
        while True:
            held.append(np.ones(2**22))
            time.sleep(0.01)
    return work.solve_it(settings, arrays, *others)

if not hasattr(work, "solve_it"):  # Dask may load this file twice
    work.solve_it, work.solve_chunk = work.solve_chunk, hungry
"""


@pytest.mark.slow
def test_a_worker_that_runs_out_of_memory_costs_its_chunk_alone(tmp_path, client):
    """The worker may have 400 MB; Dask ends it when a chunk takes more, and starts another."""
    targets = b.copy()
    targets[12, 0] = 7.0
    np.savez(tmp_path / "p.npz", kind="lasso", A=A, b=targets, lam=1.0)
    (tmp_path / "hog.py").write_text(HOG)
    worker = ["--memory-limit", "400MB", "--preload", str(tmp_path / "hog.py")]
    prefix = "DASK_DISTRIBUTED__SCHEDULER__"
    settings = {f"{prefix}ALLOWED_FAILURES": "0", f"{prefix}WORKER_SATURATION": "1.0"}
    out, arguments = tmp_path / "out", ["--chunk", "4"]
    with dask_cluster(tmp_path, (), worker, 1, settings) as (address, _):
        process = start(tmp_path / "p.npz", out, *arguments, "--scheduler", address)
        code, said, errors = end(process)
    assert code == 2
    assert "problems 12 to 15: the workers that ran it died, perhaps for want of memory" in errors
    assert "1 chunks could not be solved" in said
    assert not json.loads((out / "zarr.json").read_text())["attributes"]["complete"]
    outcome = Batches.of(str(tmp_path / "p.npz"), str(out), chunk=4).run(client)
    assert (outcome.code, outcome.computed) == (0, 1)
    Batches.of(str(tmp_path / "p.npz"), str(tmp_path / "whole"), chunk=4).run(client)
    assert content(out) == content(tmp_path / "whole")


def test_an_error_in_a_task_is_raised_here(client):
    def fail(place):
        raise ZeroDivisionError(f"place {place}")

    with pytest.raises(ZeroDivisionError, match="place 0"):
        list(run_each(client, fail, ((place,) for place in range(1))))


OPTIONS = {
    "elastic-net": {"lam2": 1.0},
    "group-l1": {"groups": np.arange(60) // 3},
    "sparse-group-l1": {"groups": np.arange(60) // 3},
    "huber": {"delta": 1.0},
    "softmax": {"classes": 2},
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:chunks of .* problems take about")
def test_workers_load_neither_torch_nor_a_dashboard(problems, tmp_path):
    with connected(None, 1) as cluster:
        assert Batches.of(str(problems), str(tmp_path / "out")).run(cluster).code == 0
        for loss, penalty in KINDS:
            rows = {"squares": b, "huber": b, "poisson": np.floor(np.exp(b))}.get(loss, b > 0)
            rows = np.stack([rows, -rows], axis=2) if penalty == "row-l1" else rows
            options = {"loss": loss, "penalty": penalty}
            options |= {**OPTIONS.get(loss, {}), **OPTIONS.get(penalty, {})}
            lam = None if penalty in ("non-negative", "simplex") else 0.3
            found = pl.scale.solve(A, rows, lam, **options, client=cluster)
            assert found.solved, options
        (modules,) = cluster.run(lambda: sorted(sys.modules)).values()
    assert "proxlearn.core.glm" in modules
    assert not {"torch", "bokeh", "rich", "typer", "matplotlib", "sklearn"} & set(modules)


def count_arrivals():
    """On a worker: count from now on how often a shared A is unpacked there."""
    from proxlearn.scale import chunk

    received, chunk.arrivals = chunk._arrived, []

    def arrived(matrix):
        chunk.arrivals.append(1)
        return received(matrix)

    chunk._arrived = arrived


def arrivals():
    from proxlearn.scale import chunk

    return len(chunk.arrivals)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:chunks of .* problems take about")
def test_a_shared_matrix_goes_to_each_worker_once():
    """For arrays in memory and for Dask arrays, however many chunks there are."""
    import dask.array as da

    many = rng.standard_normal((4000, 20))
    with connected(None, 2) as cluster:
        cluster.run(count_arrivals)
        pl.scale.solve(A, many, 1.0, chunk=100, client=cluster)
        assert list(cluster.run(arrivals).values()) == [1, 1]
        lazy = pl.scale.solve(A, da.from_array(many, chunks=(100, 20)), 1.0, client=cluster)
        cluster.gather(cluster.compute(lazy.objective))
        assert list(cluster.run(arrivals).values()) == [2, 2]
