"""``proxlearn report``: the page of results that are already there."""

import os
from typing import Annotated

import typer

from proxlearn.errors import InputError
from proxlearn.filenames import check_folder, shown


def report(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder with .parquet rows.")],
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "proxlearn: results",
    only: Annotated[
        str | None,
        typer.Option(help="Show one experiment alone, in DIR/NAME.html.", metavar="NAME"),
    ] = None,
) -> None:
    """Write the page and the pictures of the results in a folder, without running anything."""
    if not os.path.isdir(folder):
        raise InputError(f"{shown(folder)} is not a folder; expected one with .parquet files in it")
    check_folder(folder)
    from proxlearn.evaluation.report.page import write_page

    print(f"wrote {write_page(folder, title=title, only=only)}")
