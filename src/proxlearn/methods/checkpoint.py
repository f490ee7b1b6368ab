"""Checkpoints: one safetensors file, the weights and a JSON card; nothing is pickled."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor, nn

from proxlearn.checks import check_weights
from proxlearn.core.starts import CompactStart
from proxlearn.errors import InputError, unknown
from proxlearn.files import replacing
from proxlearn.methods.cards import (
    FORMAT,
    check_settings,
    check_tensors,
    precision_of,
    read_card,
    read_file,
)
from proxlearn.methods.optimizers import KINDS
from proxlearn.methods.rules import Learnable
from proxlearn.methods.scheme import Stepwise
from proxlearn.problems.problem import Problem
from proxlearn.problems.smooth import Evaluation


@dataclass(frozen=True)
class Learned(Stepwise):
    """A learned optimizer: a rule with weights, and the card that says what it is.

    Parameters
    ----------
    rule : Learnable
        Chooses the coefficients of the scheme, or writes the update itself.
    card : mapping
        Where the weights come from: the family, the configuration, versions, results.

    Examples
    --------
    >>> import proxlearn as pl
    >>> pl.load("lasso").card["status"]
    'finished'
    """

    rule: Learnable
    card: Mapping[str, Any] = field(default_factory=dict)

    @property
    def gradients(self) -> int:
        """Gradients an iteration."""
        return self.rule.optimizer().gradients

    @property
    def layers(self) -> int | None:
        """Most iterations it can take; None where there is no end."""
        return self.rule.layers

    def init(self, problem: Problem, x0: Tensor) -> Any:
        """The state before the first iteration."""
        return self.rule.optimizer().init(problem, x0)

    def point(self, state: Any) -> Tensor | None:
        """Where the next iteration evaluates f; None where `evaluate` has to find the point."""
        return self.rule.optimizer().point(state)

    def evaluate(self, problem: Problem, state: Any) -> Evaluation:
        """What the next iteration needs of f."""
        return self.rule.optimizer().evaluate(problem, state)

    def advance(self, problem: Problem, state: Any, at: Evaluation) -> Any:
        """One iteration, with f evaluated at `point` already."""
        return self.rule.optimizer().advance(problem, state, at)

    def core_start(self) -> CompactStart | None:
        """The same rule as a start of the compiled core; None where that cannot run it."""
        return self.rule.core_start()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write weights and card to one file, whole or not at all."""
        card = {**self.card, "format": FORMAT, "rule": describe(self.rule)}
        try:
            text = json.dumps(card, sort_keys=True)
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(
                f"the card cannot be written as JSON ({error}); expected plain values: numbers, "
                "texts, lists and dictionaries with texts for keys"
            ) from None
        write_tensors(path, weights(self.rule), {"proxlearn": text})

    def to(self, device: str) -> "Learned":
        """The same optimizer with its weights on another device."""
        return Learned(self.rule.to(device), self.card)


def describe(rule: Learnable) -> dict[str, Any]:
    """Kind and settings of a rule, as the card holds them."""
    kind = next((name for name, cls in KINDS.items() if type(rule) is cls), None)
    own = type(rule).__name__
    if kind is None:
        raise InputError(
            f"{own} has no registered kind, so that no file of its weights could be loaded again; "
            f"register it first, as in proxlearn.methods.optimizers.KINDS['my-rule'] = {own}"
        )
    if not is_dataclass(rule.settings) or isinstance(rule.settings, type):
        raise InputError(
            f"the settings of {own} are of type {type(rule.settings).__name__}; expected a "
            "dataclass of plain values, which the card can hold"
        )
    return {"kind": kind, "settings": asdict(rule.settings)}


def weights(rule: nn.Module) -> dict[str, Tensor]:
    """The weights by name."""
    return {name: t.detach().contiguous() for name, t in rule.state_dict().items()}


def build(description: Mapping[str, Any], generator: torch.Generator | None = None) -> Learnable:
    """A rule of a kind and its settings, with fresh weights."""
    kind, settings = description.get("kind"), description.get("settings", {})
    if not isinstance(kind, str) or kind not in KINDS:
        raise unknown("kind of rule", kind, KINDS)
    rule = KINDS[kind]
    defaults = asdict(rule.Settings())
    settings = check_settings(kind, settings, defaults)
    return rule(rule.Settings(**settings), generator)


def load(path: str | os.PathLike[str]) -> Learned:
    """Read a learned optimizer from a file, or a shipped one by its name (see `proxlearn.zoo`).

    Parameters
    ----------
    path : str or Path
        A file that `train` has written, or a name such as "lasso".

    Returns
    -------
    Learned

    Examples
    --------
    >>> import proxlearn as pl
    >>> pl.load("lasso").gradients
    1
    """
    from proxlearn import zoo

    check_weights(path)
    name = os.fspath(path)
    file = zoo.path(name) if zoo.has(name) else Path(name)
    tensors, metadata = read_tensors(file)
    card = read_card(name, metadata)
    rule = build(card["rule"])
    _fill(name, rule, tensors)
    return Learned(rule, card)


def _fill(name: str, rule: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    own = weights(rule).items()
    check_tensors(name, tensors, {key: (tuple(t.shape), precision_of(t)) for key, t in own})
    rule.load_state_dict(dict(tensors))


def read_tensors(file: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and metadata of a safetensors file."""
    return read_file(file, "pt")


def write_tensors(
    path: str | os.PathLike[str], tensors: Mapping[str, Tensor], metadata: dict[str, str]
) -> None:
    """Tensors and metadata as one safetensors file, whole or not at all."""
    data = save({k: t.cpu() for k, t in tensors.items()}, metadata)
    with replacing(Path(path)) as partial, open(partial, "wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
