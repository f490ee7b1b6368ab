"""Rules: who chooses p, a, b, b1, b2."""

from proxlearn.rules.banded import BandedRule
from proxlearn.rules.classic import (
    Fista,
    Ista,
    Nesterov,
    ProximalPoint,
    VariableMetric,
)
from proxlearn.rules.compact import CompactRule
from proxlearn.rules.learned import Learnable, LearnedRule
from proxlearn.rules.recurrent import RecurrentRule
from proxlearn.rules.unrolled import AdaLista, StepLista

__all__ = [
    "AdaLista",
    "BandedRule",
    "CompactRule",
    "Fista",
    "Ista",
    "Learnable",
    "LearnedRule",
    "Nesterov",
    "ProximalPoint",
    "RecurrentRule",
    "StepLista",
    "VariableMetric",
]
