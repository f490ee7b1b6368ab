"""Problems of losses other than least squares, with an l1 penalty."""

from typing import Any

import numpy as np

from proxlearn.errors import InputError
from proxlearn.problems.arrays import Matrix, to_matrix, to_numpy
from proxlearn.problems.linear_problem import linear_problem
from proxlearn.problems.penalty_descriptions import Separable
from proxlearn.problems.problem import Problem
from proxlearn.problems.vectors import to_positive, to_rows, to_weights

MANY_CLASSES = 1000
"""More classes than ten a row and this are taken for labels that were not encoded."""
MOST_ENTRIES = 2**31
"""Largest number of entries of the labels (m, C) and the answer (C, d): 16 GiB in float64."""


def huber(A: Any, b: Any, lam: Any, delta: Any, weights: Any = None) -> Problem:
    """LASSO with Huber's loss, which outliers of b change little.

    ``sum_i phi(a_i^T x - b_i) + lam sum_j w_j |x_j|`` with ``phi(e) = e^2 / 2`` for
    ``|e| <= delta`` and ``delta |e| - delta^2 / 2`` beyond; a weight of 0 leaves x_j unpenalised.

    Parameters
    ----------
    A : array (m, n) or (B, m, n), or a sparse matrix
    b : array (m,) or (B, m)
    lam : float or (B,)
    delta : float or (B,)
        The error beyond which the loss grows like a straight line, in the units of b.
    weights : array (n,) or (B, n), optional

    Returns
    -------
    Problem

    Examples
    --------
    >>> import proxlearn as pl
    >>> problem = pl.huber([[1.0], [1.0], [1.0]], [1.0, 1.1, 50.0], lam=0.1, delta=0.5)
    >>> pl.solve(problem).x.round(3)  # least squares would have 17.333
    array([1.25])
    """
    A = to_matrix("A", A)
    targets = to_rows("b", b, A.shape[0], A)
    return _with_l1("huber", A, b, targets, lam, weights, delta=to_positive("delta", delta, A))


def logistic(A: Any, b: Any, lam: Any, weights: Any = None) -> Problem:
    """Logistic regression of two classes with an l1 penalty.

    Minimises ``1/m sum_i log(1 + exp(-s_i a_i^T x)) + lam sum_j w_j |x_j|`` with s = 2b - 1.

    Parameters
    ----------
    A : array (m, n) or (B, m, n), sparse matrix, tensor, or object with matvec
    b : array (m,) or (B, m)
        Labels 0 and 1.
    lam : float or (B,)
        Weight > 0 of the penalty.
    weights : array (n,) or (B, n), optional
        1 by default; a weight of 0 leaves x_j unpenalised.

    Returns
    -------
    Problem

    Examples
    --------
    >>> import proxlearn as pl
    >>> problem = pl.logistic([[1.0], [1.0], [1.0], [1.0]], [1, 1, 1, 0], lam=1e-6)
    >>> pl.solve(problem, tol=1e-9).x.round(3)  # log(3 / 1)
    array([1.099])
    """
    A = to_matrix("A", A)
    labels = to_rows("b", b, A.shape[0], A)
    if not bool(((labels == 0) | (labels == 1)).all()):
        found = ", ".join(f"{v:g}" for v in np.unique(to_numpy(labels))[:4])
        raise InputError(f"b holds labels such as {found}; expected only 0 and 1")
    return _with_l1("logistic", A, b, labels, lam, weights)


def poisson(A: Any, b: Any, lam: Any, weights: Any = None) -> Problem:
    """Poisson regression with a log link: half the mean deviance of counts b, with an l1 penalty.

    ``1/m sum_i [exp(z_i) - b_i z_i + b_i log b_i - b_i] + lam sum_j w_j |x_j|`` with ``z = A x``;
    a weight of 0 leaves x_j unpenalised. The deviance is 0 for a perfect fit.

    Parameters
    ----------
    A : array (m, n) or (B, m, n), or a sparse matrix
    b : array (m,) or (B, m)
        Numbers >= 0; they need not be whole.
    lam : float or (B,)
    weights : array (n,) or (B, n), optional

    Returns
    -------
    Problem

    Examples
    --------
    >>> import proxlearn as pl
    >>> problem = pl.poisson([[1.0], [1.0], [1.0]], [1, 2, 3], lam=0.5)
    >>> pl.solve(problem, tol=1e-9).x.round(4)  # exp(x) = 2 - 0.5
    array([0.4055])
    """
    A = to_matrix("A", A)
    counts = to_rows("b", b, A.shape[0], A)
    if bool((counts < 0).any()):
        least = float(to_numpy(counts).min())
        raise InputError(f"b holds {least:g}; expected counts, numbers >= 0")
    return _with_l1("poisson", A, b, counts, lam, weights)


def softmax(A: Any, b: Any, lam: Any, classes: int | None = None, weights: Any = None) -> Problem:
    """Logistic regression of C classes with an l1 penalty.

    Minimises the mean cross-entropy plus ``lam sum_j w_j |x_j|``. The answer x (C*d,) is the matrix
    of coefficients (C, d) row by row.

    Parameters
    ----------
    A : array (m, d) or (B, m, d), sparse matrix, tensor, or object with matvec
    b : array (m,) or (B, m)
        Labels 0, ..., C-1.
    lam : float or (B,)
        Weight > 0 of the penalty.
    classes : int, optional
        C; by default one more than the largest label.
    weights : array (C*d,) or (B, C*d), optional
        1 by default, in the order of x; a weight of 0 leaves x_j unpenalised.

    Returns
    -------
    Problem

    Examples
    --------
    >>> import proxlearn as pl
    >>> problem = pl.softmax([[1.0], [1.0], [-1.0], [-1.0]], [0, 0, 1, 2], lam=0.1)
    >>> x = pl.solve(problem).x
    >>> x.shape, bool(x[0] > 0)
    ((3,), True)
    """
    A = to_matrix("A", A)
    labels = to_rows("b", b, A.shape[0], A)
    numbers = to_numpy(labels)
    whole = numbers.astype(np.int64)
    if bool((whole != numbers).any()) or bool((numbers < 0).any()):
        raise InputError("b must hold the class numbers 0, 1, 2, ...; encode the labels first")
    if classes is not None and not isinstance(classes, (int, np.integer)):
        raise InputError(f"classes is {classes!r}; expected a whole number, or None to count them")
    C = int(whole.max()) + 1 if classes is None else int(classes)
    if int(whole.max()) >= C or C < 2:
        raise InputError(
            f"b has labels up to {int(whole.max())} and classes is {C}; "
            "expected at least two classes, and labels below `classes`"
        )
    _check_classes(whole.shape, C, columns=A.shape[1], counted=classes is None)
    return _with_l1("softmax", A, b, labels, lam, weights, C, classes=np.array([C]))


def _with_l1(
    loss: str, A: Matrix, b: Any, targets: Any, lam: Any, weights: Any, copies: int = 1, **more: Any
) -> Problem:
    """The problem of a loss and an l1 penalty; x has `copies` entries for each column of A."""
    w = to_weights("weights", weights, copies * A.shape[1], A)
    r = Separable(to_positive("lam", lam, A), weights=w)
    return linear_problem(loss, A, b, targets, r, **more)


def _check_classes(shape: tuple[int, int], C: int, columns: int, counted: bool) -> None:
    """Refuses a number of classes that is a mistake, before memory for it is asked for."""
    B, m = shape
    if counted and MANY_CLASSES + 10 * B * m < C:
        raise InputError(
            f"b has labels up to {C - 1} in {B * m} rows, far more classes than rows; expected the "
            "class numbers 0, 1, 2, ...: encode the labels, or give `classes`"
        )
    if C * max(B * m, B * columns) > MOST_ENTRIES:
        raise InputError(
            f"classes is {C}, which with A of {m} x {columns} makes arrays of more than "
            f"{MOST_ENTRIES} entries; expected fewer classes: encode the labels as 0, 1, 2, ..."
        )
