"""Problems from arrays: `lasso`, `logistic`, `softmax`, `elastic_net`, `nnls`, ...

Every constructor takes NumPy arrays, tensors, scipy sparse matrices or matvec objects for A, one
problem or a batch: A (m, n) is shared by the instances, A (B, m, n) gives each its own; b is (m,)
or (B, m); numbers such as lam are one for all or (B,). The precision is that of A. The answers of a
problem are tensors where A or b is a tensor, and NumPy arrays elsewhere. All
constructors are found here; those of other losses and of penalties for groups are written in
`loss_constructors` and `group_constructors`.
"""

from typing import Any

import numpy as np

from proxlearn.core import kernel
from proxlearn.problems.arrays import Matrix, to_matrix
from proxlearn.problems.group_constructors import group_lasso as group_lasso
from proxlearn.problems.group_constructors import multitask_lasso as multitask_lasso
from proxlearn.problems.group_constructors import sparse_group_lasso as sparse_group_lasso
from proxlearn.problems.linear_problem import linear_problem
from proxlearn.problems.loss_constructors import huber as huber
from proxlearn.problems.loss_constructors import logistic as logistic
from proxlearn.problems.loss_constructors import poisson as poisson
from proxlearn.problems.loss_constructors import softmax as softmax
from proxlearn.problems.penalty_descriptions import OnSimplex, Separable
from proxlearn.problems.problem import Problem
from proxlearn.problems.vectors import to_positive, to_rows, to_weights


def prepare(A: Any) -> Matrix:
    """Check A once, for many problems: give the result to the constructors as A.

    What a solve computes from A alone, such as its norm for a first-order method, is remembered
    with it. The memory is that of A itself, but for sparse matrices that are not stored by columns.

    Parameters
    ----------
    A : array (m, n) or (B, m, n), sparse matrix, tensor, or object with matvec
        As for the constructors.

    Returns
    -------
    Matrix

    Examples
    --------
    >>> import numpy as np, proxlearn as pl
    >>> A = pl.prepare(np.eye(3))
    >>> [round(float(pl.solve(pl.lasso(A, [b, 0, 0], lam=0.5)).x[0]), 6) for b in (1.0, 2.0)]
    [0.5, 1.5]
    """
    return to_matrix("A", A)


def lasso(A: Any, b: Any, lam: Any, weights: Any = None, *, nonnegative: bool = False) -> Problem:
    """Least squares with an l1 penalty: LASSO.

    Minimises ``1/2 ||A x - b||^2 + lam sum_i w_i |x_i|``.

    Parameters
    ----------
    A : array (m, n) or (B, m, n), sparse matrix, tensor, or object with matvec
    b : array (m,) or (B, m)
    lam : float or (B,)
        Weight > 0 of the penalty.
    weights : array (n,) or (B, n), optional
        1 by default; a weight of 0 leaves x_i unpenalised.
    nonnegative : bool
        Whether x is constrained to be >= 0.

    Returns
    -------
    Problem

    Examples
    --------
    >>> import proxlearn as pl
    >>> problem = pl.lasso([[1.0, 0.0], [0.0, 2.0]], [1.0, -1.0], lam=0.1, nonnegative=True)
    >>> problem.n, problem.batch
    (2, 1)
    >>> pl.solve(problem).x.round(6).tolist()
    [0.9, 0.0]
    """
    plain = kernel.plain_squares(A, b, lam, 0.0, nonnegative) if weights is None else None
    if plain is not None:
        return Problem.of_plain(plain)
    A = to_matrix("A", A, b)
    targets = to_rows("b", b, A.shape[0], A)
    w = to_weights("weights", weights, A.shape[1], A)
    r = Separable(to_positive("lam", lam, A), None, w, _lower(nonnegative))
    return linear_problem("squares", A, b, targets, r)


def elastic_net(
    A: Any, b: Any, lam: Any, lam2: Any, weights: Any = None, *, nonnegative: bool = False
) -> Problem:
    """Least squares with an l1 and an l2 penalty.

    Minimises ``1/2 ||A x - b||^2 + sum_i w_i (lam |x_i| + lam2/2 x_i^2)``.

    Parameters
    ----------
    A : array (m, n) or (B, m, n), sparse matrix, tensor, or object with matvec
    b : array (m,) or (B, m)
    lam, lam2 : float or (B,)
        Weights of the l1 penalty, >= 0, and of the l2 penalty, > 0.
    weights : array (n,) or (B, n), optional
        1 by default; a weight of 0 leaves x_i unpenalised.
    nonnegative : bool
        Whether x is constrained to be >= 0.

    Returns
    -------
    Problem

    Examples
    --------
    >>> import proxlearn as pl
    >>> problem = pl.elastic_net([[1.0, 0.0], [0.0, 2.0]], [1.0, -1.0], lam=0.1, lam2=0.5)
    >>> pl.solve(problem).x.round(6).tolist()
    [0.6, -0.422222]
    """
    plain = kernel.plain_squares(A, b, lam, lam2, nonnegative) if weights is None else None
    if plain is not None and plain.l2 > 0:
        return Problem.of_plain(plain)
    A = to_matrix("A", A, b)
    targets = to_rows("b", b, A.shape[0], A)
    lam = to_positive("lam", lam, A, at_least=0)
    lam2 = to_positive("lam2", lam2, A)
    w = to_weights("weights", weights, A.shape[1], A)
    return linear_problem("squares", A, b, targets, Separable(lam, lam2, w, _lower(nonnegative)))


def _lower(nonnegative: bool) -> Any:
    """The lower bounds of all coordinates, (1, 1); None where there is none."""
    return np.zeros((1, 1)) if nonnegative else None


def nnls(A: Any, b: Any) -> Problem:
    """Non-negative least squares: ``1/2 ||A x - b||^2`` subject to x >= 0.

    Parameters
    ----------
    A : array (m, n) or (B, m, n), sparse matrix, tensor, or object with matvec
    b : array (m,) or (B, m)

    Returns
    -------
    Problem

    Examples
    --------
    >>> import proxlearn as pl
    >>> pl.solve(pl.nnls([[1.0, 0.0], [0.0, 2.0]], [1.0, -1.0])).x.tolist()
    [1.0, 0.0]
    """
    plain = kernel.plain_nnls(A, b)
    if plain is not None:
        return Problem.of_plain(plain)
    A = to_matrix("A", A)
    r = Separable(lower=_lower(True))
    return linear_problem("squares", A, b, to_rows("b", b, A.shape[0], A), r)


def simplex_ls(A: Any, b: Any, radius: Any = 1.0, at_most: bool = False) -> Problem:
    """``1/2 ||A x - b||^2`` subject to x >= 0 and sum x = radius: unmixing.

    Parameters
    ----------
    A : array (m, n) or (B, m, n), or a sparse matrix
    b : array (m,) or (B, m)
    radius : float or (B,)
        The sum of x.
    at_most : bool
        Whether the sum of x may also be smaller than the radius.

    Returns
    -------
    Problem

    Examples
    --------
    >>> import proxlearn as pl
    >>> pl.solve(pl.simplex_ls([[1.0, 0.0], [0.0, 1.0]], [0.9, 0.5])).x.round(3)
    array([0.7, 0.3])
    >>> pl.solve(pl.simplex_ls([[1.0, 0.0], [0.0, 1.0]], [0.3, 0.2], at_most=True)).x.round(3)
    array([0.3, 0.2])
    """
    A = to_matrix("A", A)
    targets = to_rows("b", b, A.shape[0], A)
    radius = to_positive("radius", radius, A)
    return linear_problem("squares", A, b, targets, OnSimplex(radius, bool(at_most)))
