"""The compiled module that is loaded, and the choice of it."""

import os
import subprocess
import sys

import pytest

from proxlearn import core
from proxlearn.core import processor


def imported(isa):
    """What importing the core prints with PROXLEARN_ISA set to a name."""
    return subprocess.run(
        [sys.executable, "-c", "from proxlearn import core; print(core.kernel.__name__)"],
        env={**os.environ, "PROXLEARN_ISA": isa},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_build_is_chosen_by_name():
    name = core.kernel.__name__
    assert imported(name.rpartition("_")[2]).stdout.strip() == name


@pytest.mark.parametrize(
    ("isa", "said"),
    [
        (
            "v9",
            "ImportError: PROXLEARN_ISA is 'v9', which this processor cannot run; choose one of",
        ),
        (
            "base",
            "ImportError: the compiled core of proxlearn is not built for base; in a checkout",
        ),
    ],
)
def test_a_build_that_is_not_there_is_one_line(isa, said):
    done = imported(isa)
    if isa == "base" and core.kernel.__name__.endswith("_base"):
        assert done.returncode == 0
    else:
        assert done.stderr.splitlines()[-1].startswith(said)


@pytest.mark.parametrize(
    ("features", "builds"),
    [
        ({"X86_V2": True, "X86_V3": True, "X86_V4": True}, ["v4", "v3", "v2", "base"]),
        ({"X86_V2": True, "X86_V3": True, "X86_V4": False}, ["v3", "v2", "base"]),
        (
            # the names of NumPy 1.26
            dict.fromkeys(["SSSE3", "SSE41", "SSE42", "POPCNT", "AVX2", "FMA3", "F16C"], True)
            | {"AVX512F": True, "AVX512_SKX": False},
            ["v3", "v2", "base"],
        ),
        (dict.fromkeys(["SSSE3", "SSE41", "SSE42", "POPCNT", "AVX"], True), ["v2", "base"]),
        ({"NEON": True, "ASIMD": True}, ["base"]),
    ],
)
def test_the_best_build_that_a_processor_runs_comes_first(features, builds, monkeypatch):
    monkeypatch.setattr(processor, "processor_features", lambda: features)
    assert processor.supported() == builds
