"""Dask arrays in, Dask arrays out: nothing is solved before the answers are asked for."""

from typing import Any

import numpy as np

from proxlearn.errors import InputError
from proxlearn.scale.chunk import FIELDS, SharedMatrix
from proxlearn.scale.eager import solve_part
from proxlearn.scale.inputs import Problems, is_dask
from proxlearn.scale.sizes import advise


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
    if "classes" in shared:
        shared["classes"] = int(shared["classes"])
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
