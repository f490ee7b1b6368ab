"""Optimizers by name: the scheme with each rule, and the methods outside it."""

from collections.abc import Callable

from proxlearn import zoo
from proxlearn.errors import InputError, unknown
from proxlearn.methods.optimizers.adam import Adam
from proxlearn.methods.optimizers.l2o_dm import L2oDm
from proxlearn.methods.optimizers.optimizer import Optimizer, OptimizerState
from proxlearn.methods.optimizers.rnnprop import RnnProp
from proxlearn.methods.optimizers.subgradient import Subgradient
from proxlearn.methods.rules import (
    AdaLista,
    BandedRule,
    CompactRule,
    Fista,
    Ista,
    Learnable,
    Nesterov,
    ProximalPoint,
    RecurrentRule,
    SplittingRule,
    StepLista,
    VariableMetric,
)
from proxlearn.methods.scheme import Scheme

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
"""Makers by name; `proxlearn.names.OPTIMIZERS` has the same names for the command line."""

KINDS: dict[str, type[Learnable]] = {
    "recurrent": RecurrentRule,
    "compact": CompactRule,
    "banded": BandedRule,
    "splitting": SplittingRule,
    "step-lista": StepLista,
    "ada-lista": AdaLista,
    "l2o-dm": L2oDm,
    "rnnprop": RnnProp,
}
"""What has weights, by the name that a checkpoint's card gives it."""


def get(optimizer: "str | Optimizer") -> Optimizer:
    """The optimizer of that name, a shipped model or a file of weights; or the object itself."""
    if not isinstance(optimizer, str):
        if isinstance(optimizer, type) or not all(
            hasattr(optimizer, part) for part in ("init", "step", "gradients")
        ):
            raise InputError(
                f"optimizer is of type {type(optimizer).__name__}; expected the name of one, such "
                "as 'fista-restart', or an object with init, step and gradients"
            )
        return optimizer
    if optimizer in NAMES:
        return NAMES[optimizer]()
    if zoo.has(optimizer) or optimizer.endswith(".safetensors"):
        from proxlearn.methods.checkpoint import load  # which imports this package

        return load(optimizer)
    raise unknown("optimizer", optimizer, [*NAMES, *zoo.names()])


__all__ = ["KINDS", "NAMES", "Adam", "Optimizer", "OptimizerState", "Subgradient", "get"]
