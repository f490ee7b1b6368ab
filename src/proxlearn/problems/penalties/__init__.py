"""Penalties r."""

from proxlearn.problems.penalties.absolute_deviation import AbsoluteDeviation
from proxlearn.problems.penalties.group_l1 import GroupL1
from proxlearn.problems.penalties.penalty_term import Penalty
from proxlearn.problems.penalties.separable import (
    L1,
    Box,
    ElasticNet,
    NonNegative,
    NonNegativeElasticNet,
    Separable,
    Zero,
)
from proxlearn.problems.penalties.simplex_set import Simplex
from proxlearn.problems.penalties.sparse_group_l1 import SparseGroupL1
from proxlearn.problems.penalties.sum_at_most import SumAtMost

__all__ = [
    "L1",
    "AbsoluteDeviation",
    "Box",
    "ElasticNet",
    "GroupL1",
    "NonNegative",
    "NonNegativeElasticNet",
    "Penalty",
    "Separable",
    "Simplex",
    "SparseGroupL1",
    "SumAtMost",
    "Zero",
]
