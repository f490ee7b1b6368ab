"""`pl.scale.solve`: many problems in arrays, chunk by chunk, on this machine or on a cluster."""

import os
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from proxlearn.core.glm import STATUSES
from proxlearn.errors import InputError, needing_dask
from proxlearn.scale.chunk import MULTITASK, Settings, kind_of
from proxlearn.scale.chunked_arrays import solve_lazily, solve_on_cluster, solve_on_threads
from proxlearn.scale.cluster import connected
from proxlearn.scale.inputs import Problems
from proxlearn.scale.sizes import advise, memory_of_thread
from proxlearn.solving.exact import workers as processors


@dataclass(frozen=True)
class Batch:
    """The answers to many problems: NumPy arrays, or Dask arrays that are computed when asked for.

    ``dask.compute(batch)[0]`` computes all of them together.

    Examples
    --------
    >>> import numpy as np, proxlearn as pl
    >>> pl.scale.solve(np.eye(2), np.ones((3, 2)), 0.5).counts()
    {'SOLVED': 3}
    """

    x: Any
    """(B, n)"""
    objective: Any
    """F(x), (B,)."""
    gap: Any
    """Certified upper bound on F(x) - F*, (B,)."""
    status: Any
    """Places in `STATUSES`, (B,); 0 is SOLVED."""
    iterations: Any
    """(B,)"""

    @property
    def solved(self) -> bool:
        """True where every problem met the tolerance; Dask arrays are computed for it."""
        return bool(np.asarray(self.status == 0).all())

    def counts(self) -> dict[str, int]:
        """Number of problems with each status."""
        numbers = np.bincount(np.asarray(self.status), minlength=len(STATUSES)).tolist()
        return {name: count for name, count in zip(STATUSES, numbers, strict=True) if count}


def solve(
    A: Any,
    b: Any = None,
    lam: Any = None,
    *,
    loss: str = "squares",
    penalty: str = "l1",
    lam2: Any = None,
    delta: Any = None,
    weights: Any = None,
    groups: Any = None,
    l1_ratio: Any = None,
    l1_weights: Any = None,
    radius: Any = None,
    at_most: bool | None = None,
    classes: int | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    dtype: str | None = None,
    chunk: int | None = None,
    workers: int | None = None,
    client: Any = None,
    out: Any = None,
    sparse: bool = False,
) -> Any:
    """Solve many problems of one kind in chunks: minimise F(x) = loss(A x; b) + penalty(x).

    The answers have the same bits however the problems are divided into chunks, and with any number
    of workers and threads, on one kind of processor.

    Parameters
    ----------
    A : array (m, n) or (B, m, n), sparse matrix (m, n), DataArray, or zarr group
        One matrix for all problems, or one a problem; of NumPy, SciPy, Dask or xarray. A zarr
        group, or the path of one or of another input of ``proxlearn solve-batch``, holds all arrays
        of the problems; then `out` is needed.
    b : array (B, m) or DataArray
        Targets or labels; (B, m, T) for "row-l1". A Dask array makes all answers Dask arrays with
        its chunks. The dimensions of a DataArray are those of the problems and the one that A and b
        share.
    lam, lam2, delta, l1_ratio, radius : number or array (B,)
        Numbers of the problems, as in `lasso`, `elastic_net`, `huber`, `sparse_group_lasso` and
        `simplex_ls`.
    loss : {"squares", "huber", "logistic", "poisson", "softmax"}
        What is minimised of A x.
    penalty : {"l1", "elastic-net", "non-negative", "simplex", "group-l1", "row-l1", \
"sparse-group-l1"}
        The convex term. "row-l1" is that of `multitask_lasso`: T targets a problem, x (B, n T).
    weights, l1_weights : array (n,) or (B, n), optional
        Weights of the coordinates in the penalty; `weights` of groups are (G,) or (B, G).
    groups : array (n,), optional
        The group of each coordinate, for "group-l1" and "sparse-group-l1".
    at_most : bool, optional
        For "simplex": whether the sum of x may also be smaller than the radius.
    classes : int, optional
        Number of classes, for "softmax".
    tol, max_iter
        The relative gap to reach, and the most iterations.
    dtype : {"float32", "float64"}, optional
        The precision of the answers; that of A by default.
    chunk : int, optional
        Problems in a chunk; by default about two seconds of work, or the chunks of b.
    workers : int, optional
        Threads of this machine; as many as there are processors by default.
    client : distributed.Client, optional
        A cluster of Dask that solves in place of this machine.
    out : str, optional
        For a zarr group: the folder of the group of results.
    sparse : bool
        For a zarr group: whether x is written as its non-zeros (`sparse_x` reads them).

    Returns
    -------
    Batch, xarray.Dataset or zarr.Group
        What A and b are: NumPy arrays, Dask arrays, a data set or a group of results.

    Examples
    --------
    >>> import numpy as np, proxlearn as pl
    >>> rng = np.random.default_rng(0)
    >>> A, b = rng.standard_normal((20, 40)), rng.standard_normal((1000, 20))
    >>> answers = pl.scale.solve(A, b, lam=5.0)
    >>> answers.x.shape, answers.counts()
    ((1000, 40), {'SOLVED': 1000})
    """
    options = {"lam": lam, "lam2": lam2, "weights": weights, "groups": groups}
    options |= {"delta": delta, "radius": radius, "classes": classes}
    options |= {"l1_ratio": l1_ratio, "l1_weights": l1_weights, "at_most": at_most}
    given = {name: value for name, value in options.items() if value is not None}
    settings = Settings(kind_of(loss, penalty), tol, max_iter, dtype)
    with needing_dask("pl.scale"):
        place = _path_of(A)
        if place is not None:
            kind = None if (loss, penalty) == ("squares", "l1") else settings.kind
            return _solve_group(
                place, b, given, kind, settings, chunk, workers, client, out, sparse
            )
        if out is not None or sparse:
            raise InputError("out and sparse were given with arrays; expected a zarr group as A")
        if any(hasattr(value, "dims") for value in (A, b)):
            from proxlearn.scale.labelled import solve_labelled

            if settings.kind == MULTITASK:
                raise InputError(
                    "penalty 'row-l1' was given with DataArrays, in which the dimension of the "
                    "targets has no place; expected arrays of NumPy or Dask, such as b.data"
                )

            def solve_flat(matrix: Any, rows: Any, flat: dict[str, Any]) -> Batch:
                return _solve_arrays(settings, matrix, rows, flat, chunk, workers, client)

            return solve_labelled(A, b, given, solve_flat)
        return _solve_arrays(settings, A, b, given, chunk, workers, client)


def _solve_arrays(
    settings: Settings,
    A: Any,
    b: Any,
    options: dict[str, Any],
    chunk: int | None,
    workers: int | None,
    client: Any,
) -> Batch:
    """Solve arrays in memory, or let Dask solve them later."""
    settings.check()
    problems = Problems.of(settings, A, b, options)
    threads = processors(workers) if client is None else sum(client.nthreads().values())
    memory = memory_of_thread(client, threads)
    if problems.lazy:
        return Batch(**solve_lazily(problems, chunk, threads, memory, client))
    size = chunk or problems.size.choose(problems.count, threads)
    advise(problems.size.check(min(size, problems.count), problems.count, memory))
    if client is None:
        return Batch(**solve_on_threads(problems, size, threads))
    return Batch(**solve_on_cluster(problems, size, client))


def _path_of(A: Any) -> str | None:
    """Where a zarr group or another input of ``solve-batch`` is."""
    if isinstance(A, str | os.PathLike):
        return os.fspath(A)
    if type(A).__module__.split(".")[0] != "zarr":
        return None
    if hasattr(A, "arrays"):
        root = getattr(A.store, "root", None)
        if root is not None:
            return str(Path(root) / A.path)
    raise InputError(
        "A is of zarr, and not a group in a folder; expected a group with A, b and what the kind "
        "needs, or Dask arrays, such as dask.array.from_zarr(A)"
    )


def _solve_group(
    place: str,
    b: Any,
    given: dict[str, Any],
    kind: str | None,
    settings: Settings,
    chunk: int | None,
    workers: int | None,
    client: Any,
    out: Any,
    sparse: bool,
) -> Any:
    """Solve the problems in a zarr group or a file, with results in another group."""
    import zarr

    from proxlearn.scale.chunked_files import Batches

    if b is not None or not all(isinstance(v, int | float) for v in given.values()):
        raise InputError("arrays were given beside a zarr group; put them into the group")
    if out is None:
        raise InputError("out is missing; give the folder for the group of results")
    batches = Batches.of(
        place, os.fspath(out), kind=kind or "lasso", numbers=given, tol=settings.tol,
        max_iter=settings.max_iter, dtype=settings.dtype, chunk=chunk, sparse=sparse,
    )  # fmt: skip
    cluster = nullcontext(client) if client is not None else connected(None, workers, None, True)
    with cluster as connection:
        outcome = batches.run(connection, advise=advise)
    if outcome.failed:
        raise InputError(outcome.failed[0])
    return zarr.open_group(os.fspath(out), mode="r")
