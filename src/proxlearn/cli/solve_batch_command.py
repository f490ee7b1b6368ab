"""``proxlearn solve-batch``: many problems in files, on this machine or on a cluster of Dask."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from proxlearn import checks
from proxlearn.cli.options import Chunk, Dashboard, Dtype, MaxIter, Scheduler, Tol, Workers
from proxlearn.errors import InputError, needing_dask

if TYPE_CHECKING:
    from proxlearn.scale.chunked_files import Outcome

TWO_DASHBOARDS = (
    "--dashboard {} was given with --scheduler; leave it out, since a running cluster has its own "
    "dashboard"
)
SHOWN = 10
"""Problems that missed the tolerance whose places are printed; the output lists more of them."""


def solve_batch(
    problems: Annotated[
        str,
        typer.Argument(metavar="IN", help="An .npz file, a zarr group or a folder of .npy files."),
    ],
    out: Annotated[str, typer.Argument(metavar="OUT", help="The zarr group of the results.")],
    kind: Annotated[str | None, typer.Option(help="Kind of problem where IN has none.")] = None,
    lam: Annotated[
        float | None, typer.Option(help="Weight of the penalty where IN has none.")
    ] = None,
    lam2: Annotated[
        float | None, typer.Option(help="Weight of the elastic net's squares where IN has none.")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="Where Huber's loss becomes linear, where IN has none.")
    ] = None,
    tol: Tol = 1e-6,
    max_iter: MaxIter = 1000,
    dtype: Dtype = None,
    sparse: Annotated[bool, typer.Option("--sparse", help="Write x as its non-zeros.")] = False,
    chunk: Chunk = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    dashboard: Dashboard = None,
) -> int:
    """Solve many problems of one kind, chunk by chunk.

    IN holds A with shape (B, m, n) or (m, n), b (B, m), lam (one number or (B,)), and the other
    arrays that the kind needs; kind is an array of an .npz file, an attribute of a zarr group, or
    --kind. OUT becomes a zarr group with x, objective, gap, status and iterations.

    The same command again solves what is missing or damaged, and nothing else.
    """
    checks.check_batch(
        problems,
        out,
        kind=kind,
        tol=tol,
        max_iter=max_iter,
        dtype=dtype,
        scheduler=scheduler,
        workers=workers,
    )
    if scheduler is not None and dashboard is not None:
        raise InputError(TWO_DASHBOARDS.format(dashboard))
    with needing_dask("solve-batch"):
        import zarr  # noqa: F401

        from proxlearn.cli.progress import watching
        from proxlearn.scale.chunked_files import Batches
        from proxlearn.scale.cluster import connected

        numbers = {
            k: v for k, v in (("lam", lam), ("lam2", lam2), ("delta", delta)) if v is not None
        }
        batches = Batches.of(
            problems, out, kind=kind, numbers=numbers, tol=tol, max_iter=max_iter, dtype=dtype,
            chunk=chunk, sparse=sparse,
        )  # fmt: skip
        with connected(scheduler, workers, dashboard) as client, watching() as show:
            outcome = batches.run(
                client,
                watch=lambda done, total: show(f"{done} of {total} problems", done, total),
                warn=lambda line: print(f"error: {line}", file=sys.stderr, flush=True),
                advise=lambda line: print(f"warning: {line}", file=sys.stderr, flush=True),
            )
    _show(outcome, out)
    return outcome.code


def _show(outcome: "Outcome", out: str) -> None:
    """Print what is in the output, and which problems missed the tolerance."""
    counts = ", ".join(f"{n} {name}" for name, n in sorted(outcome.status.items()) if n)
    print(f"{outcome.problems} problems: {counts or 'none solved'}")
    print(f"{outcome.chunks} chunks, {outcome.computed} of them solved now")
    missed = sum(n for name, n in outcome.status.items() if name != "SOLVED")
    if missed:
        some = ", ".join(f"{place} {status}" for place, status in outcome.unsolved[:SHOWN])
        more = ", ..." if missed > SHOWN else ""
        print(
            f"warning: {missed} of {outcome.problems} problems did not reach the tolerance: "
            f"{some}{more}; their status in {out} is not 0. Raise --max-iter or --tol",
            file=sys.stderr,
        )
    if outcome.failed:
        print(f"{len(outcome.failed)} chunks could not be solved; {out} lacks them")
    else:
        print(f"wrote {out}")
