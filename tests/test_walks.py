"""The two walks of docs/architecture.md: the files they name are entered, in that order."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import proxlearn as pl
from proxlearn.cli import main

PACKAGE = Path(pl.__file__).parent
PAGE = Path(__file__).resolve().parents[1] / "docs" / "architecture.md"
SECTION = PAGE.read_text("utf-8").partition("## Two walks")[2].partition("\n## ")[0]
_, SOLVE, TRAIN = re.split(r"^`p.*:$", SECTION, flags=re.M)


def named(walk):
    """The files that a walk names, in its order."""
    return list(dict.fromkeys(re.findall(r"`([\w/]+\.(?:py|pyx|pxi))`", walk)))


def entered(run):
    """The files of the package whose functions a call enters, in the order of their first call.

    The call is made once before, so that imports are done.
    """
    run()
    files = {}

    def note(frame, event, argument):
        path = frame.f_code.co_filename
        if event == "call" and frame.f_code.co_name != "<module>" and path.startswith(str(PACKAGE)):
            files.setdefault(Path(path).relative_to(PACKAGE).as_posix())

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return list(files)


def solve():
    """A of float32: small data of float64 take the shorter way that the page names."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20, 30)).astype(np.float32)
    assert pl.solve(pl.lasso(A, rng.standard_normal(20), 2.0)).solved


def train(folder):
    sizes = "--set m=10 --set n=20 --set nonzeros=2 --steps 1 --batch 2 --horizon 5 --unroll 5"
    out = f"--out {folder / 'mine.safetensors'}"
    assert main(f"train gaussian-lasso {sizes} {out}".split()) == 0


@pytest.mark.parametrize("walk", [SOLVE, TRAIN], ids=["solve", "train"])
def test_a_walk_names_at_most_ten_files_that_exist(walk):
    assert 5 < len(named(walk)) <= 10
    assert not [file for file in named(walk) if not (PACKAGE / file).is_file()]


@pytest.mark.parametrize("name", ["solve", "train"])
def test_the_files_are_entered_in_the_order_of_the_walk(name, tmp_path, capsys):
    found = entered(solve if name == "solve" else lambda: train(tmp_path))
    walk = [file for file in named(SOLVE if name == "solve" else TRAIN) if file.endswith(".py")]
    assert not set(walk) - set(found)
    assert walk == [file for file in found if file in walk]
