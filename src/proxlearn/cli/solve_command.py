"""``proxlearn solve``: problems whose arrays are in files."""

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from proxlearn import checks, names
from proxlearn.cli.options import Classes, Dtype, Engine, L1Ratio, MaxIter, Optimizer, Tol

if TYPE_CHECKING:
    from proxlearn.solving.solution import Solution


def solve(
    kind: Annotated[
        str,
        typer.Argument(help=f"One of {', '.join(names.KINDS)}."),
    ],
    a: Annotated[str, typer.Argument(metavar="A", help="The matrix: .npy, .npz, .csv or .mtx.")],
    b: Annotated[str, typer.Argument(help="The target or labels; rows are a batch.")],
    lam: Annotated[float | None, typer.Option(help="Weight of the penalty.")] = None,
    lam2: Annotated[float | None, typer.Option(help="Weight of the elastic net's squares.")] = None,
    groups: Annotated[str | None, typer.Option(help="File: each coordinate's group.")] = None,
    weights: Annotated[str | None, typer.Option(help="File: weights of the penalty.")] = None,
    l1_ratio: L1Ratio = None,
    l1_weights: Annotated[str | None, typer.Option(help="File: weights of the l1 part.")] = None,
    delta: Annotated[
        float | None, typer.Option(help="The error beyond which Huber's loss is a line.")
    ] = None,
    radius: Annotated[
        float | None, typer.Option(help="Sum of x on the simplex; 1 by default.")
    ] = None,
    classes: Classes = None,
    optimizer: Optimizer = "auto",
    engine: Engine = None,
    tol: Tol = 1e-6,
    max_iter: MaxIter = 1000,
    time_limit: Annotated[float | None, typer.Option(help="Most seconds.")] = None,
    x0: Annotated[str | None, typer.Option("--x0", help="File: where to start.")] = None,
    dtype: Dtype = None,
    device: Annotated[str, typer.Option(help="Where to compute.")] = "cpu",
    out: Annotated[str | None, typer.Option(help="Write x here, .npy or .csv.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, with x unless there is --out.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print no table.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Write to --out even if that is an input.")
    ] = False,
) -> int:
    """Solve a problem, or a batch of them, whose arrays are in files.

    A is (m, n), or (B, m, n) for a batch; b is (m,) or (B, m).

    FILE.npz:NAME names one array of an .npz file that holds several.
    """
    options = {"lam": lam, "lam2": lam2, "groups": groups, "weights": weights}
    options |= {"delta": delta, "radius": radius, "classes": classes}
    options |= {"l1_ratio": l1_ratio, "l1_weights": l1_weights}
    settings: dict[str, Any] = {
        "optimizer": optimizer,
        "engine": engine,
        "tol": tol,
        "max_iter": max_iter,
        "time_limit": time_limit,
        "x0": x0,
        "dtype": dtype,
        "device": device,
        "out": out,
    }
    checks.check_solve(kind, a, b, options, force=force, **settings)
    from proxlearn.cli.solve_job import solve_files

    solution = solve_files(kind, a, b, options, **settings)
    _show_solution(solution, as_json, quiet, with_x=out is None)
    if out is not None and not (as_json or quiet):
        print(f"wrote {out}")
    return 0 if solution.solved else 1


def _show_solution(solution: "Solution", as_json: bool, quiet: bool, with_x: bool) -> None:
    """Print a solution as a table or as JSON, and a warning for each status but SOLVED."""
    from rich.console import Console

    from proxlearn.cli.solution_table import solution_table
    from proxlearn.cli.solve_job import to_json

    if as_json:
        print(json.dumps(to_json(solution, with_x), allow_nan=False))
    elif not quiet:
        Console().print(solution_table(solution))
    for status in sorted(set(solution.status) - {"SOLVED"}):
        count, total = solution.status.count(status), len(solution.status)
        which = f"{count} of {total} instances: " if total > 1 else ""
        print(f"warning: {which}{status}. {status.advice}", file=sys.stderr)
