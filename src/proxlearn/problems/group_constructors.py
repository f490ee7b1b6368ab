"""Least squares in which coordinates are zero together: `group_lasso`, `multitask_lasso`, ...

`proxlearn.problems.constructors` says what all constructors take.
"""

from typing import Any

import numpy as np

from proxlearn.errors import InputError
from proxlearn.problems.arrays import to_matrix
from proxlearn.problems.grouping import penalised_groups
from proxlearn.problems.linear_problem import linear_problem
from proxlearn.problems.penalty_descriptions import Grouped
from proxlearn.problems.problem import Problem
from proxlearn.problems.vectors import to_positive, to_rows, to_tasks, to_weights


def group_lasso(A: Any, b: Any, lam: Any, groups: Any, weights: Any = None) -> Problem:
    """Least squares in which groups of coordinates are zero together.

    Minimises ``1/2 ||A x - b||^2 + lam sum_g w_g ||x_g||_2``.

    Parameters
    ----------
    A : array (m, n) or (B, m, n), scipy sparse matrix, or object with matvec
    b : array (m,) or (B, m)
    lam : number or (B,)
    groups : array (n,), or list of G lists of coordinates
        As an array, the group of each coordinate, numbered from 0 with none left out, and -1 for a
        coordinate in no group. As lists, the coordinates of each group; groups do not overlap.
        Coordinates in no group are not penalised.
    weights : array (G,) or (B, G), optional
        1 by default; the square root of the group's size is another usual choice. A weight of 0
        leaves a group unpenalised.

    Returns
    -------
    Problem

    Examples
    --------
    >>> import numpy as np, proxlearn as pl
    >>> problem = pl.group_lasso(np.eye(4), [3.0, 4.0, 0.3, 0.4], lam=1.0, groups=[[0, 1], [2, 3]])
    >>> pl.solve(problem).x.round(6).tolist()
    [2.4, 3.2, 0.0, 0.0]
    """
    A = to_matrix("A", A)
    targets = to_rows("b", b, A.shape[0], A)
    group_of, w = penalised_groups(groups, weights, A)
    r = Grouped(to_positive("lam", lam, A), group_of, w)
    return linear_problem("squares", A, b, targets, r)


def sparse_group_lasso(
    A: Any,
    b: Any,
    lam: Any,
    groups: Any,
    l1_ratio: Any = 0.5,
    weights: Any = None,
    l1_weights: Any = None,
) -> Problem:
    """Least squares in which groups are zero together, and coordinates inside the others, too.

    Minimises ``1/2 ||A x - b||^2 + lam (l1_ratio sum_j v_j |x_j| + (1 - l1_ratio) sum_g w_g
    ||x_g||_2)``.

    Parameters
    ----------
    A : array (m, n) or (B, m, n), scipy sparse matrix, or object with matvec
    b : array (m,) or (B, m)
    lam : number or (B,)
    groups : array (n,), or list of G lists of coordinates
        As in `group_lasso`. Coordinates in no group have the l1 part of the penalty alone.
    l1_ratio : number or (B,)
        From 0, which is the group LASSO, to 1, which is the LASSO.
    weights : array (G,) or (B, G), optional
        w, 1 by default.
    l1_weights : array (n,) or (B, n), optional
        v, 1 by default.

    Returns
    -------
    Problem

    Examples
    --------
    >>> import numpy as np, proxlearn as pl
    >>> problem = pl.sparse_group_lasso(np.eye(4), [4.0, 0.3, 0.3, 0.4], 1.0, [[0, 1], [2, 3]])
    >>> pl.solve(problem).x.round(6).tolist()
    [3.0, 0.0, 0.0, 0.0]
    """
    A = to_matrix("A", A)
    targets = to_rows("b", b, A.shape[0], A)
    group_of, w = penalised_groups(groups, weights, A)
    ratio = to_positive("l1_ratio", l1_ratio, A, at_least=0)
    if bool((ratio > 1).any()):
        raise InputError(f"l1_ratio is {float(ratio.max()):g}; expected numbers from 0 to 1")
    v = to_weights("l1_weights", l1_weights, A.shape[1], A)
    r = Grouped(to_positive("lam", lam, A), group_of, w, ratio, v)
    return linear_problem("squares", A, b, targets, r)


def multitask_lasso(A: Any, b: Any, lam: Any, weights: Any = None) -> Problem:
    """Least squares for several targets that use the same columns of A.

    Minimises ``1/2 ||A X - b||^2 + lam sum_j w_j ||X_j||_2`` over matrices X (n, T), whose rows X_j
    are zero together.

    Parameters
    ----------
    A : array (m, n) or (B, m, n), scipy sparse matrix, or object with matvec
    b : array (m, T) or (B, m, T)
        A column for each target.
    lam : number or (B,)
    weights : array (n,) or (B, n), optional
        w, 1 by default; a weight of 0 leaves a row unpenalised.

    Returns
    -------
    Problem
        Its x (n T,) is X row by row: ``solution.x.reshape(n, T)``.

    Examples
    --------
    >>> import numpy as np, proxlearn as pl
    >>> problem = pl.multitask_lasso(np.eye(2), [[3.0, 4.0], [0.3, 0.4]], lam=1.0)
    >>> pl.solve(problem).x.reshape(2, 2).round(6).tolist()
    [[2.4, 3.2], [0.0, 0.0]]
    """
    A = to_matrix("A", A)
    targets = to_tasks("b", b, A)
    B, m, T = targets.shape
    r = Grouped(
        to_positive("lam", lam, A),
        np.arange(A.shape[1] * T) // T,
        to_weights("weights", weights, A.shape[1], A),
        tasks=T,
    )
    by_task = targets.swapaxes(1, 2).reshape(B, T * m)
    return linear_problem("squares", A, b, by_task, r, axes=2)
