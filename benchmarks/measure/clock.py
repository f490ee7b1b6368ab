"""Timing several functions in turns, so that all of them meet the same noise of the machine."""

import gc
import time
from collections.abc import Callable, Sequence
from typing import Any


def timed(run: Callable[[], Any], cpu: bool = False) -> tuple[float, Any]:
    """Seconds and result of one run; with `cpu`, the CPU time of this thread.

    The clock of the process would count in ticks of milliseconds while a CPU timer is set.
    """
    clock = time.thread_time if cpu else time.perf_counter
    began = clock()
    result = run()
    return clock() - began, result


def in_turns(
    runs: Sequence[Callable[[], Any]],
    least: Sequence[int] | None = None,
    budget: float = 0.5,
    most: int = 50,
    cpu: bool = False,
) -> tuple[list[list[float]], list[Any]]:
    """Seconds of every run, and the last results.

    Each function runs at least `least` times, and more often until its runs fill `budget` seconds
    or there are `most` of them. The first run of each is not timed: it compiles and fills caches.
    """
    least = least or [3] * len(runs)
    results = [run() for run in runs]
    seconds: list[list[float]] = [[] for _ in runs]

    def waiting() -> list[int]:
        return [
            i
            for i, spent in enumerate(seconds)
            if len(spent) < least[i] or (sum(spent) < budget and len(spent) < most)
        ]

    turn = 0
    gc.collect()
    gc.disable()
    try:
        while left := waiting():
            first = turn % len(left)
            for i in left[first:] + left[:first]:
                spent, results[i] = timed(runs[i], cpu)
                seconds[i].append(spent)
            turn += 1
    finally:
        gc.enable()
    return seconds, results
