"""Start-up: nothing heavy is imported before it is needed."""

import subprocess
import sys

import pytest

import proxlearn
from proxlearn.cli import app

HEAVY = ["torch", "numpy", "scipy", "sklearn", "pyarrow", "matplotlib", "safetensors", "numba"]


def imported_by(code):
    """The heavy libraries that a fresh Python has imported after the code."""
    report = f"\nimport sys\nprint([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code + report], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_the_package():
    assert imported_by("import proxlearn") == "[]"


def test_the_check_sees_an_import():
    assert "numpy" in imported_by("import proxlearn, numpy")


COMMANDS = [command.name for command in app.registered_commands]


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], []])
def test_the_command_line(arguments):
    assert imported_by(f"from proxlearn.cli import main; main({arguments})") == "[]"


def test_the_help_of_every_command():
    assert len(COMMANDS) >= 9
    calls = "; ".join(f"main(['{name}', '--help'])" for name in COMMANDS)
    assert imported_by(f"from proxlearn.cli import main; {calls}") == "[]"


def test_every_name_is_there_when_asked_for():
    assert all(getattr(proxlearn, name) is not None for name in proxlearn.__all__)
