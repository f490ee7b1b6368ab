"""``proxlearn reproduce``: the paper's figures and tables, run again."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from proxlearn import checks
from proxlearn.cli.options import Seed


def reproduce(
    what: Annotated[
        str,
        typer.Argument(metavar="list|NAME|all|claims", help="list, an experiment, all, or claims."),
    ],
    scale: Annotated[
        str, typer.Option(help="quick (a minute or two each) or paper (full size, hours).")
    ] = "quick",
    out: Annotated[str, typer.Option(help="Folder for the rows, the card and the page.")] = "out",
    seed: Seed = 0,
    count: Annotated[
        int | None, typer.Option(min=1, help="Number of instances, instead of the scale's.")
    ] = None,
    iterations: Annotated[
        int | None, typer.Option(min=1, help="Number of iterations, instead of the scale's.")
    ] = None,
    optimizers: Annotated[
        str | None,
        typer.Option(help="Optimizers instead of the experiment's, with commas between them."),
    ] = None,
    converged: Annotated[
        float, typer.Option(min=0, help="The gap that 'converged' means in the verdicts.")
    ] = 1e-6,
    keep: Annotated[
        bool, typer.Option(help="Keep the rows that OUT has of other optimizers.")
    ] = False,
) -> int:
    """Run an experiment of the paper again, and write its results and a page.

    'list' names the experiments. OUT/NAME.parquet holds the rows, OUT/NAME.json says what was run,
    and OUT/index.html shows everything in OUT.

    An interrupted run continues where it stopped: finished parts are kept in OUT/.cache. 'claims'
    runs nothing; it compares the statements of the paper with the rows in OUT.
    """
    options: dict[str, Any] = {"seed": seed, "count": count, "iterations": iterations}
    options["keep"] = keep
    if optimizers is not None:
        options["optimizers"] = [n.strip() for n in optimizers.split(",") if n.strip()]
    checks.check_experiment(what, scale, out, options.get("optimizers"))
    checks.check_seed(seed)
    from proxlearn.evaluation import experiments
    from proxlearn.evaluation.report import curves

    if what == "list":
        return _list()
    curves.require_matplotlib()
    names = {"all": experiments.NAMES, "claims": ()}.get(what, (what,))
    code = _run(names, scale, out, options)
    return max(code, _claims(Path(out), what == "claims", converged))


def _list() -> int:
    from rich.console import Console
    from rich.table import Table

    from proxlearn.evaluation import experiments
    from proxlearn.evaluation.experiments.compared_methods import missing

    table = Table()
    for column in ("name", "paper", "what", "models"):
        table.add_column(column)
    for name in experiments.NAMES:
        e = experiments.get(name)
        lacking = len(missing(e))
        table.add_row(name, e.paper_figure, e.title, f"{lacking} not trained" if lacking else "all")
    Console().print(table)
    print("Models that are not trained are left out; the card of a run names them.")
    return 0


def _run(names: tuple[str, ...], scale: str, out: str, options: dict[str, Any]) -> int:
    """Each experiment in turn; with several, one that cannot run does not stop the others."""
    from proxlearn.cli.progress import watching
    from proxlearn.errors import InputError
    from proxlearn.evaluation import experiments
    from proxlearn.evaluation.experiments.runner import run

    failed = 0
    for i, name in enumerate(names, 1):
        title = f"experiment {i} of {len(names)}" if len(names) > 1 else ""
        try:
            with watching(title) as watch:
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


def _claims(folder: Path, show: bool, converged: float) -> int:
    """The table of the paper's figures from all rows in the folder, and the page of them all."""
    from proxlearn.evaluation.report import claims, verdicts
    from proxlearn.evaluation.report.page import write_page

    found = claims.judge(folder, converged)
    verdicts.save(found, folder)
    if show:
        from rich.console import Console

        Console().print(verdicts.table(found))
    print(f"wrote {folder / verdicts.FILE}")
    if any(folder.glob("*.parquet")):
        print(f"wrote {write_page(folder)} (open it in a browser)")
    return 0
