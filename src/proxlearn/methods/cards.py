"""Files of weights and their cards, read and checked without PyTorch.

A file of weights is a safetensors file: tensors, and a JSON card that names their rule.
`proxlearn.methods.checkpoint` reads a rule for PyTorch from it, `proxlearn.solving.named_starts`
a start for the core.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from proxlearn.errors import InputError

FORMAT = 1
"""Version of the file format; a newer one is refused."""
LARGEST = 256 * 2**20
"""Bytes up to which a file is read: a rule has some thousand weights."""

Shapes = Mapping[str, tuple[tuple[int, ...], str]]
"""The shape and the type, such as "float32", of every tensor by name."""


def read_file(file: Path, framework: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Tensors of a safetensors file as those of "pt" (PyTorch) or "numpy", and its metadata."""
    if file.stat().st_size > LARGEST:
        raise InputError(f"{file} has {file.stat().st_size} bytes, more than any rule; not read")
    try:
        with safe_open(file, framework=framework) as opened:
            tensors = {k: opened.get_tensor(k) for k in opened.keys()}  # noqa: SIM118
            return tensors, dict(opened.metadata() or {})
    except (SafetensorError, OSError, RuntimeError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{file} is not a readable safetensors file ({reason})") from None


def read_card(name: str, metadata: Mapping[str, str]) -> dict[str, Any]:
    """The card in the metadata of the file `name`."""
    try:
        card = json.loads(metadata["proxlearn"])
        version = card["format"]
        if type(version) is not int or version < 1:
            raise ValueError
    except (KeyError, ValueError, TypeError, RecursionError):
        raise InputError(f"{name} is a safetensors file without a proxlearn card") from None
    if version > FORMAT:
        raise InputError(
            f"{name} has format version {version}, this proxlearn reads up to {FORMAT}: upgrade it"
        )
    if not isinstance(card.get("rule"), dict):
        raise InputError(f"{name} has a card that does not say which rule it holds")
    return dict(card)


def check_settings(kind: str, settings: Any, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a rule of some kind, whose names and types must be those of the defaults."""
    if not isinstance(settings, Mapping) or not settings.keys() <= defaults.keys():
        names = ", ".join(defaults)
        raise InputError(f"settings {settings} do not fit a {kind} rule; it has {names}")
    for name, value in settings.items():
        if not _alike(value, defaults[name]):
            given = repr(value)
            given = given if len(given) <= 60 else f"{given[:57]}..."
            raise InputError(f"setting {name} is {given}; expected the like of {defaults[name]!r}")
    return dict(settings)


def _alike(value: Any, default: Any) -> bool:
    """True where a value has the type of the default; neither True nor NaN is a number here."""
    if isinstance(default, float):
        number = isinstance(value, (float, int)) and not isinstance(value, bool)
        return number and abs(value) <= sys.float_info.max
    return type(value) is type(default)


def check_tensors(name: str, tensors: Mapping[str, Any], expected: Shapes) -> None:
    """Refuses weights of the file `name` that are not those of its rule, or not finite."""
    if tensors.keys() != expected.keys():
        odd = ", ".join(sorted(tensors.keys() ^ expected.keys())[:4])
        raise InputError(f"{name} does not hold the tensors of its rule: missing or extra {odd}")
    for key, tensor in tensors.items():
        shape, precision = expected[key]
        given = tuple(tensor.shape), precision_of(tensor)
        if given != (shape, precision):
            raise InputError(
                f"{name} holds {key} as {given[0]} {given[1]}, expected {shape} {precision}"
            )
        if not np.isfinite(np.asarray(tensor)).all():
            raise InputError(f"{name} holds NaN or infinite weights in {key}; train it again")


def precision_of(tensor: Any) -> str:
    """The type of the entries of a tensor or an array, such as "float32"."""
    return str(tensor.dtype).removeprefix("torch.")
