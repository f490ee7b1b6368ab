"""``proxlearn compare``: optimizers side by side on problems of one family."""

from typing import TYPE_CHECKING, Annotated

import typer

from proxlearn import checks
from proxlearn.cli.options import Count, Seed, Sizes
from proxlearn.cli.progress import watching
from proxlearn.filenames import check_folder

if TYPE_CHECKING:
    from proxlearn.evaluation.comparison import Comparison


def compare(
    family: Annotated[str, typer.Argument(help="Name of a family, such as gaussian-lasso.")],
    optimizers: Annotated[
        str, typer.Option(help="Names or files of optimizers, with commas between them.")
    ] = "ista,fista,fista-restart",
    count: Count = 64,
    max_iter: Annotated[int, typer.Option(min=1, help="Iterations of each.")] = 300,
    seed: Seed = 0,
    sizes: Sizes = None,
    report: Annotated[str | None, typer.Option(help="Folder for page, plot and rows.")] = None,
) -> None:
    """Run several optimizers on problems of one family and print a table.

    --report writes a page with plots as well.
    """
    names = tuple(name.strip() for name in optimizers.split(",") if name.strip())
    checks.check_comparison(family, names, seed, sizes or [], report)
    from proxlearn.evaluation.competitors import notes
    from proxlearn.evaluation.family_comparison import compare_family, family_card
    from proxlearn.evaluation.report import curves, page, rows

    if report is not None:
        curves.require_matplotlib()
    with watching() as watch:
        result = compare_family(family, names, count, max_iter, seed, watch, sizes or ())
    show_comparison(result)
    for line in notes(names, family):
        print(line)
    if report is not None:
        folder = check_folder(report)
        card = family_card(family, names, count, max_iter, seed, sizes or ())
        wrote = page.write_comparison(folder, result, card)
        rows.save(result, folder / "rows.csv")
        print(f"wrote {wrote}, {folder / 'convergence.png'} and {folder / 'rows.csv'}")


def show_comparison(result: "Comparison") -> None:
    """Print the table of a comparison."""
    from rich.console import Console

    from proxlearn.evaluation.family_comparison import LEVELS
    from proxlearn.evaluation.report.tables import comparison_table

    Console().print(comparison_table(result, LEVELS))
