"""Rules: who chooses p, a, b, b1, b2."""

from proxlearn.rules.classic import (
    Fista,
    Ista,
    Nesterov,
    ProximalPoint,
    VariableMetric,
)
from proxlearn.rules.compact import CompactRule
from proxlearn.rules.learned import LearnedRule
from proxlearn.rules.recurrent import RecurrentRule

KINDS: dict[str, type[LearnedRule]] = {"recurrent": RecurrentRule, "compact": CompactRule}
"""Rules with weights, by the name that a checkpoint's card gives them."""

__all__ = [
    "KINDS",
    "CompactRule",
    "Fista",
    "Ista",
    "LearnedRule",
    "Nesterov",
    "ProximalPoint",
    "RecurrentRule",
    "VariableMetric",
]
