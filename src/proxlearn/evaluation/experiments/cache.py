"""Finished parts of experiments by content: the same settings, weights and code, the same key."""

import hashlib
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from proxlearn import __version__
from proxlearn.evaluation.experiments.dependencies import code_digest
from proxlearn.evaluation.experiments.record import Arrays
from proxlearn.files import replacing
from proxlearn.methods.checkpoint import Learned, describe, weights
from proxlearn.methods.optimizers import Optimizer
from proxlearn.methods.optimizers.optimizer import rule_of

RUN = (f"{__package__}.record", "proxlearn.evaluation.comparison")
"""What computes the parts: a run of an optimizer, and the optimum."""


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
    code = code_digest(type(rule_of(optimizer)).__module__)
    if not isinstance(optimizer, Learned):
        return {"optimizer": repr(optimizer), "code": code}
    content = hashlib.sha256(json.dumps(describe(optimizer.rule), sort_keys=True).encode())
    for name, tensor in sorted(weights(optimizer.rule).items()):
        content.update(name.encode() + tensor.cpu().numpy().tobytes())
    return {"optimizer": content.hexdigest(), "code": code}


@cache
def core_digest() -> str:
    """The version of the numbers: proxlearn, torch, and the code that every part runs."""
    parts = [__version__, str(torch.__version__), code_digest(*RUN)]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()
