"""Finished parts of experiments by content: the same settings, weights and code, the same key."""

import ast
import hashlib
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from proxlearn import __version__
from proxlearn.evaluation.experiments import record
from proxlearn.evaluation.experiments.record import Arrays
from proxlearn.files import replacing
from proxlearn.methods import scheme
from proxlearn.methods.checkpoint import Learned, describe, weights
from proxlearn.methods.optimizers import Optimizer, optimizer
from proxlearn.methods.rules import coefficient_network, lstm
from proxlearn.problems import certificates, lanczos, operators, penalties, problem, smooth
from proxlearn.solving import first_order

TERMS = (lanczos, operators, penalties, problem, certificates, smooth)
CORE = (*TERMS, scheme, first_order, record, optimizer, lstm, coefficient_network)
"""What every number depends on. What an optimizer adds is in the module of its class or rule."""


@dataclass
class Cache:
    """A folder of .npz files, and a count of what was found there and what was not."""

    folder: Path
    found: int = 0
    made: int = 0
    used: set[str] = field(default_factory=set)

    def get(self, key: dict[str, Any], make: Callable[[], Arrays]) -> Arrays:
        """The arrays of that key, made and stored where they are not there or cannot be read."""
        name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:32]
        self.used.add(name)
        file = self.folder / f"{name}.npz"
        stored = _read(file)
        if stored is not None:
            self.found += 1
            return stored
        arrays = make()
        with replacing(file) as temporary:
            np.savez(temporary, allow_pickle=False, **arrays)
        self.made += 1
        return arrays


def _read(file: Path) -> Arrays | None:
    try:
        with open(file, "rb") as stream, np.load(stream, allow_pickle=False) as data:
            return {name: data[name] for name in data.files}
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile):
        return None  # the file is made again and replaced


def fingerprint(optimizer: Optimizer) -> dict[str, str]:
    """What an optimizer is: its settings or weights, and the code of its class."""
    rule = getattr(optimizer, "rule", optimizer)
    code = source_digest(type(rule).__module__)
    if not isinstance(optimizer, Learned):
        return {"optimizer": repr(optimizer), "code": code}
    content = hashlib.sha256(json.dumps(describe(optimizer.rule), sort_keys=True).encode())
    for name, tensor in sorted(weights(optimizer.rule).items()):
        content.update(name.encode() + tensor.cpu().numpy().tobytes())
    return {"optimizer": content.hexdigest(), "code": code}


@cache
def core_digest() -> str:
    """The version of the numbers: proxlearn, torch, and the code that every solve runs."""
    parts = [__version__, str(torch.__version__), *(source_digest(m.__name__) for m in CORE)]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()


@cache
def source_digest(module: str) -> str:
    """A hash of a module's code, of all files of a package, in which comments do not count."""
    import importlib

    found: ModuleType = importlib.import_module(module)
    assert found.__file__ is not None
    file = Path(found.__file__)
    files = sorted(file.parent.glob("*.py")) if file.name == "__init__.py" else [file]
    text = "".join(_code(f.read_text(encoding="utf-8")) for f in files)
    return hashlib.sha256(text.encode()).hexdigest()


def _code(text: str) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):  # a statement that is only a string is a docstring
            node.body = [  # type: ignore[attr-defined]
                s
                for s in body
                if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
            ]
    return ast.dump(tree)
