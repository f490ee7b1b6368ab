"""``proxlearn models``: the shipped models and what they were measured to do."""

from typing import Annotated

import typer


def models(
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show all tests and settings of each model.")
    ] = False,
) -> None:
    """List the shipped models: what they were trained on and how many iterations they need."""
    from proxlearn.evaluation.report.tables import models_text

    print(models_text(verbose))
