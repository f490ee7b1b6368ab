"""Problems from arrays: `lasso`, `logistic`, `softmax`, `elastic_net`, `nnls`, ...

Every constructor takes NumPy arrays, tensors, scipy sparse matrices or matvec objects for A, one
problem or a batch: A (m, n) is shared by the instances, A (B, m, n) gives each its own; b is (m,)
or (B, m); numbers such as lam are one for all or (B,). The precision is that of A. The answers of a
problem are tensors where A or b is a tensor, and NumPy arrays elsewhere.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from proxlearn.arrays import (
    Matrix,
    is_tensor,
    to_array,
    to_matrix,
    to_numpy,
    to_positive,
    to_rows,
    to_weights,
)
from proxlearn.description import LinearModel, Separable
from proxlearn.errors import InputError, needing_torch
from proxlearn.problem import Problem

if TYPE_CHECKING:
    from proxlearn.penalties import Penalty
    from proxlearn.smooth import Smooth

MANY_CLASSES = 1000
"""More classes than ten a row and this are taken for labels that were not encoded."""
MOST_ENTRIES = 2**31
"""Largest number of entries of the labels (m, C) and the answer (C, d): 16 GiB in float64."""


def prepare(A: Any) -> Matrix:
    """A checked once, for many problems: give the result to the constructors as A.

    What a solve computes from A alone, such as its norm for a first-order method, is remembered
    with it. The memory is that of A itself, but for sparse matrices that are not stored by columns.

    >>> import numpy as np, proxlearn as pl
    >>> A = pl.prepare(np.eye(3))
    >>> [round(float(pl.solve(pl.lasso(A, [b, 0, 0], lam=0.5)).x[0]), 6) for b in (1.0, 2.0)]
    [0.5, 1.5]
    """
    return to_matrix("A", A)


def lasso(A: Any, b: Any, lam: Any, weights: Any = None) -> Problem:
    """``1/2 ||A x - b||^2 + lam sum_i w_i |x_i|``; a weight of 0 leaves x_i unpenalised.

    >>> import proxlearn as pl
    >>> problem = pl.lasso([[1.0, 0.0], [0.0, 2.0]], [1.0, 1.0], lam=0.1)
    >>> problem.n, problem.batch
    (2, 1)
    """
    A = to_matrix("A", A)
    targets = to_rows("b", b, A.shape[0], A)
    r = Separable(to_positive("lam", lam, A), weights=to_weights("weights", weights, A.shape[1], A))
    return _linear("squares", A, b, targets, r)


def elastic_net(A: Any, b: Any, lam: Any, lam2: Any, weights: Any = None) -> Problem:
    """``1/2 ||A x - b||^2 + sum_i w_i (lam |x_i| + lam2/2 x_i^2)``, lam >= 0 and lam2 > 0."""
    A = to_matrix("A", A)
    targets = to_rows("b", b, A.shape[0], A)
    lam = to_positive("lam", lam, A, at_least=0)
    lam2 = to_positive("lam2", lam2, A)
    r = Separable(lam, lam2, to_weights("weights", weights, A.shape[1], A))
    return _linear("squares", A, b, targets, r)


def nnls(A: Any, b: Any) -> Problem:
    """``1/2 ||A x - b||^2`` subject to x >= 0."""
    A = to_matrix("A", A)
    r = Separable(lower=np.zeros((1, 1)))
    return _linear("squares", A, b, to_rows("b", b, A.shape[0], A), r)


def simplex_ls(A: Any, b: Any, radius: Any = 1.0) -> Problem:
    """``1/2 ||A x - b||^2`` subject to x >= 0 and sum x = radius: unmixing."""
    A = to_matrix("A", A)
    targets = to_rows("b", b, A.shape[0], A)
    radius = to_positive("radius", radius, A)
    _check_batches(A, targets, {"radius": radius})
    with needing_torch("least squares on the simplex"):
        from proxlearn.penalties import Simplex
        from proxlearn.smooth import LeastSquares
        from proxlearn.tensors import as_tensor

    return _composite(
        A, b, LeastSquares(A.operator, as_tensor(targets)), Simplex(as_tensor(radius))
    )


def group_lasso(A: Any, b: Any, lam: Any, groups: Any, weights: Any = None) -> Problem:
    """``1/2 ||A x - b||^2 + lam sum_g w_g ||x_g||_2``; `groups` (n,) is each coordinate's group.

    Groups are numbered from 0, and none may be empty. Weights are (G,), 1 by default; the square
    root of the group's size is another usual choice.
    """
    A = to_matrix("A", A)
    targets = to_rows("b", b, A.shape[0], A)
    numbers = _groups(groups, A.shape[1])
    w = to_weights("weights", weights, int(numbers.max()) + 1, A)
    if w is not None and bool((w == 0).any()):
        raise InputError("weights of groups must be > 0; an unpenalised group is not supported")
    lam = to_positive("lam", lam, A)
    _check_batches(A, targets, {"lam": lam, "weights": w})
    with needing_torch("the group LASSO"):
        from proxlearn.penalties import GroupL1
        from proxlearn.smooth import LeastSquares
        from proxlearn.tensors import as_tensor

    f = LeastSquares(A.operator, as_tensor(targets))
    places = as_tensor(numbers).to(f.like.device)
    return _composite(A, b, f, GroupL1(as_tensor(lam), places, None if w is None else as_tensor(w)))


def logistic(A: Any, b: Any, lam: Any, weights: Any = None) -> Problem:
    """``1/m sum_i log(1 + exp(-s_i a_i^T x)) + lam sum_j w_j |x_j|``, s = 2b - 1, b in {0, 1}."""
    A = to_matrix("A", A)
    labels = to_rows("b", b, A.shape[0], A)
    if not bool(((labels == 0) | (labels == 1)).all()):
        found = ", ".join(f"{v:g}" for v in np.unique(to_numpy(labels))[:4])
        raise InputError(f"b holds labels such as {found}; expected only 0 and 1")
    r = Separable(to_positive("lam", lam, A), weights=to_weights("weights", weights, A.shape[1], A))
    return _linear("logistic", A, b, labels, r)


def softmax(A: Any, b: Any, lam: Any, classes: int | None = None, weights: Any = None) -> Problem:
    """Mean cross-entropy of C classes plus ``lam sum w |x|``; labels b are 0, ..., C-1.

    x (C*d,) is the weight matrix (C, d) row by row; `weights`, if given, has the same layout.
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
    lam = to_positive("lam", lam, A)
    w = to_weights("weights", weights, C * A.shape[1], A)
    _check_batches(A, labels, {"lam": lam, "weights": w})
    with needing_torch("the softmax model"):
        from torch.nn.functional import one_hot

        from proxlearn.penalties import L1
        from proxlearn.smooth import Softmax
        from proxlearn.tensors import as_tensor

    tensor = as_tensor(labels)
    ones = one_hot(tensor.long(), C).mT.to(tensor.dtype).contiguous()
    r = L1(as_tensor(lam), None if w is None else as_tensor(w))
    return _composite(A, b, Softmax(A.operator, ones, C), r)


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


def _linear(loss: str, A: Matrix, b: Any, targets: Any, r: Separable) -> Problem:
    _check_batches(A, targets, {"lam": r.lam, "lam2": r.lam2, "weights": r.weights})
    model = LinearModel(loss, A, targets, r)
    single = model.batch == 1 and np.ndim(b) == 1
    return Problem.described(model, single, numpy=not (A.from_tensors or is_tensor(b)))


def _composite(A: Matrix, b: Any, f: "Smooth", r: "Penalty") -> Problem:
    single = max(f.batch, r.batch) == 1 and np.ndim(b) == 1
    return Problem(f, r, single, numpy=not (A.from_tensors or is_tensor(b)))


def _check_batches(A: Matrix, b: Any, penalty: dict[str, Any]) -> None:
    if A.batch != 1 and len(b) not in (1, A.batch):
        raise InputError(f"A has {A.batch} instances and b has {len(b)}; expected as many, or one")
    counts = {name: len(value) for name, value in penalty.items() if value is not None}
    if len(set(counts.values()) - {1}) > 1:
        given = " and ".join(f"{name} has {count} instances" for name, count in counts.items())
        raise InputError(f"{given}; expected as many, or one")


def _groups(groups: Any, n: int) -> Any:
    numbers = to_numpy(to_array("groups", groups))
    if numbers.shape != (n,):
        raise InputError(
            f"groups has shape {numbers.shape}; expected ({n},), a number a coordinate"
        )
    whole = numbers.astype(np.int64)
    used = np.unique(whole)
    if bool((whole != numbers).any()) or not np.array_equal(used, np.arange(len(used))):
        raise InputError("groups must be numbered 0, 1, ..., G-1 with none left out")
    return whole
