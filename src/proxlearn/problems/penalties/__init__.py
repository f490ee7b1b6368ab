"""Penalties r."""

from proxlearn.problems.penalties.absolute_deviation import AbsoluteDeviation
from proxlearn.problems.penalties.box import Box
from proxlearn.problems.penalties.elastic_net import ElasticNet
from proxlearn.problems.penalties.group_l1 import GroupL1
from proxlearn.problems.penalties.l1 import L1
from proxlearn.problems.penalties.no_penalty import Zero
from proxlearn.problems.penalties.non_negative import NonNegative
from proxlearn.problems.penalties.non_negative_elastic_net import NonNegativeElasticNet
from proxlearn.problems.penalties.penalty_term import Penalty
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
    "Simplex",
    "SparseGroupL1",
    "SumAtMost",
    "Zero",
]
