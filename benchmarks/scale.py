"""What Dask costs: chunks of a second on one and two workers, and 10,000 chunks on 64 workers.

    python benchmarks/scale.py                all measurements
    python benchmarks/scale.py --only cores   one of: cores, scheduler, work

`cores` compares `solve-batch` on a LocalCluster of one and two workers with the same chunks in a
plain loop, in as many processes; the cluster writes files of results and the loop does not. They
take turns, `--repeats` times. `scheduler` has 64 workers whose work is a
sleep, all in the process of the scheduler. `work` is what a problem costs on one core.
"""

import argparse
import multiprocessing
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from proxlearn.scale.batches import Batches
from proxlearn.scale.chunk import Settings, SharedMatrix, solve_chunk
from proxlearn.scale.cluster import connected, run_each
from proxlearn.scale.source import read_source


def problems(folder, seconds, chunks):
    """A file of LASSO problems that share A, with chunks of about so many seconds; and the size."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((64, 256)) / 8
    some = rng.standard_normal((2000, 64))
    settings, shared = Settings("lasso"), SharedMatrix.of(A, None)
    best = min(timed(lambda: one(settings, shared, some, 10**6)) for _ in range(3))
    size = max(2, round(len(some) * seconds / best))
    path = Path(folder) / "problems.npz"
    np.savez(path, kind="lasso", A=A, b=rng.standard_normal((size * chunks, 64)), lam=0.3)
    return path, size


def one(settings, shared, b, total):
    arrays = {"A": shared, "b": b, "lam": 0.3}
    return solve_chunk(settings, arrays, frozenset("b"), len(b), total)


def timed(function, clock=time.process_time):
    began = clock()
    function()
    return clock() - began


def loop(path, size, first=0, step=1):
    """Every `step`-th chunk in a plain loop, without Dask and without files of results.

    Returns the processor time of this process.
    """
    began = time.process_time()
    source = read_source(path, None, {})
    for start in range(first * size, source.count, step * size):
        stop = min(start + size, source.count)
        arrays = source.arrays(start, stop, None)
        solve_chunk(Settings("lasso"), arrays, source.own, stop - start, source.count)
    return time.process_time() - began


def loops(pool, path, size, count):
    """Processor and elapsed time of the plain loop in so many processes at once."""
    began = time.perf_counter()
    cpu = sum(pool.map(loop, [path] * count, [size] * count, range(count), [count] * count))
    return np.array([cpu, time.perf_counter() - began])


def on_dask(client, path, size, out):
    """Processor and elapsed time of the same chunks on a cluster, with files of results."""
    job = Batches.of(str(path), out, chunk=size)
    cpu, began = cpu_of(client), time.perf_counter()
    job.run(client)
    elapsed = time.perf_counter() - began
    return np.array([cpu_of(client) - cpu, elapsed])


def cpu_of(client):
    """Processor seconds of all workers and of this process, with client and scheduler."""
    times = client.run(lambda: sum(os.times()[:2]))
    return sum(times.values()) + sum(os.times()[:2])


def cores(seconds, chunks, repeats):
    """Overhead in processor time and in elapsed time, with one and with two workers."""
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        path, size = problems(folder, seconds, chunks)
        for workers in (1, 2):
            with (
                connected(None, workers) as client,
                ProcessPoolExecutor(workers, mp_context=spawn) as pool,
            ):
                loops(pool, path, size, workers)  # imports, and the Gram matrix of A
                on_dask(client, path, size, f"{folder}/warm-{workers}")
                alone, dask = [], []
                for repeat in range(repeats):
                    alone.append(loops(pool, path, size, workers))
                    dask.append(on_dask(client, path, size, f"{folder}/{workers}-{repeat}"))
            ratios = 100 * (np.array(dask) / np.array(alone) - 1)
            (cpu, elapsed), (least, _) = np.median(ratios, 0), ratios.min(0)
            each = np.median(alone, 0)[0] / chunks
            print(
                f"{workers} worker{'s' if workers > 1 else ''}: {chunks} chunks of {size} problems,"
                f" {each:.2f} s each in a loop; overhead {cpu:.1f}% of processor time (median of "
                f"{repeats}, least {least:.1f}%), {elapsed:.1f}% of elapsed time",
                flush=True,
            )


def rest(seconds):
    time.sleep(seconds)


def scheduler(tasks, workers, seconds):
    """How many tasks a second the scheduler manages where the work is a sleep."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=False, protocol="tcp://",
            host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=50,
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        for _ in run_each(client, rest, ((0.0,) for _ in range(2 * workers))):
            pass
        began, cpu = time.perf_counter(), time.process_time()
        for _ in run_each(client, rest, ((seconds,) for _ in range(tasks))):
            pass
        elapsed, cpu = time.perf_counter() - began, time.process_time() - cpu
    ideal = tasks * seconds / workers
    print(
        f"{tasks} tasks of {seconds:g} s on {workers} workers: {elapsed:.1f} s, ideally "
        f"{ideal:.1f} ({100 * (elapsed / ideal - 1):.1f}% more); "
        f"client, scheduler and workers spent {1e3 * cpu / tasks:.2f} ms of processor time a task",
        flush=True,
    )


def work():
    """Processor time of a problem on one core, and the bytes of its results."""
    rng = np.random.default_rng(1)
    for name, m, n, own, count in (
        ("codes on one dictionary", 64, 128, False, 20000),
        ("LASSO, each its own A", 250, 500, True, 64),
    ):
        A = rng.standard_normal((count, m, n) if own else (m, n)) / m**0.5
        b = rng.standard_normal((count, m))
        lam = 0.1 * np.abs(b[0] @ (A[0] if own else A)).max()
        held = A if own else SharedMatrix.of(A, None)
        names = frozenset("Ab" if own else "b")
        arrays = {"A": held, "b": b, "lam": lam}
        solve = partial(solve_chunk, Settings("lasso"), arrays, names, count, 10**9)
        solve()
        best = min(timed(solve) for _ in range(5))
        print(f"{name}, {m} x {n}: {1e6 * best / count:.0f} microseconds a problem", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=["cores", "scheduler", "work"])
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--chunks", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    if options.only in (None, "work"):
        work()
    if options.only in (None, "scheduler"):
        scheduler(10_000, 64, 0.5)
    if options.only in (None, "cores"):
        cores(options.seconds, options.chunks, options.repeats)
