"""Check a wheel as its user meets it: files, installation, README's example, removal.

python .ci/check_wheel.py dist/proxlearn-*.whl
"""

import os
import re
import subprocess
import sys
import tempfile
import zipfile
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILT = re.compile(r"proxlearn/core/_(?:kernel|network)_(\w+)\.[^/]*\.(so|pyd)")
"""The compiled modules, which are in the wheel and not in git."""
SOURCES = (".pyx", ".pxi", ".pxd", ".c", ".h", "meson.build")
"""The endings of what is in git below src and not in the wheel."""


def check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise SystemExit(f"The wheel is wrong: {otherwise}")


def check_files(wheel: Path) -> list[str]:
    """Compare the wheel's files with those in git; return the instruction sets it was built for."""
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    listed = subprocess.run(
        ["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    expected = {name.removeprefix("src/") for name in listed if not name.endswith(SOURCES)}
    built = {name: match[1] for name in names if (match := BUILT.fullmatch(name))}
    check(bool(built), "it has no compiled module")
    missing, extra = expected - names, names - built.keys() - expected
    check(not missing, f"it lacks {sorted(missing)}")
    check(not extra, f"it has {sorted(extra)}, which are not in git")
    return sorted(set(built.values()))


def run(*command: object, folder: Path, home: Path | None = None, **variables: str) -> str:
    """The standard output of a command that must succeed, run in a folder."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PROXLEARN_")}
    env |= {"HOME": str(home)} if home else {}
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=env | variables, stdout=subprocess.PIPE, text=True
    )
    check(done.returncode == 0, f"{' '.join(map(str, command))} failed")
    return done.stdout


def files(environment: Path) -> set[Path]:
    return {path.resolve() for path in environment.rglob("*") if path.is_file()}


def check_example(python: Path, work: Path, builds: list[str]) -> None:
    """Run README's first example away from the checkout, with each build that runs here."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    code, expected = (
        re.findall(rf"```{language}\n(.*?)```", readme, re.DOTALL)[0]
        for language in ("python", "text")
    )
    folder, home = work / "folder", work / "home"
    folder.mkdir()
    home.mkdir()
    asked = "from proxlearn import core; print(*core.supported())"
    supported = run(python, "-I", "-c", asked, folder=folder, home=home).split()
    for build in (build for build in builds if build in supported):
        printed = run(python, "-I", "-c", code, folder=folder, home=home, PROXLEARN_ISA=build)
        check(printed == expected, f"README's first example printed {printed!r} with {build}")
        print(f"README's first example runs with the core for {build}")
    written = [*folder.rglob("*"), *home.rglob("*")]
    check(not written, f"the example left {written}")


def check_removal(python: Path, environment: Path, before: set[Path]) -> None:
    """After pip uninstall, every file belongs to another package, or was there before."""
    run(python, "-m", "pip", "uninstall", "--quiet", "-y", "proxlearn", folder=environment)
    after = files(environment)
    (site,) = environment.glob("lib/python*/site-packages")
    owned = {
        Path(str(dist.locate_file(file))).resolve()
        for dist in metadata.distributions(path=[str(site)])
        for file in dist.files or ()
    }
    left = {
        path
        for path in after - before - owned
        if not (path.suffix == ".pyc" and source_of(path) in owned | before)
    }
    check(not left, f"pip uninstall left {sorted(map(str, left))}")
    print("pip uninstall leaves the dependencies and nothing else")


def source_of(compiled: Path) -> Path:
    """The .py file of a file in __pycache__."""
    return compiled.parents[1] / (compiled.name.split(".")[0] + ".py")


def main(wheel: Path) -> None:
    builds = check_files(wheel)
    print(f"{wheel.name}: the files in git, and the core for {', '.join(builds)}")
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary).resolve()
        environment = work / "environment"
        run(sys.executable, "-m", "venv", environment, folder=work)
        before = files(environment)
        python = environment / "bin" / "python"
        pip = (python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:")
        run(*pip, "-c", ROOT / "constraints.txt", wheel.resolve(), folder=work)
        run(python, "-m", "pip", "check", folder=work)
        print(run(environment / "bin" / "proxlearn", "--version", folder=work).strip())
        check_example(python, work, builds)
        check_removal(python, environment, before)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
