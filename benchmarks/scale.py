"""What Dask costs: chunks of a second on one and two workers, and 10,000 chunks on 64 workers.

    python benchmarks/scale.py                all measurements
    python benchmarks/scale.py --only cores   one of: work, shared, scheduler, cores

`work` is what a problem costs on one core. `shared` counts the bytes that go to two workers with
one A of 1 GB. `scheduler` has 64 workers whose work is a sleep. `cores` compares `solve-batch` on a
LocalCluster of one and two workers with the same chunks in a plain loop, in as many processes. The
cluster writes files of results and the loop does not. They take turns, `--repeats` times. Since the
time of a solve varies by some percent from run to run, `cores` also says how much processor time
all processes of a run spent outside of its solves.
"""

import argparse
import asyncio
import logging
import multiprocessing
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import psutil
from dask import config

from proxlearn.scale import solve
from proxlearn.scale.chunk import Settings, SharedMatrix, solve_chunk
from proxlearn.scale.chunked_files import Batches
from proxlearn.scale.cluster import SETTINGS, connected, run_each
from proxlearn.scale.source import read_source


def problems(folder, seconds, chunks):
    """A file of LASSO problems that share A, with chunks of about so many seconds.

    Another file has a few problems. Returned are both and the number of problems in a chunk.
    """
    rng = np.random.default_rng(0)
    A = rng.standard_normal((64, 250)) / 8  # 250: rows of x lie at all places of a cache line
    some = rng.standard_normal((2000, 64))
    settings, shared = Settings("lasso"), SharedMatrix.of(A, None)
    best = min(timed(lambda: one(settings, shared, some, 10**6)) for _ in range(3))
    size = max(2, round(len(some) * seconds / best))
    paths = [Path(folder) / name for name in ("problems.npz", "few.npz")]
    for path, count in zip(paths, (size * chunks, 400), strict=True):
        np.savez(path, kind="lasso", A=A, b=rng.standard_normal((count, 64)), lam=0.3)
    return *paths, size


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
    """Processor and elapsed time of the same chunks on a cluster, with files of results.

    The third number is the processor time in the solves alone.
    """
    job = Batches.of(str(path), out, chunk=size)
    cpu, inside, began = cpu_of(client), inside_solves(client), time.perf_counter()
    job.run(client)
    elapsed = time.perf_counter() - began
    return np.array([cpu_of(client) - cpu, elapsed, inside_solves(client) - inside])


def cpu_of(client):
    """Processor seconds of all workers and of this process, with client and scheduler."""
    times = client.run(lambda: sum(os.times()[:2]))
    return sum(times.values()) + sum(os.times()[:2])


def inside_solves(client):
    """Processor seconds of the solves on all workers since the first call."""

    def seconds():
        from proxlearn.scale import work

        if not hasattr(work, "spent"):
            solve, work.spent = work.solve_chunk, []

            def watched(*arguments):
                began = time.thread_time()
                try:
                    return solve(*arguments)
                finally:
                    work.spent.append(time.thread_time() - began)

            work.solve_chunk = watched
        return sum(work.spent)

    return sum(client.run(seconds).values())


def cores(seconds, chunks, repeats):
    """Overhead in processor time and in elapsed time, with one and with two workers."""
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        path, few, size = problems(folder, seconds, chunks)
        for workers in (1, 2):
            alone, dask = [], []
            for repeat in range(repeats):  # each with new processes, whose memory differs
                with (
                    connected(None, workers) as client,
                    ProcessPoolExecutor(workers, mp_context=spawn) as pool,
                ):
                    loops(pool, few, 50, workers)  # imports
                    on_dask(client, few, 50, f"{folder}/few-{workers}-{repeat}")
                    alone.append(loops(pool, path, size, workers))
                    dask.append(on_dask(client, path, size, f"{folder}/{workers}-{repeat}"))
            dask, alone = np.array(dask), np.array(alone)
            ratios = 100 * (dask[:, :2] / alone - 1)
            (cpu, elapsed), low, high = np.median(ratios, 0), ratios.min(0), ratios.max(0)
            outside = np.median(100 * (dask[:, 0] / dask[:, 2] - 1))
            print(
                f"workers {workers}: {chunks} chunks of {size} problems, "
                f"{np.median(alone[:, 0]) / chunks:.2f} s each in a loop; more than the loop: "
                f"{cpu:.1f}% of processor time ({low[0]:.1f} to {high[0]:.1f} in {repeats} runs), "
                f"{elapsed:.1f}% of elapsed time ({low[1]:.1f} to {high[1]:.1f}); outside of the "
                f"solves: {outside:.1f}% of processor time",
                flush=True,
            )


def rest(seconds):
    time.sleep(seconds)


async def _serve_scheduler(pipe):
    from distributed import Scheduler

    async with Scheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler:
        pipe.send(scheduler.address)
        await scheduler.finished()


async def _serve_workers(pipe, address, count):
    from distributed import Worker

    with config.set(SETTINGS):  # their monitors rest: 64 of them share two cores here
        workers = [
            Worker(address, nthreads=1, host="127.0.0.1", silence_logs=50) for _ in range(count)
        ]
        await asyncio.gather(*workers)
    pipe.send(None)
    await asyncio.gather(*(worker.finished() for worker in workers))


def serve(pipe, function, *arguments):
    logging.disable(logging.WARNING)
    asyncio.run(function(pipe, *arguments))


@contextmanager
def process(function, *arguments):
    """A process that serves until the block ends: its id, and what it says first."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    child = spawn.Process(target=serve, args=(theirs, function, *arguments))
    child.start()
    try:
        yield child.pid, ours.recv()
    finally:
        child.kill()
        child.join()


def scheduler(tasks, count, lengths):
    """What a task costs client and scheduler where the work is a sleep, and how many they manage.

    Client, scheduler and workers have a process each. The scheduler has Dask's own settings.
    """
    from distributed import Client

    with (
        process(_serve_scheduler) as (scheduler_id, address),
        process(_serve_workers, address, count) as (workers_id, _),
        Client(address, set_as_default=False) as client,
    ):
        client.wait_for_workers(count)
        ids = {"client": os.getpid(), "scheduler": scheduler_id, "workers": workers_id}
        watched = {name: psutil.Process(number) for name, number in ids.items()}

        def spent():
            return np.array([sum(one.cpu_times()[:2]) for one in watched.values()])

        def run(number, seconds):
            for _ in run_each(client, rest, ((seconds,) for _ in range(number))):
                pass

        run(4 * count, 0.0)
        for seconds in lengths:
            before, began = spent(), time.perf_counter()
            run(tasks, seconds)
            elapsed, each = time.perf_counter() - began, 1e3 * (spent() - before) / tasks
            costs = ", ".join(f"{k} {v:.2f}" for k, v in zip(watched, each, strict=True))
            ideal = tasks * seconds / count
            more = f" ({100 * (elapsed / ideal - 1):.1f}% more)" if ideal else ""
            print(
                f"{tasks} tasks of {seconds:g} s on {count} workers: {elapsed:.1f} s, ideally "
                f"{ideal:.1f}{more}, {tasks / elapsed:.0f} tasks a second; milliseconds of "
                f"processor time a task: {costs}",
                flush=True,
            )


def shared(rows, columns):
    """Bytes on the loopback interface where two workers share one A, in memory and in a file."""

    def sent():
        return psutil.net_io_counters(pernic=True)["lo"].bytes_sent

    rng = np.random.default_rng(0)
    A = rng.standard_normal((rows, columns))
    b = rng.standard_normal((32, rows))
    lam = 0.8 * np.abs(b @ A).max()
    with connected(None, 2) as client, tempfile.TemporaryDirectory() as folder:
        before = sent()
        solve(A, b, lam, client=client, chunk=2)
        print(f"A of {A.nbytes / 1e9:.2f} GB, 16 chunks on two workers:", end=" ")
        print(f"{(sent() - before) / 1e9:.2f} GB sent (client, scheduler, two workers)", flush=True)
        np.save(f"{folder}/A.npy", A)
        np.save(f"{folder}/b.npy", b)
        before = sent()
        options = {"kind": "lasso", "numbers": {"lam": lam}, "chunk": 2}
        with tempfile.TemporaryDirectory() as out:
            Batches.of(folder, f"{out}/results", **options).run(client)
        print(f"the same from .npy files: {(sent() - before) / 1e9:.4f} GB sent", flush=True)


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


PARTS = {
    "work": lambda given: work(),
    "shared": lambda given: shared(4096, 32768),
    "scheduler": lambda given: scheduler(10_000, 64, (0.5, 0.0)),
    "cores": lambda given: cores(given.seconds, given.chunks, given.repeats),
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=list(PARTS))
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--chunks", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    for name, part in PARTS.items():
        if options.only in (None, name):
            part(options)
