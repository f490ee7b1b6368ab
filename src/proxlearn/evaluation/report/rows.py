"""Long-format results as CSV."""

import csv
from pathlib import Path

from proxlearn.evaluation.comparison import Comparison, Row
from proxlearn.files import replacing


def save(result: Comparison, path: Path) -> None:
    """Write a line for each optimizer, instance and iteration, whole or not at all."""
    with (
        replacing(path) as temporary,
        temporary.open("x", newline="", encoding="utf-8") as stream,
    ):
        writer = csv.writer(stream)
        writer.writerow(Row._fields)
        writer.writerows(result.rows())
