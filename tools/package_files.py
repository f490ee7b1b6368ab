"""Print the files below src that an installation consists of, apart from compiled modules."""

from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
NOT_INSTALLED = {".pyx", ".pxi", ".pxd", ".c", ".h", ".so", ".pyd", ".pyc"}
"""Sources of the compiled core, and what builds and tests leave beside the sources."""


def package_files() -> list[str]:
    """Paths relative to src, sorted."""
    return sorted(
        path.relative_to(SOURCE).as_posix()
        for path in (SOURCE / "proxlearn").rglob("*")
        if path.is_file()
        and path.suffix not in NOT_INSTALLED
        and path.name != "meson.build"
        and not path.name.startswith(".")
        and "__pycache__" not in path.parts
    )


if __name__ == "__main__":
    print("\n".join(package_files()))
