"""``proxlearn tune``: hyper-parameters for a family, chosen on validation problems."""

import shlex
import sys
from typing import Annotated

import typer

from proxlearn import checks, names
from proxlearn.filenames import check_output


def tune(
    optimizer: Annotated[str, typer.Argument(help="adam or adamhd.")],
    family: Annotated[str, typer.Argument(help="Name of a family, such as gaussian-lasso.")],
    values: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE,VALUE,... in place of the default grid."),
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="Number of validation problems.")] = 64,
    max_iter: Annotated[int, typer.Option(min=1, help="Iterations of each.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the validation problems.")] = 0,
    out: Annotated[str | None, typer.Option(help="Write the record here, .json.")] = None,
) -> None:
    """Try a grid of hyper-parameters on validation problems and print the best ones.

    The score is the mean over the iterations of log10 of the mean relative gap.
    """
    checks.check_choice("optimizer to tune", optimizer, names.TUNABLE)
    checks.check_choice("family", family, names.FAMILIES)
    if out is not None:
        check_output(out, (".json",))
    from rich.console import Console
    from rich.table import Table

    from proxlearn.cli.progress import watching
    from proxlearn.evaluation import tuning

    grid = tuning.parse_grid(values) if values else None
    with watching() as watch:
        found = tuning.tune(
            optimizer, family, grid, count=count, iterations=max_iter, seed=seed, watch=watch
        )
    title = f"{optimizer} on {count} problems of {family}, the best first"
    table = Table(title=title, min_width=len(title))
    for column in found["trials"][0]:
        table.add_column(column, justify="right")
    for trial in sorted(found["trials"], key=lambda trial: trial["score"])[:10]:
        table.add_row(*(f"{value:g}" for value in trial.values()))
    Console().print(table)
    for name in found["edge"]:
        print(
            f"warning: {name} = {found['chosen'][name]:g} is at an end of its range; "
            f"widen it with --set {name}=...",
            file=sys.stderr,
        )
    if out is not None:
        words = ["proxlearn", "tune", optimizer, family, "--count", str(count)]
        words += ["--max-iter", str(max_iter), "--seed", str(seed)]
        words += [word for value in values or [] for word in ("--set", value)]
        tuning.save({"command": shlex.join(words), **found}, out)
        print(f"wrote {out}")
