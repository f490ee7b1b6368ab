"""Fixtures that several suites share."""

import gc
import os
import sys
from pathlib import Path

import hypothesis
import pytest

# Property tests draw the same examples in every normal run, so that a run takes as long as the last
# and fails only for what has changed. HYPOTHESIS_PROFILE=thorough draws new and many more.
hypothesis.settings.register_profile("normal", deadline=None, max_examples=80, derandomize=True)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=5000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "normal"))


def pytest_collection_finish():
    """Exempt what imports made from the tests' garbage collections, which would visit it all."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def no_progress_lines(monkeypatch):
    """What a command prints must not depend on how busy the machine is."""
    monkeypatch.setattr("proxlearn.cli.progress.FIRST", float("inf"))


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
    before = threads()
    yield
    if before is not None and threads() != before:
        sys.modules["torch"].set_num_threads(before)


def threads():
    """The number of PyTorch threads; None in a process that has not imported PyTorch."""
    torch = sys.modules.get("torch")
    return None if torch is None else torch.get_num_threads()


@pytest.fixture(scope="session")
def client():
    """A cluster of Dask in this process: a scheduler and one worker with two threads."""
    from proxlearn.scale.cluster import connected

    with connected(None, 2, threads=True) as found:
        yield found


@pytest.fixture
def in_threads(monkeypatch, client):
    """Let ``solve-batch`` use the cluster in this process instead of one with processes."""
    from contextlib import nullcontext

    monkeypatch.setattr("proxlearn.scale.cluster.connected", lambda *_: nullcontext(client))
