"""Options that several commands share."""

from typing import Annotated

import typer

Count = Annotated[int, typer.Option(min=1, help="Number of problems.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the problems.")]
Sizes = Annotated[
    list[str] | None, typer.Option("--set", help="NAME=VALUE of the family, such as m=100.")
]
