"""What the shards hold together: the summary, and the arrays of a file in one piece."""

import json
import os
import re
import zipfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from proxlearn.errors import InputError
from proxlearn.files import Array, replacing

RESULT = re.compile(r"\d{10}-\d{10}\.npz")
LISTED = 100
"""Instances without a certificate that the summary names; it counts all."""


@dataclass
class Summary:
    """Counts over the results that were added. The same results give the same text."""

    instances: int = 0
    shards: int = 0
    status: Counter[str] = field(default_factory=Counter)
    iterations: int = 0
    grad_evals: float = 0.0
    unsolved: list[dict[str, Any]] = field(default_factory=list)

    def add(self, name: str, start: int, result: dict[str, Array]) -> None:
        """Count the arrays of one shard of the file `name`, whose first instance is `start`."""
        status = result["status"].tolist()
        self.instances += len(status)
        self.shards += 1
        self.status.update(status)
        self.iterations += int(result["iterations"].sum())
        self.grad_evals += float(result["grad_evals"].sum())
        for i, value in enumerate(status):
            if value != "SOLVED" and len(self.unsolved) < LISTED:
                self.unsolved.append({"file": name, "instance": start + i, "status": value})

    @property
    def solved(self) -> bool:
        return self.status["SOLVED"] == self.instances

    def save(self, path: Path, failed: dict[str, str]) -> None:
        """Write it with the failures: what could not be solved, and why."""
        record = {
            "instances": self.instances,
            "shards": self.shards,
            "status": dict(sorted(self.status.items())),
            "mean_iterations": self.iterations / self.instances if self.instances else None,
            "mean_grad_evals": self.grad_evals / self.instances if self.instances else None,
            "unsolved": self.unsolved,
            "failed": dict(sorted(failed.items())),
        }
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def read_result(path: Path, names: Iterable[str]) -> dict[str, Array] | None:
    """Arrays of a shard's result; None where the file is missing or damaged."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as data:
            return {name: data[name] for name in names}
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile):
        return None


def write_result(path: Path, arrays: dict[str, Array]) -> None:
    """Write a shard's result: on the disk first, then under its name."""
    with replacing(path) as temporary, temporary.open("xb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)
        stream.flush()
        os.fsync(stream.fileno())


NAMES = ("x", "objective", "gap", "status", "iterations", "grad_evals")


def collect(folder: str | Path) -> dict[str, Array]:
    """The results of one file of problems, OUTPUT/NAME, in one piece and in its order.

    x (B, n), and objective, gap, status, iterations, grad_evals (B,). Where shards are missing, so
    that B instances are not there, that is an `InputError`.
    """
    place = Path(folder)
    try:
        files = sorted(name for name in os.listdir(place) if RESULT.fullmatch(name))
        count = json.loads((place / "source.json").read_text(encoding="utf-8"))["instances"]
    except (OSError, ValueError, KeyError):
        raise InputError(f"{folder} holds no results; expected OUTPUT/NAME") from None
    parts = []
    end = 0
    for name in files:
        start, stop = (int(part) for part in name[:-4].split("-"))
        part = read_result(place / name, NAMES)
        if part is None or start != end:
            break
        parts.append(part)
        end = stop
    if end != count:
        raise InputError(
            f"{folder} lacks instance {end} of {count}; start proxlearn solve-batch again"
        )
    return {name: np.concatenate([part[name] for part in parts]) for name in NAMES}
