"""Trained weights that come with the package, by name."""

from pathlib import Path

_HERE = Path(__file__).parent


def names() -> list[str]:
    """The shipped models."""
    return sorted(file.stem for file in _HERE.glob("*.safetensors"))


def has(name: str) -> bool:
    """True where a model of that name is shipped."""
    return name in names()


def path(name: str) -> Path:
    """The file of a shipped model."""
    return _HERE / f"{name}.safetensors"
