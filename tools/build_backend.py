"""Build proxlearn: meson-python, with two additions (the ``build-backend`` of pyproject.toml).

A machine without a C compiler gets the one in PyPI's ziglang. An editable install is a plain path
to ``src`` with links to the compiled modules, instead of meson-python's import hook, which would
start a build in every process that imports the package; ``make build`` brings the modules up to
date.

As a script it builds the compiled modules in place, or lists what a build needs:

    python tools/build_backend.py [native|all|base|v2|v3|v4]
    python tools/build_backend.py --requirements
"""

import ast
import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / str(sys.implementation.cache_tag)
CORE = Path("src/proxlearn/core")
MESON = (sys.executable, "-m", "mesonbuild.mesonmain")
"""meson builds for the Python that runs it."""
Settings = dict[str, object] | None


def lacks_compiler() -> bool:
    """Whether no C compiler is named by CC or found; on Windows meson looks for one itself."""
    found = os.environ.get("CC") or any(map(shutil.which, ("cc", "gcc", "clang")))
    return not found and sys.platform != "win32"


def prepare_compiler() -> None:
    """Let meson use ziglang's compiler where there is no other, and check for Python's headers."""
    headers = Path(sysconfig.get_path("include"))
    if not (headers / "Python.h").is_file():
        raise SystemExit(
            f"Python's C headers are not in {headers}; install them, on Debian or Ubuntu "
            "with: apt install python3-dev"
        )
    if lacks_compiler():
        os.environ["CC"] = f"{sys.executable} -m ziglang cc"
        os.environ["AR"] = f"{sys.executable} -m ziglang ar"


def requirements() -> list[str]:
    """What a build without isolation needs to have installed, ninja and a compiler included."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    match = re.search(r"^requires = (\[.*?^\])", text, re.MULTILINE | re.DOTALL)
    assert match, "pyproject.toml has no list of build requirements"
    return [*ast.literal_eval(match[1]), "ninja", *(["ziglang"] if lacks_compiler() else [])]


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    import mesonpy

    more = ["ziglang"] if lacks_compiler() else []
    return [*mesonpy.get_requires_for_build_wheel(config_settings), *more]


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    return get_requires_for_build_wheel(config_settings)


def get_requires_for_build_sdist(config_settings: Settings = None) -> list[str]:
    import mesonpy

    return mesonpy.get_requires_for_build_sdist(config_settings)


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    import mesonpy

    prepare_compiler()
    return mesonpy.build_sdist(sdist_directory, config_settings)


def build_wheel(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    import mesonpy

    prepare_compiler()
    return mesonpy.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    """A wheel whose only content is the path to src, after a build of the modules in place."""
    import mesonpy

    build_in_place()
    settings = {**(config_settings or {}), "build-dir": str(BUILD)}
    name = mesonpy.build_editable(wheel_directory, settings, metadata_directory)
    replace_hook(Path(wheel_directory, name))
    return name


def replace_hook(wheel: Path) -> None:
    """Replace meson-python's import hook in an editable wheel by a path file."""
    with zipfile.ZipFile(wheel) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    (record,) = (name for name in content if name.endswith(".dist-info/RECORD"))
    metadata = Path(record).parent.name
    content = {name: data for name, data in content.items() if Path(name).parts[0] == metadata}
    content["proxlearn.pth"] = f"{ROOT / 'src'}\n".encode()
    del content[record]
    rows = [f"{name},sha256={digest(data)},{len(data)}" for name, data in content.items()]
    content[record] = "\n".join([*rows, f"{record},,", ""]).encode()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data)


def digest(data: bytes) -> str:
    """The hash of a file as a wheel's RECORD has it."""
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def build_in_place(isa: str = "") -> None:
    """Build the modules and link them into src; ``isa`` changes which ones, native at first."""
    scripts = sysconfig.get_path("scripts")
    os.environ["PATH"] = os.pathsep.join([scripts, os.environ.get("PATH", "")])
    if not (BUILD / "build.ninja").is_file():
        prepare_compiler()
        run(*MESON, "setup", str(BUILD), str(ROOT), f"-Disa={isa or 'native'}")
    elif isa:
        run(*MESON, "configure", str(BUILD), f"-Disa={isa}")
    run("ninja", "-C", str(BUILD))
    link()


def run(*command: str) -> None:
    """Run a build tool; its output is shown only if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        advice = "if the checkout or the compiler has moved, run make clean first"
        raise SystemExit(f"{done.stdout}\n{' '.join(command)} failed; {advice}")


def link() -> None:
    """Link the modules that the build is configured for beside the sources, and no others."""
    targets = json.loads((BUILD / "meson-info" / "intro-targets.json").read_text(encoding="utf-8"))
    suffix = str(sysconfig.get_config_var("EXT_SUFFIX"))
    built = [Path(f) for target in targets for f in target["filename"] if f.endswith(suffix)]
    links = {ROOT / CORE / path.name: os.path.relpath(path, ROOT / CORE) for path in built}
    for place in (ROOT / CORE).glob(f"*{suffix}"):
        if not place.is_symlink() or os.readlink(place) != links.get(place):
            place.unlink()
    for place, target in links.items():
        if not place.is_symlink():
            place.symlink_to(target)


if __name__ == "__main__":
    if sys.argv[1:] == ["--requirements"]:
        if lacks_compiler():
            said = "There is no C compiler here (cc, gcc, clang): taking the one in package ziglang"
            print(said, file=sys.stderr)
        print("\n".join(requirements()))
    else:
        build_in_place(*sys.argv[1:])
