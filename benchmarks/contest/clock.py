"""Times a solver on all cores: threads of its own, or a process for each core."""

import ctypes
import gc
import multiprocessing
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing.connection import Connection

import numpy as np
from threadpoolctl import threadpool_limits

from contest.task import Task
from contest.variant import Variant
from proxlearn import InputError

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
_chosen = {"now": time.perf_counter}


def use(name: str) -> None:
    """Measure by the wall clock, or by the time that this process spends on a processor."""
    _chosen["now"] = CLOCKS[name]


def now() -> float:
    """Seconds of the clock in use."""
    return _chosen["now"]()


@dataclass(frozen=True)
class Timing:
    setup: float
    """Seconds of preparation, a part of `total`; the longest over the processes."""
    total: float
    X: np.ndarray
    """(B, n)"""


def run(variant: Variant, task: Task, tol: float, threads: int) -> Timing:
    """Prepare and solve once. Processes are started, with the data, before the clock."""
    with _no_collection(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers warn of every tolerance that they miss
        if not variant.whole and threads > 1 and task.count > 1:
            return _forked(variant, task, tol, min(threads, task.count))
        began = now()
        setup, X = _work(variant, task, tol)
        return Timing(setup, now() - began, X)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Garbage that others left is not collected on a solver's time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def warm_up(variant: Variant, task: Task) -> None:
    """Solve one problem here: what is imported or compiled now, processes inherit."""
    run(variant, task.part(0, 1), variant.grid[len(variant.grid) // 3], 1)


def _work(variant: Variant, task: Task, tol: float) -> tuple[float, np.ndarray]:
    setup, found = 0.0, []
    for block in task.blocks():
        began = now()
        prepared = variant.prepare(block)
        setup += now() - began
        found.append(variant.solve(prepared, tol))
        del prepared
    return setup, np.concatenate(found) if len(found) > 1 else found[0]


def _forked(variant: Variant, task: Task, tol: float, workers: int) -> Timing:
    if "fork" not in multiprocessing.get_all_start_methods():
        raise InputError("this system cannot fork processes, which peers need; use --threads 1")
    fork = multiprocessing.get_context("fork")
    memory = fork.RawArray(ctypes.c_double, task.count * task.n)
    X = np.frombuffer(memory).reshape(task.count, task.n)
    bounds = np.linspace(0, task.count, workers + 1).astype(int).tolist()

    def work(pipe: Connection, first: int, last: int) -> None:
        part = task.part(first, last)
        with threadpool_limits(1):
            pipe.send(None)
            pipe.recv()
            setup, X[first:last] = _work(variant, part, tol)
            pipe.send(setup)

    pipes, processes = [], []
    for first, last in pairwise(bounds):
        here, there = fork.Pipe()
        process = fork.Process(target=work, args=(there, first, last), daemon=True)
        process.start()
        there.close()
        pipes.append(here)
        processes.append(process)
    for pipe in pipes:
        pipe.recv()
    began = time.perf_counter()
    for pipe in pipes:
        pipe.send(None)
    setups = [pipe.recv() for pipe in pipes]
    total = time.perf_counter() - began
    for process in processes:
        process.join()
    return Timing(max(setups), total, X.copy())
