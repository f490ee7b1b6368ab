"""Starts of the compiled core by name: FISTA, and shipped or own weights of a compact rule."""

from dataclasses import asdict, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from proxlearn import zoo
from proxlearn.checks import check_weights
from proxlearn.core.single import Glm
from proxlearn.core.starts import CompactSettings, CompactStart, FistaStart, Start

CLASSIC = {"fista": FistaStart(), "fista-restart": FistaStart(restart=True)}
"""Methods without weights that the core can begin with."""

COMPACT = "compact"
"""The kind of rule, on the card of its weights, that the core can run."""

TALL = 2
"""Smallest ratio of rows to columns for which a logistic regression starts with a learned rule."""
LARGE = 50_000
"""Entries of A from which it does.

On smaller ones (351 x 34, 569 x 30) a start took 0.76 to 1.5 times as long as none.
"""
MANY = 0.75
"""Part of the columns that must violate their optimality conditions at 0.

Most columns are in the solution then, and every Hessian of the core costs about as much as n/4
gradients, so that a start pays by each Hessian that it saves. With 0.9 a start that halves the time
was left out; benchmarks/starts.py measures the choice, and docs/starts.md has its table of
2026-11-18.
"""


@runtime_checkable
class Startable(Protocol):
    """An optimizer that the compiled core may be able to begin with."""

    def core_start(self) -> Start | None:
        """The same method as a start of the core; None where the core cannot run it."""


def find_start(optimizer: Any) -> Start | None:
    """Find the start that belongs to an optimizer; None where the core cannot run it.

    Parameters
    ----------
    optimizer : str or object
        "fista" or "fista-restart", the name of shipped weights, a file of weights, or an optimizer
        that has a method `core_start`.

    Returns
    -------
    Start or None

    Examples
    --------
    >>> from proxlearn.solving.named_starts import find_start
    >>> find_start("lasso").settings.hidden
    24
    >>> find_start("lasso-pa") is None  # an LSTM, which the core does not run
    True
    """
    if not isinstance(optimizer, str):
        is_start = isinstance(optimizer, Startable) and not isinstance(optimizer, type)
        return optimizer.core_start() if is_start else None
    if optimizer in CLASSIC:
        return CLASSIC[optimizer]
    known = optimizer.endswith(".safetensors") or zoo.has(optimizer)
    return read_start(optimizer) if known else None


def read_start(name: str) -> CompactStart | None:
    """The start with the weights of a file or a shipped model; None where the rule is another."""
    check_weights(name)
    file = zoo.path(name) if zoo.has(name) else Path(name)
    found = file.stat()
    return _read(name, file, (found.st_mtime_ns, found.st_size))


@lru_cache(maxsize=32)
def _read(name: str, file: Path, version: tuple[int, int]) -> CompactStart | None:
    """Read the start; a file that has not changed since is not read again."""
    from proxlearn.methods.cards import check_settings, check_tensors, read_card, read_file

    tensors, metadata = read_file(file, "numpy")
    rule = read_card(name, metadata)["rule"]
    if rule.get("kind") != COMPACT:
        return None
    given = check_settings(COMPACT, rule.get("settings", {}), asdict(CompactSettings()))
    settings = CompactSettings(**given)
    shapes = settings.shapes().items()
    check_tensors(name, tensors, {key: (shape, "float32") for key, shape in shapes})
    return CompactStart.of(settings, tensors)


def is_started(loss: str, m: int, n: int) -> bool:
    """True where `automatic_start` may have a start for a problem of this size."""
    return loss == "logistic" and m >= TALL * n and m * n >= LARGE


def automatic_start(glm: Glm) -> Start | None:
    """What "auto" begins with: a learned rule where it was measured to be faster, else nothing.

    That is the rule `logistic` for logistic regressions with at least twice as many rows as
    columns in which three quarters of the columns violate their optimality conditions at 0.
    """
    if not (glm.penalty.proximal and is_started(glm.loss, *glm.A.shape[-2:])):
        return None
    return _automatic() if np.min(glm.l1) > 0 else None


@cache
def _automatic() -> CompactStart:
    found = read_start("logistic")
    assert found is not None
    return replace(found, part=MANY)
