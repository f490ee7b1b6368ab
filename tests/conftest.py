"""Fixtures that several suites share."""

import os
from pathlib import Path

import hypothesis
import pytest
import torch

# Property tests draw the same examples in every normal run, so that a run takes as long as the last
# and fails only for what has changed. HYPOTHESIS_PROFILE=thorough draws new and many more.
hypothesis.settings.register_profile("normal", deadline=None, max_examples=80, derandomize=True)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=5000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "normal"))


@pytest.fixture(autouse=True)
def no_progress_lines(monkeypatch):
    """What a command prints must not depend on how busy the machine is."""
    monkeypatch.setattr("proxlearn.commands.progress.FIRST", float("inf"))


@pytest.fixture(scope="session")
def data_folder():
    """The folder with the real data sets; the test is skipped, with the reason, without one."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("PROXLEARN_DATA") or beside)
    if not (folder / "spambase.csv").is_file():
        pytest.skip("no real data: set PROXLEARN_DATA to a folder with spambase.csv")
    return folder


@pytest.fixture(autouse=True)
def threads_as_before():
    """Give the next test as many PyTorch threads as this one found.

    Otherwise a test that asks for more, itself or through a library, slows the whole rest of the
    run: two workers with two threads each on two cores take several times as long as with one.
    """
    before = torch.get_num_threads()
    yield
    if torch.get_num_threads() != before:
        torch.set_num_threads(before)
