"""``proxlearn solve-batch``: a folder of problems in shards, by any number of workers."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from proxlearn import checks

if TYPE_CHECKING:
    from proxlearn.shards.work import Outcome, Watch


def solve_batch(
    problems: Annotated[
        str,
        typer.Argument(
            metavar="INPUT", help="Folder of .npz files and .zarr groups, or one of them."
        ),
    ],
    out: Annotated[str, typer.Argument(metavar="OUTPUT", help="Folder for the results.")],
    kind: Annotated[str | None, typer.Option(help="Kind of problem where a file has none.")] = None,
    lam: Annotated[float | None, typer.Option(help="lam where a file has none.")] = None,
    shard_size: Annotated[int, typer.Option(min=1, help="Instances in a shard.")] = 256,
    optimizer: Annotated[str, typer.Option(help="Name of the method.")] = "auto",
    tol: Annotated[float, typer.Option(help="Certified relative gap to reach.")] = 1e-6,
    max_iter: Annotated[int, typer.Option(help="Most iterations.")] = 1000,
    dtype: Annotated[str | None, typer.Option(help="float32 or float64 (that of A).")] = None,
    device: Annotated[str, typer.Option(help="Where to compute.")] = "cpu",
    engine: Annotated[str, typer.Option(help="auto, core or torch.")] = "auto",
    stale: Annotated[
        float, typer.Option(help="Seconds of silence after which a shard is taken over.")
    ] = 60.0,
    retry: Annotated[bool, typer.Option("--retry", help="Try again what failed before.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Write to OUTPUT even if that is INPUT.")
    ] = False,
) -> int:
    """Solve many problems in shards, alone or with other workers on the same folders.

    A file holds kind, A (B, m, n) or (m, n), b (B, m), lam (one or (B,)) and what else the kind
    takes; so does a zarr group, with kind for an attribute. OUTPUT/NAME/START-STOP.npz holds x,
    objective, gap, status, iterations and grad_evals.

    Start it as often and on as many hosts as you like, also under torchrun: each shard is done
    once, one of a killed worker by another, and a new start does what is missing.
    """
    checks.check_batch(
        problems,
        out,
        kind=kind,
        optimizer=optimizer,
        engine=engine,
        tol=tol,
        max_iter=max_iter,
        dtype=dtype,
        device=device,
        force=force,
    )
    from proxlearn.memory import keep_freed_memory
    from proxlearn.shards import Settings
    from proxlearn.shards import solve_batch as run

    keep_freed_memory()  # shard after shard allocates the same
    settings = Settings(kind, lam, shard_size, optimizer, tol, max_iter, dtype, device, engine)
    worker, workers = _rank()
    with _bar(worker) as watch:
        outcome = run(
            problems,
            out,
            settings,
            worker=worker,
            workers=workers,
            stale=stale,
            retry=retry,
            watch=watch,
            warn=lambda line: print(f"error: {line}", file=sys.stderr, flush=True),
        )
    _show(outcome, out)
    return outcome.code


def _rank() -> tuple[int, int]:
    """Which of how many workers torchrun says this is; they differ in where they begin."""
    try:
        return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    except ValueError:
        return 0, 1


def _show(outcome: "Outcome", out: str) -> None:
    summary = outcome.summary
    if summary is None:
        return
    counts = ", ".join(f"{count} {status}" for status, count in sorted(summary.status.items()))
    print(f"{summary.instances} instances: {counts or 'none'}")
    failed = f", {len(outcome.failed)} failed" if outcome.failed else ""
    print(f"{summary.shards} shards, {outcome.computed} of them by this worker{failed}")
    print(f"wrote {os.path.join(out, 'summary.json')}")


@contextmanager
def _bar(worker: int) -> Iterator["Watch | None"]:
    """A bar on stderr with all workers' settled instances, if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    if worker != 0 or not console.is_terminal:
        yield None
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda done, total: progress.update(task, total=total, completed=done)
