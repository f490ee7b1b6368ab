"""``proxlearn reproduce``: the paper's figures and tables, run again."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from proxlearn import checks


def reproduce(
    what: Annotated[
        str, typer.Argument(metavar="list|NAME|all|claims", help="An experiment, or one of these.")
    ],
    scale: Annotated[
        str, typer.Option(help="quick (a minute or two each) or paper (full size, hours).")
    ] = "quick",
    out: Annotated[str, typer.Option(help="Folder for rows and cards.")] = "out",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the problems.")] = 0,
    count: Annotated[
        int | None, typer.Option(min=1, help="Another number of instances than the scale's.")
    ] = None,
    iterations: Annotated[
        int | None, typer.Option(min=1, help="Another number of iterations than the scale's.")
    ] = None,
    optimizers: Annotated[
        str | None, typer.Option(help="Other optimizers, with commas between them.")
    ] = None,
) -> int:
    """Run an experiment of the paper again: rows in NAME.parquet, what they are in NAME.json.

    OUT/index.html then shows all that OUT holds.

    A run that was interrupted goes on, and finished parts are not repeated: they are in
    OUT/.cache. 'claims' only writes the table of the paper's figures beside those of OUT's rows.
    """
    options: dict[str, Any] = {"seed": seed, "count": count, "iterations": iterations}
    if optimizers is not None:
        options["optimizers"] = [n.strip() for n in optimizers.split(",") if n.strip()]
    checks.check_experiment(what, scale, out, options.get("optimizers"))
    checks.check_seed(seed)
    from proxlearn import experiments
    from proxlearn.report import curves

    if what == "list":
        return _list()
    curves.require_matplotlib()
    names = {"all": experiments.NAMES, "claims": ()}.get(what, (what,))
    code = _run(names, scale, out, options)
    return max(code, _claims(Path(out), what == "claims"))


def _list() -> int:
    from rich.console import Console
    from rich.table import Table

    from proxlearn import experiments
    from proxlearn.experiments.methods import missing

    table = Table()
    for column in ("name", "paper", "what", "missing models"):
        table.add_column(column)
    for name in experiments.NAMES:
        e = experiments.get(name)
        table.add_row(name, e.paper_figure, e.title, ", ".join(missing(e)))
    Console().print(table)
    return 0


def _run(names: tuple[str, ...], scale: str, out: str, options: dict[str, Any]) -> int:
    """Each experiment in turn; with several, one that cannot run does not stop the others."""
    from proxlearn import experiments
    from proxlearn.cli import _watching
    from proxlearn.errors import InputError
    from proxlearn.experiments.runner import run

    failed = 0
    for name in names:
        try:
            with _watching() as watch:
                outcome = run(experiments.get(name), scale, out, watch=watch, **options)
        except InputError as error:
            if len(names) == 1:
                raise
            print(f"error: {error}", file=sys.stderr)
            failed += 1
            continue
        parts = f"{outcome.computed} parts computed, {outcome.reused} from the cache"
        print(f"wrote {outcome.rows} and {outcome.card} ({parts})")
    return 1 if failed else 0


def _claims(folder: Path, show: bool) -> int:
    """The table of the paper's figures from all rows in the folder, and the page of them all."""
    from proxlearn.report import claims, verdicts
    from proxlearn.report.page import write_page

    found = claims.judge(folder)
    verdicts.save(found, folder)
    if show:
        from rich.console import Console

        Console().print(verdicts.table(found))
    print(f"wrote {folder / verdicts.FILE}")
    if any(folder.glob("*.parquet")):
        print(f"wrote {write_page(folder)} (open it in a browser)")
    return 0
