"""Problems from arrays: `lasso`, `logistic`, `softmax`, `elastic_net`, `nnls`, ...

Every constructor takes NumPy arrays, tensors, scipy sparse matrices or matvec objects for A, one
problem or a batch: A (m, n) is shared by the instances, A (B, m, n) gives each its own; b is (m,)
or (B, m); numbers such as lam are one for all or (B,). The precision is that of A.
"""

from dataclasses import fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from proxlearn.arrays import to_operator, to_positive, to_rows, to_tensor, to_weights
from proxlearn.errors import InputError
from proxlearn.operators import Operator
from proxlearn.penalties import L1, ElasticNet, GroupL1, NonNegative, Penalty, Simplex
from proxlearn.problem import Problem
from proxlearn.smooth import LeastSquares, Logistic, Softmax

MANY_CLASSES = 1000
"""More classes than ten a row and this are taken for labels that were not encoded."""
MOST_ENTRIES = 2**31
"""Largest number of entries of the labels (m, C) and the answer (C, d): 16 GiB in float64."""


def prepare(A: Any) -> Operator:
    """A checked and measured once, for many problems: give the result to the constructors as A.

    The array is validated, its norm computed and remembered; so is, once it was needed, the Gram
    matrix of an A that many instances share. The memory is that of A itself where it is a tensor or
    a contiguous array.

    >>> import numpy as np, proxlearn as pl
    >>> A = pl.prepare(np.eye(3))
    >>> [round(float(pl.solve(pl.lasso(A, [b, 0, 0], lam=0.5)).x[0]), 6) for b in (1.0, 2.0)]
    [0.5, 1.5]
    """
    operator = to_operator("A", A)
    operator.norm()
    return operator


def lasso(A: Any, b: Any, lam: Any, weights: Any = None) -> Problem:
    """``1/2 ||A x - b||^2 + lam sum_i w_i |x_i|``; a weight of 0 leaves x_i unpenalised.

    >>> import proxlearn as pl
    >>> problem = pl.lasso([[1.0, 0.0], [0.0, 2.0]], [1.0, 1.0], lam=0.1)
    >>> problem.n, problem.batch
    (2, 1)
    """
    A = to_operator("A", A)
    f = LeastSquares(A, to_rows("b", b, A.shape[0], A))
    return _problem(b, f, L1(to_positive("lam", lam, A), to_weights("weights", weights, f.n, A)))


def elastic_net(A: Any, b: Any, lam: Any, lam2: Any, weights: Any = None) -> Problem:
    """``1/2 ||A x - b||^2 + sum_i w_i (lam |x_i| + lam2/2 x_i^2)``, lam >= 0 and lam2 > 0."""
    A = to_operator("A", A)
    f = LeastSquares(A, to_rows("b", b, A.shape[0], A))
    lam = to_positive("lam", lam, A, at_least=0)
    lam2 = to_positive("lam2", lam2, A)
    return _problem(b, f, ElasticNet(lam, lam2, to_weights("weights", weights, f.n, A)))


def nnls(A: Any, b: Any) -> Problem:
    """``1/2 ||A x - b||^2`` subject to x >= 0."""
    A = to_operator("A", A)
    return _problem(b, LeastSquares(A, to_rows("b", b, A.shape[0], A)), NonNegative())


def simplex_ls(A: Any, b: Any, radius: Any = 1.0) -> Problem:
    """``1/2 ||A x - b||^2`` subject to x >= 0 and sum x = radius: unmixing."""
    A = to_operator("A", A)
    f = LeastSquares(A, to_rows("b", b, A.shape[0], A))
    return _problem(b, f, Simplex(to_positive("radius", radius, A)))


def group_lasso(A: Any, b: Any, lam: Any, groups: Any, weights: Any = None) -> Problem:
    """``1/2 ||A x - b||^2 + lam sum_g w_g ||x_g||_2``; `groups` (n,) is each coordinate's group.

    Groups are numbered from 0, and none may be empty. Weights are (G,), 1 by default; the square
    root of the group's size is another usual choice.
    """
    A = to_operator("A", A)
    f = LeastSquares(A, to_rows("b", b, A.shape[0], A))
    groups = _groups(groups, A)
    w = to_weights("weights", weights, int(groups.max()) + 1, A)
    if w is not None and bool((w == 0).any()):
        raise InputError("weights of groups must be > 0; an unpenalised group is not supported")
    return _problem(b, f, GroupL1(to_positive("lam", lam, A), groups, w))


def logistic(A: Any, b: Any, lam: Any, weights: Any = None) -> Problem:
    """``1/m sum_i log(1 + exp(-s_i a_i^T x)) + lam sum_j w_j |x_j|``, s = 2b - 1, b in {0, 1}."""
    A = to_operator("A", A)
    labels = to_rows("b", b, A.shape[0], A)
    if not bool(((labels == 0) | (labels == 1)).all()):
        found = ", ".join(f"{v:g}" for v in labels.unique()[:4].tolist())
        raise InputError(f"b holds labels such as {found}; expected only 0 and 1")
    f = Logistic(A, labels)
    return _problem(b, f, L1(to_positive("lam", lam, A), to_weights("weights", weights, f.n, A)))


def softmax(A: Any, b: Any, lam: Any, classes: int | None = None, weights: Any = None) -> Problem:
    """Mean cross-entropy of C classes plus ``lam sum w |x|``; labels b are 0, ..., C-1.

    x (C*d,) is the weight matrix (C, d) row by row; `weights`, if given, has the same layout.
    """
    A = to_operator("A", A)
    labels = to_rows("b", b, A.shape[0], A)
    whole = labels.long()
    if bool((whole != labels).any()) or bool((labels < 0).any()):
        raise InputError("b must hold the class numbers 0, 1, 2, ...; encode the labels first")
    if classes is not None and not isinstance(classes, (int, np.integer)):
        raise InputError(f"classes is {classes!r}; expected a whole number, or None to count them")
    C = int(whole.max()) + 1 if classes is None else int(classes)
    if int(whole.max()) >= C or C < 2:
        raise InputError(
            f"b has labels up to {int(whole.max())} and classes is {C}; "
            "expected at least two classes, and labels below `classes`"
        )
    _check_classes(labels, C, columns=A.shape[1], counted=classes is None)
    one_hot = torch.nn.functional.one_hot(whole, C).mT.to(labels.dtype).contiguous()
    f = Softmax(A, one_hot, C)
    return _problem(b, f, L1(to_positive("lam", lam, A), to_weights("weights", weights, f.n, A)))


def _check_classes(labels: Tensor, C: int, columns: int, counted: bool) -> None:
    """Refuses a number of classes that is a mistake, before memory for it is asked for."""
    B, m = labels.shape
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


def _problem(b: Any, f: LeastSquares | Logistic | Softmax, r: Penalty) -> Problem:
    if f.A.batch != 1 and len(f.b) not in (1, f.A.batch):
        raise InputError(
            f"A has {f.A.batch} instances and b has {len(f.b)}; expected as many, or one"
        )
    counts = {
        part.name: len(value)
        for part in fields(r)  # type: ignore[arg-type]
        if isinstance(value := getattr(r, part.name), Tensor) and not part.metadata.get("shared")
    }
    if len(set(counts.values()) - {1}) > 1:
        given = " and ".join(f"{name} has {count} instances" for name, count in counts.items())
        raise InputError(f"{given}; expected as many, or one")
    return Problem(f, r, single=max(f.batch, r.batch) == 1 and np.ndim(b) == 1)


def _groups(groups: Any, A: Operator) -> Tensor:
    numbers = to_tensor("groups", groups)
    n = A.shape[1]
    if numbers.shape != (n,):
        raise InputError(
            f"groups has shape {tuple(numbers.shape)}; expected ({n},), a number a coordinate"
        )
    whole = numbers.long()
    used = whole.unique()
    if bool((whole != numbers).any()) or not torch.equal(used, torch.arange(len(used))):
        raise InputError("groups must be numbered 0, 1, ..., G-1 with none left out")
    return whole.to(A.device)
