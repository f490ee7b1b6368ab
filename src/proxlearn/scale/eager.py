"""Arrays in memory, solved at once: on threads of this machine, or on a cluster."""

from typing import Any

import numpy as np

from proxlearn.errors import InputError
from proxlearn.scale.chunk import FIELDS, Results, Settings, SharedMatrix, solve_chunk
from proxlearn.scale.cluster import Lost, run_each
from proxlearn.scale.inputs import Problems

ATTEMPTS = 5
"""How often A is sent again to workers that died with it."""


def solve_part(
    A: Any,
    settings: Settings,
    part: dict[str, Any],
    own: frozenset[str],
    count: int,
    total: int,
) -> Results:
    """What a task does: `solve_chunk`, with the A that all share as an argument of its own."""
    arrays = part if A is None else {**part, "A": A}
    return solve_chunk(settings, arrays, own, count, total)


def _empty(problems: Problems) -> Results:
    shapes = {"x": (problems.count, problems.width)}
    return {
        name: np.empty(shapes.get(name, (problems.count,)), dtype or problems.precision)
        for name, dtype in FIELDS.items()
    }


def _shared(problems: Problems) -> SharedMatrix | None:
    if "A" in problems.own:
        return None
    return SharedMatrix.of(problems.arrays["A"], problems.settings.dtype)


def solve_on_threads(problems: Problems, size: int, threads: int) -> Results:
    from dask.base import compute
    from dask.delayed import delayed
    from threadpoolctl import threadpool_limits

    results, A = _empty(problems), _shared(problems)

    def fill(start: int, stop: int) -> None:
        part = problems.part(start, stop)
        found = solve_part(A, problems.settings, part, problems.own, stop - start, problems.count)
        for name, value in found.items():
            results[name][start:stop] = value

    tasks = [delayed(fill, pure=False)(*bounds) for bounds in problems.chunks(size)]
    with threadpool_limits(1, user_api="blas"):  # where this thread has a limit of its own
        compute(*tasks, scheduler="threads", num_workers=threads)
    return results


def solve_on_cluster(problems: Problems, size: int, client: Any) -> Results:
    """A goes to each worker once; the other arrays go with the tasks, a few at a time."""
    results, A = _empty(problems), _shared(problems)
    left = list(problems.chunks(size))
    for _ in range(ATTEMPTS):
        held = None if A is None else client.scatter(A, broadcast=True, hash=False)
        calls = (
            (held, problems.settings, problems.part(*c), problems.own, c[1] - c[0], problems.count)
            for c in left
        )
        again = []
        for place, found in run_each(client, solve_part, calls):
            start, stop = left[place]
            if isinstance(found, Lost):
                if found.killed:
                    raise InputError(
                        f"problems {start} to {stop - 1}: {found.reason}, perhaps for want of "
                        "memory; choose a smaller chunk, or give the workers more memory"
                    )
                again.append((start, stop))
                continue
            for name, value in found.items():
                results[name][start:stop] = value
        left = again
        if not left:
            return results
    raise InputError("workers with A died again and again; give them more memory, or a smaller A")
