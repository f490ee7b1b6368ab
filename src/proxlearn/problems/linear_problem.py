"""The last step of all constructors: validated arrays become a `Problem`."""

from typing import Any

import numpy as np

from proxlearn.errors import InputError
from proxlearn.problems.arrays import Matrix, is_tensor
from proxlearn.problems.description import LinearModel
from proxlearn.problems.penalty_descriptions import Grouped, OnSimplex, Separable
from proxlearn.problems.problem import Problem


def linear_problem(
    loss: str,
    A: Matrix,
    b: Any,
    targets: Any,
    r: Separable | Grouped | OnSimplex,
    axes: int = 1,
    **options: Any,
) -> Problem:
    """The problem of a loss, by its name, of A x, and of a penalty r.

    `b` is what the user gave and `targets` is that after validation; one instance of b has `axes`
    axes. What else the loss takes are the `options`. Arrays (B, ...) must agree in B.
    """
    model = LinearModel(loss, A, targets, r, options)
    batch = model.batch
    if batch > 1:
        _check_batches(A, targets, r.per_instance | options)
    plain = type(b) is np.ndarray
    single = batch == 1 and (b.ndim if plain else np.ndim(b)) == axes
    numpy = not A.from_tensors and (plain or not is_tensor(b))
    return Problem.described(model, batch, single, numpy)


def _check_batches(A: Matrix, b: Any, penalty: dict[str, Any]) -> None:
    if A.batch != 1 and len(b) not in (1, A.batch):
        raise InputError(f"A has {A.batch} instances and b has {len(b)}; expected as many, or one")
    counts = {name: len(value) for name, value in penalty.items() if value is not None}
    if len(set(counts.values()) - {1}) > 1:
        given = " and ".join(f"{name} has {count} instances" for name, count in counts.items())
        raise InputError(f"{given}; expected as many, or one")
