"""``proxlearn report``: the page of results that are already there."""

from typing import Annotated

import typer


def report(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder with .parquet rows.")],
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "proxlearn: results",
) -> None:
    """Write the page and the pictures of the results in a folder, without running anything."""
    from proxlearn.report.page import write_page

    print(f"wrote {write_page(folder, title=title)}")
