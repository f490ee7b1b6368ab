"""The build, what an installation consists of, and the commands that the pages name."""

import re
import subprocess
import sys
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
PYPROJECT = (ROOT / "pyproject.toml").read_text("utf-8")


def tool(name):
    """A script in tools/ as a module."""
    spec = spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def backend():
    return tool("build_backend")


def tracked():
    """The files below src that git tracks, relative to src."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so there is no list of files to compare with")
    listed = subprocess.run(
        ["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {name.removeprefix("src/") for name in listed.stdout.split()}


def test_every_file_of_the_package_is_installed():
    sources = {f for f in tracked() if f.endswith((".pyx", ".pxi", ".h", "meson.build"))}
    installed = set(tool("package_files").package_files())
    assert tracked() - sources <= installed
    assert {"proxlearn/py.typed", "proxlearn/zoo/lasso.safetensors"} <= installed


def test_leftovers_beside_the_sources_are_not_installed(tmp_path, monkeypatch):
    package = tmp_path / "proxlearn"
    (package / "core" / "__pycache__").mkdir(parents=True)
    for name in ("a.py", "a.json", "core/k.pyx", "core/k.cpython-311.so", "core/meson.build"):
        (package / name).touch()
    (package / "core" / "__pycache__" / "a.cpython-311.pyc").touch()
    (package / ".a.py.swp").touch()
    lister = tool("package_files")
    monkeypatch.setattr(lister, "SOURCE", tmp_path)
    assert lister.package_files() == ["proxlearn/a.json", "proxlearn/a.py"]


@pytest.mark.parametrize(
    ("programs", "variable", "lacks"),
    [
        ([], "", True),
        (["gcc"], "", False),
        ([], "my-compiler", False),
        (["python3"], "", True),
    ],
)
def test_a_machine_without_a_compiler_is_recognised(
    programs, variable, lacks, backend, tmp_path, monkeypatch
):
    for name in programs:
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", variable)
    assert backend.lacks_compiler() == lacks
    assert ("ziglang" in backend.requirements()) == lacks


def test_a_machine_without_a_compiler_gets_one_line(tmp_path):
    script = ROOT / "tools" / "build_backend.py"
    done = subprocess.run(
        [sys.executable, script, "--requirements"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert "ziglang" in done.stdout.split()
    assert done.stderr.startswith("There is no C compiler here (cc, gcc, clang): taking the one in")
    assert done.stderr.count("\n") == 1


def test_missing_headers_of_python_are_one_line(backend, tmp_path, monkeypatch):
    monkeypatch.setattr(backend.sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(SystemExit, match="apt install python3-dev"):
        backend.prepare_compiler()


def test_an_editable_install_is_a_path_without_an_import_hook(backend, tmp_path):
    wheel = tmp_path / "proxlearn-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("_proxlearn_editable_loader.py", "hook")
        archive.writestr("proxlearn-editable.pth", "import _proxlearn_editable_loader")
        archive.writestr("proxlearn-1.dist-info/METADATA", "Name: proxlearn\n")
        archive.writestr("proxlearn-1.dist-info/RECORD", "")
    backend.replace_hook(wheel)
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read("proxlearn.pth").decode().strip() == str(ROOT / "src")
        record = archive.read("proxlearn-1.dist-info/RECORD").decode().splitlines()
        assert sorted(row.split(",")[0] for row in record) == sorted(archive.namelist())
    assert [row.split(",")[0] for row in record] == [
        "proxlearn-1.dist-info/METADATA",
        "proxlearn.pth",
        "proxlearn-1.dist-info/RECORD",
    ]


def test_every_target_that_a_text_names_exists():
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.M))
    (phony,) = re.findall(r"^\.PHONY: (.+)$", MAKEFILE, re.M)
    assert set(phony.split()) == targets
    command = re.compile(r"(?:^ +|['`]|stage .+ |\{ )make ([a-z-]+)", re.M)
    texts = [*PAGES, ROOT / ".ci" / "run", *(ROOT / "src").rglob("*.py")]
    named = {
        (file.name, target) for file in texts for target in command.findall(file.read_text("utf-8"))
    }
    some = {("README.md", "demo"), ("run", "test"), ("run", "wheel"), ("install.md", "build")}
    assert some <= named
    assert not {(name, target) for name, target in named if target not in targets}


def names(requirements):
    """The packages that a list of requirements names, in lower case."""
    return {re.match(r"[\w-]+", entry)[0].lower() for entry in requirements}


def test_messages_name_packages_that_an_index_has():
    known = names(re.findall(r'"([\w-]+[^"]*)"', PYPROJECT.split("[project.scripts]")[0]))
    known |= {"pillow", "celer"}  # a dependency of matplotlib; installed by make setup
    known -= {"proxlearn"}
    assert {"torch", "scikit-learn", "zarr", "spams-bin"} <= known
    found = {
        (file.relative_to(ROOT).as_posix(), package)
        for file in [*PAGES, *(ROOT / "src").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
        for package in re.findall(
            r"pip install\s+(?:--no-deps )?(?:-e )?['\"]?([\w./*-]+)", file.read_text("utf-8")
        )
    }
    here = {(file, package) for file, package in found if re.match(r"\.|dist/", package)}
    assert ("README.md", ".") in here
    assert ("src/proxlearn/evaluation/report/curves.py", "matplotlib") in found
    assert {package.lower() for _, package in found - here} <= known


def test_no_text_asks_for_an_extra_of_a_package_that_no_index_has():
    texts = [*PAGES, *(ROOT / "src").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    assert not [file.name for file in texts if "proxlearn[" in file.read_text("utf-8")]


def test_the_set_up_takes_wheels_only():
    (install,) = re.findall(r"^INSTALL := ((?:.*\\\n)*.*)$", MAKEFILE, re.M)
    assert "--only-binary :all:" in install
    commands = re.findall(r"^\t(.*pip install.*)$", MAKEFILE, re.M)
    assert not commands, f"set-up commands beside INSTALL: {commands}"
