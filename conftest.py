"""Tests do not run with a compiled core that is older than its sources; slow examples."""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from _pytest.doctest import DoctestItem


def pytest_sessionstart(session):
    """Ask ninja, which built the core in this checkout, whether it has anything to do."""
    build = Path(__file__).parent / "build" / str(sys.implementation.cache_tag)
    ninja = shutil.which("ninja", path=sysconfig.get_path("scripts")) or shutil.which("ninja")
    worker = hasattr(session.config, "workerinput")  # of pytest-xdist; the main process has asked
    if worker or ninja is None or not (build / "build.ninja").is_file():
        return
    asked = subprocess.run([ninja, "-C", build, "-n"], capture_output=True, text=True)
    if "no work to do" not in asked.stdout:
        pytest.exit("The compiled core is older than its sources: run make build", returncode=2)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the examples of `evaluation`, which compare optimizers, as slow."""
    for item in items:
        if isinstance(item, DoctestItem) and item.name.startswith("proxlearn.evaluation."):
            item.add_marker("slow")
