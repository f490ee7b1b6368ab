"""Linear operators A: one dense matrix, a batch of them, a sparse one, any matvec/rmatvec object.

`forward` maps (B, n) to (B, m) and `adjoint` maps back. Axes between the first and the last are
carried along, (B, C, n) -> (B, C, m): this is how a softmax model applies one A to C classes.
"""

from proxlearn.problems.operators.dense_operator import EXACT_UP_TO, Dense
from proxlearn.problems.operators.linear_operator import Operator
from proxlearn.problems.operators.matrix_free import MatrixFree, MatVec
from proxlearn.problems.operators.sparse_operator import Sparse

__all__ = ["EXACT_UP_TO", "Dense", "MatVec", "MatrixFree", "Operator", "Sparse"]
