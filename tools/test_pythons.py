"""Build the core and run the tests that need no PyTorch with every promised Python that is here.

Looks for python3.10 to python3.13 in PATH and among the versions of pyenv. Each gets an environment
of its own in build/pythons, which is kept; ``make test-pythons`` calls this.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.10", "3.11", "3.12", "3.13")
TESTS = (
    "tests/core/test_kernel.py",
    "tests/core/test_glm.py",
    "tests/core/test_losses.py",
    "tests/core/test_batches.py",
    "tests/core/test_softmax.py",
    "tests/test_sklearn.py",
    "tests/test_files.py",
)
LEARNS = "tests/test_sklearn.py::test_a_dictionary_is_learned"
"""Of these the one test that needs PyTorch: K-SVD."""
ITERATORS = "ignore::pytest.PytestRemovedIn10Warning"
"""scikit-learn 1.7, the last one for Python 3.10, gives pytest iterators in place of lists."""
NEEDED = ("pytest", "pytest-xdist", "hypothesis", "scikit-learn")


def interpreter(version: str) -> str | None:
    """The path of a Python of that version; None where there is none."""
    found = shutil.which(f"python{version}")
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    kept = sorted(pyenv.glob(f"{version}.*/bin/python"))
    for python in [*([found] if found else []), *map(str, kept)]:
        asked = [python, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"]
        done = subprocess.run(asked, capture_output=True, text=True)
        if done.returncode == 0 and done.stdout.strip() == version:
            return python
    return None


def check(version: str, python: str) -> bool:
    """Install the package and run the tests; True where both succeed."""
    home = ROOT / "build" / "pythons" / version
    inside = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not inside.exists():
        subprocess.run([python, "-m", "venv", str(home)], check=True)
    install = [str(inside), "-m", "pip", "install", "--quiet", "-c", "constraints.txt"]
    native = ["--config-settings=setup-args=-Disa=native"]
    tests = [str(inside), "-m", "pytest", "-q", "-W", ITERATORS, "-m", "not slow"]
    steps = [
        [*install, "--only-binary", ":all:", *NEEDED],
        [*install, *native, "."],
        [*tests, "--deselect", LEARNS, *TESTS],
    ]
    return all(subprocess.run(step, cwd=ROOT).returncode == 0 for step in steps)


def main(versions: list[str]) -> int:
    """Check these versions, all by default; the exit code is 1 where one that is here fails."""
    results = {}
    for version in versions or VERSIONS:
        python = interpreter(version)
        print(f"=== Python {version}: {python or 'not installed'}", flush=True)
        results[version] = "not installed" if python is None else check(version, python)
    for version, passed in results.items():
        words = {True: "passed", False: "FAILED"}
        print(f"Python {version}: {passed if isinstance(passed, str) else words[passed]}")
    return 1 if False in results.values() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
