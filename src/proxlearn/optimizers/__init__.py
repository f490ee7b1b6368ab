"""Optimizers by name: the scheme with each rule, and the methods outside it."""

from collections.abc import Callable

from proxlearn import zoo
from proxlearn.errors import unknown
from proxlearn.optimizers.adam import Adam
from proxlearn.optimizers.base import Optimizer, OptimizerState
from proxlearn.optimizers.subgradient import Subgradient
from proxlearn.rules import Fista, Ista, Nesterov, ProximalPoint, VariableMetric
from proxlearn.scheme import Scheme

NAMES: dict[str, Callable[[], Optimizer]] = {
    "ista": lambda: Scheme(Ista()),
    "fista": lambda: Scheme(Fista()),
    "fista-restart": lambda: Scheme(Fista(restart=True)),
    "nesterov": lambda: Scheme(Nesterov()),
    "pgd": lambda: Scheme(VariableMetric()),
    "ppa": lambda: Scheme(ProximalPoint()),
    "subgradient": Subgradient,
    "adam": Adam,
    "adamhd": lambda: Adam(alpha=1e-2, hyper=1e-4),
}


def get(optimizer: "str | Optimizer") -> Optimizer:
    """The optimizer of that name, a shipped model or a file of weights; or the object itself."""
    if not isinstance(optimizer, str):
        return optimizer
    if optimizer in NAMES:
        return NAMES[optimizer]()
    if zoo.has(optimizer) or optimizer.endswith(".safetensors"):
        from proxlearn.checkpoint import load  # reads rules, which import optimizers' neighbours

        return load(optimizer)
    raise unknown("optimizer", optimizer, [*NAMES, *zoo.names()])


__all__ = ["NAMES", "Adam", "Optimizer", "OptimizerState", "Subgradient", "get"]
