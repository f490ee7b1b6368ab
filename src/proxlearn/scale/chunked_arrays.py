"""Arrays in memory, solved at once on threads or a cluster; Dask arrays, solved when asked for."""

from typing import Any

import numpy as np

from proxlearn.errors import InputError
from proxlearn.scale.chunk import FIELDS, WHOLE, Results, Settings, SharedMatrix, solve_chunk
from proxlearn.scale.cluster import Lost, run_each
from proxlearn.scale.inputs import Problems, is_dask
from proxlearn.scale.sizes import advise

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
    """Solve chunks of `size` problems on threads of this process."""
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
        for place, found in run_each(client, solve_part, calls, heavy=True):
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


def solve_lazily(
    problems: Problems, chunk: int | None, threads: int, memory: float | None, client: Any
) -> dict[str, Any]:
    """The arrays of `FIELDS` as Dask arrays, with a task for each chunk of problems."""
    import dask.array as da
    from dask.delayed import delayed

    sizes = _chunks(problems, chunk, threads)
    advise(problems.size.check(max(sizes), problems.count, memory))
    blocks = {name: _blocks(problems.arrays[name], sizes) for name in problems.own}
    shared = {k: _one(v) for k, v in problems.arrays.items() if k not in problems.own}
    A = shared.pop("A", None)
    if A is not None:
        A = _shared_matrix(A, problems.settings.dtype, client)
    shared |= {name: int(shared[name]) for name in WHOLE if name in shared}
    solve = delayed(solve_part, pure=False)
    tasks = []
    for place, count in enumerate(sizes):
        part = {**shared, **{name: parts[place] for name, parts in blocks.items()}}
        task = solve(A, problems.settings, part, problems.own, count, problems.count)
        tasks.append(task)
    answers = {}
    for name, dtype in FIELDS.items():
        rest = (problems.width,) if name == "x" else ()
        pieces = [
            da.from_delayed(task[name], (count, *rest), dtype or problems.precision)
            for task, count in zip(tasks, sizes, strict=True)
        ]
        answers[name] = da.concatenate(pieces)
    return answers


def _chunks(problems: Problems, chunk: int | None, threads: int) -> tuple[int, ...]:
    """Numbers of problems in the chunks: as asked for, or those that a Dask array has."""
    for name in ("b", "A", *sorted(problems.own)):
        if chunk is None and name in problems.own and is_dask(problems.arrays[name]):
            return tuple(int(size) for size in problems.arrays[name].chunks[0])
    size = chunk or problems.size.choose(problems.count, threads)
    return tuple(stop - start for start, stop in problems.chunks(size))


def _blocks(value: Any, sizes: tuple[int, ...]) -> list[Any]:
    """The parts of an array for the chunks."""
    if is_dask(value):
        whole = value.rechunk({0: sizes, **dict.fromkeys(range(1, value.ndim), -1)})
        return list(whole.to_delayed().ravel())
    ends = np.cumsum(sizes).tolist()
    return [value[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def _one(value: Any) -> Any:
    """What all chunks share, as one task where it is a Dask array."""
    if not is_dask(value):
        return value
    parts = value.rechunk(value.shape).to_delayed().ravel()
    if len(parts) != 1:
        raise InputError(f"a shared array has shape {value.shape}; expected a number or an array")
    return parts[0]


def _shared_matrix(A: Any, dtype: str | None, client: Any) -> Any:
    """A as one task or as a future, of which each worker gets one copy."""
    from dask.delayed import delayed

    if client is not None and not is_dask(A):
        held = client.scatter(SharedMatrix.of(A, dtype), broadcast=True, hash=False)
        return delayed(held)
    prepared = A if is_dask(A) or hasattr(A, "key") else delayed(A, pure=False)
    return delayed(SharedMatrix.of, pure=False)(prepared, dtype)
