"""Rules: who chooses p, a, b, b1, b2."""

from proxlearn.rules.classic import (
    Fista,
    Ista,
    Nesterov,
    ProximalPoint,
    VariableMetric,
)

__all__ = ["Fista", "Ista", "Nesterov", "ProximalPoint", "VariableMetric"]
