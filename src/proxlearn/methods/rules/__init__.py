"""Rules, which choose the coefficients p, a, b, b1, b2 of the scheme."""

from proxlearn.methods.rules.banded import BandedRule
from proxlearn.methods.rules.classic import (
    Fista,
    Ista,
    Nesterov,
    ProximalPoint,
    VariableMetric,
)
from proxlearn.methods.rules.compact import CompactRule
from proxlearn.methods.rules.learned_rule import Learnable, LearnedRule
from proxlearn.methods.rules.recurrent import RecurrentRule
from proxlearn.methods.rules.splitting import Splitting, SplittingRule
from proxlearn.methods.rules.unrolled import AdaLista, StepLista

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
    "Splitting",
    "SplittingRule",
    "StepLista",
    "VariableMetric",
]
