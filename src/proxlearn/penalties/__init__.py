"""Penalties r."""

from proxlearn.penalties.absolute_deviation import AbsoluteDeviation
from proxlearn.penalties.base import Penalty
from proxlearn.penalties.box import Box
from proxlearn.penalties.elastic_net import ElasticNet
from proxlearn.penalties.group_l1 import GroupL1
from proxlearn.penalties.l1 import L1
from proxlearn.penalties.non_negative import NonNegative
from proxlearn.penalties.non_negative_elastic_net import NonNegativeElasticNet
from proxlearn.penalties.simplex import Simplex
from proxlearn.penalties.sparse_group_l1 import SparseGroupL1
from proxlearn.penalties.sum_at_most import SumAtMost
from proxlearn.penalties.zero import Zero

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
