"""What an experiment is: problems, optimizers, sizes, and what to say about them."""

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from proxlearn.evaluation.comparison import BLOCK
from proxlearn.evaluation.experiments.dependencies import code_digest
from proxlearn.problems.operators import Dense
from proxlearn.problems.problem import Problem
from proxlearn.training.families import Family

LABELS = {
    "ista": "ISTA",
    "fista": "FISTA",
    "fista-restart": "FISTA with restart",
    "adam": "Adam",
    "adamhd": "AdamHD",
    "lasso": "compact rule",
    "logistic": "compact rule",
    "general": "compact rule, general",
    "b1": "‖b1‖",
    "b2": "‖b2‖",
}
"""How optimizers are called in tables and plots; an experiment may say it differently."""
KINDS = {
    "l2o-dm": "L2O-DM",
    "rnnprop": "RNNprop",
    "step-lista": "Step-LISTA",
    "ada-lista": "Ada-LISTA",
}


def label(name: str) -> str:
    """The label of an optimizer: `lasso-pa` is L2O-PA, `logistic-rnnprop` is RNNprop.

    `published-logistic-pa-1` is L2O-PA, published, seed 1.
    """
    preset = re.fullmatch(r"(published|corrected)-(?:small-)?(.+?)(?:-(\d+))?", name)
    if preset is not None:
        which, bare, seed = preset.groups()
        words = [label(bare), which, *([] if seed is None else [f"seed {seed}"])]
        return ", ".join(words)
    if name.endswith("-rescaled"):
        return f"{label(name.removesuffix('-rescaled'))} in units of 1/‖A‖"
    kind = name.partition("-")[2]
    return LABELS.get(name) or KINDS.get(kind) or (f"L2O-{kind.upper()}" if kind else name)


class Problems(ABC):
    """Instances by number. Subclasses are frozen dataclasses."""

    text: str
    """What they are, in words."""
    trained_on: str | None
    """The family that learned rules for them are trained on, and Adam and AdamHD tuned on."""

    @abstractmethod
    def block(self, first: int, last: int, seed: int) -> Problem:
        """Instances first, ..., last - 1."""

    @abstractmethod
    def key(self) -> str:
        """What tells these problems from others, for the cache."""

    def limit(self) -> int | None:
        """How many there are; None where there is no end."""
        return None


@dataclass(frozen=True)
class FromFamily(Problems):
    """Instance i is drawn from a generator of its own, so that blocks can be made one by one.

    Seeds are small numbers, which training seeds (scrambled) never are.
    """

    family: Family
    text: str
    trained_on: str | None = None
    dtype: torch.dtype = torch.float32

    def block(self, first: int, last: int, seed: int) -> Problem:
        data = [
            self.family.draw(torch.Generator().manual_seed((seed << 20) + i))
            for i in range(first, last)
        ]
        stacked = (torch.stack(parts) for parts in zip(*data, strict=True))
        return self.family.build(*stacked).to(self.dtype)

    def key(self) -> str:
        return f"{self.family!r} {self.dtype} {code_digest(type(self.family).__module__)}"


@dataclass(frozen=True)
class FromData(Problems):
    """A fixed batch of instances, read or computed when it is first needed."""

    load: Callable[[], Problem]
    text: str
    trained_on: str | None = None

    @cached_property
    def problem(self) -> Problem:
        """All instances."""
        return self.load()

    def block(self, first: int, last: int, seed: int) -> Problem:
        return self.problem.select(torch.arange(first, last))

    def key(self) -> str:
        return digest(self.problem)

    def limit(self) -> int:
        return self.problem.batch


def digest(obj: Any) -> str:
    """A hash of everything a problem holds: its numbers, and the types they are in."""
    found = hashlib.sha256()

    def add(part: Any) -> None:
        if isinstance(part, Tensor):
            found.update(f"{part.dtype}{tuple(part.shape)}".encode())
            found.update(part.detach().cpu().contiguous().numpy().tobytes())
        elif isinstance(part, Dense):
            add(part.A)
        elif isinstance(part, Problem):
            add(part.f)
            add(part.r)
        elif is_dataclass(part):
            found.update(type(part).__name__.encode())
            for entry in fields(part):
                add(getattr(part, entry.name))
        elif part is None or isinstance(part, (str, int, float)):
            found.update(repr(part).encode())
        else:  # what it prints may not tell it from another
            raise TypeError(f"a {type(part).__name__} in a problem has no hash; name its numbers")

    add(obj)
    return found.hexdigest()


@dataclass(frozen=True)
class Setting:
    """Optimizers on one set of problems: a plot."""

    name: str
    problems: Problems
    optimizers: tuple[str, ...]
    step: str = "right"
    """'right': 1/L. 'published': 1/||A||, see `steps`."""
    quick: Problems | None = None
    """Smaller problems for the quick scale."""

    def at(self, scale: str) -> Problems:
        """The problems of a scale."""
        return self.quick if scale == "quick" and self.quick is not None else self.problems


@dataclass(frozen=True)
class Scale:
    """How many instances, and how many iterations of each optimizer."""

    count: int
    iterations: int


@dataclass(frozen=True)
class Experiment:
    """One figure or table of the paper."""

    name: str
    paper_figure: str
    title: str
    settings: tuple[Setting, ...]
    quick: Scale
    paper: Scale
    measure: str = "gap"
    """'gap', or 'bias': the norms of b1 and b2 of a rule that learns them."""
    y: str | None = None
    """What the rows' gap holds, if it is no relative gap."""
    labels: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Settings to show."""
    notes: tuple[str, ...] = ()
    block: int = BLOCK
    """Instances at a time: what bounds the memory."""
    timed: bool = False
    """Times are the point: parts are not taken over from other experiments."""
    levels: tuple[float, ...] = (1e-3, 1e-6)
    """Gaps to which the tables count."""
    optimum_gap: float = 1e-12
    """Relative gap to which F* is certified."""

    def scale(self, name: str) -> Scale:
        """The sizes of 'quick' or 'paper'."""
        return self.quick if name == "quick" else self.paper

    def optimizers(self) -> tuple[str, ...]:
        """The names that all settings need, once each."""
        return tuple(dict.fromkeys(name for s in self.settings for name in s.optimizers))

    def label(self, name: str) -> str:
        """How an optimizer is called here."""
        return self.labels.get(name) or label(name)
