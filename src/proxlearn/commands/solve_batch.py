"""``proxlearn solve-batch``: a folder of problems in shards, by any number of workers."""

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from proxlearn import checks
from proxlearn.names import ENGINES

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
    lam: Annotated[
        float | None, typer.Option(help="Weight of the penalty where a file has none.")
    ] = None,
    shard_size: Annotated[int, typer.Option(min=1, help="Instances in a shard.")] = 256,
    optimizer: Annotated[
        str,
        typer.Option(help="auto, a method such as fista-restart, or a model of proxlearn models."),
    ] = "auto",
    tol: Annotated[float, typer.Option(help="Certified relative gap to reach.")] = 1e-6,
    max_iter: Annotated[int, typer.Option(help="Most iterations.")] = 1000,
    dtype: Annotated[str | None, typer.Option(help="float32 or float64 (that of A).")] = None,
    device: Annotated[str, typer.Option(help="Where to compute.")] = "cpu",
    engine: Annotated[str, typer.Option(metavar="|".join(ENGINES), help="The engine.")] = "auto",
    stale: Annotated[
        float, typer.Option(help="Seconds of silence after which a shard is taken over.")
    ] = 60.0,
    retry: Annotated[
        bool, typer.Option("--retry", help="Try shards again that failed before.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Write to OUTPUT even if that is INPUT.")
    ] = False,
) -> int:
    """Solve many problems in shards, alone or with other workers on the same folders.

    An .npz file holds kind, A with shape (B, m, n) or (m, n), b (B, m), lam (one number or (B,)),
    and the other arrays that the kind needs. A zarr group holds the same, with kind as an
    attribute. OUTPUT/NAME/START-STOP.npz holds x, objective, gap, status, iterations, grad_evals.

    Start it on as many hosts as you like, also under torchrun. Each shard is solved once; when a
    worker is killed, another takes over its shard. A new start solves what is missing.
    """
    checks.check_choice("engine", engine, ENGINES)
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
    from proxlearn.commands.progress import watching
    from proxlearn.memory import keep_freed_memory
    from proxlearn.shards import Settings
    from proxlearn.shards import solve_batch as run

    keep_freed_memory()  # shard after shard allocates the same
    settings = Settings(kind, lam, shard_size, optimizer, tol, max_iter, dtype, device, engine)
    worker, workers = _rank()
    with watching() as show:
        watch = _watch(worker, show)
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
    shards = f"{summary.shards} shard{'' if summary.shards == 1 else 's'}"
    print(f"{shards}, {outcome.computed} of them by this worker{failed}")
    print(f"wrote {os.path.join(out, 'summary.json')}")


def _watch(worker: int, show: Callable[[str, float, float], None]) -> "Watch | None":
    """Shows the instances that all workers have settled; one worker shows it for all."""
    if worker != 0:
        return None
    return lambda done, total: show(f"{done} of {total} instances", done, max(total, 1))
