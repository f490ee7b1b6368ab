"""Work of the compiled code in ranges, one for each of PyTorch's threads."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import torch


def share(count: int, work: Callable[[int, int], Any], block: int = 1) -> list[Any]:
    """Call `work(first, last)` for as many ranges of 0, ..., count - 1 as PyTorch has threads.

    All ranges but the last are multiples of `block` long. `work` must release the GIL.
    """
    blocks = -(-count // block)
    threads = min(torch.get_num_threads(), blocks)
    if threads == 1:
        return [work(0, count)]
    bounds = [min(count, blocks * i // threads * block) for i in range(threads + 1)]
    return list(_pool(threads, os.getpid()).map(work, bounds[:-1], bounds[1:]))


@cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """Threads of this process; a fork does not inherit those of its parent."""
    return ThreadPoolExecutor(threads)
