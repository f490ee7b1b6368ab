"""Fixtures that several suites share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder():
    """The folder with the real data sets; the test is skipped, with the reason, without one."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("PROXLEARN_DATA") or beside)
    if not (folder / "spambase.csv").is_file():
        pytest.skip("no real data: set PROXLEARN_DATA to a folder with spambase.csv")
    return folder
