"""The description of a linear model by plain arrays and names, which every engine reads.

    minimise over x    loss(A x; b) + sum_j w_j (lam |x_j| + lam2/2 x_j^2)
    subject to         lower_j <= x_j <= upper_j

or with x on a simplex, or with
``lam (l1_ratio sum_j |x_j| + (1 - l1_ratio) sum_g w_g |x_g|)`` for groups of coordinates.

Problems of this form are solved by the compiled core; `proxlearn.problems.penalty_descriptions` has
their penalties. The same problem as objects of PyTorch, for everything else, is made of this
description when it is asked for.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from proxlearn.core.glm import Glm, describe
from proxlearn.core.losses import LOSSES
from proxlearn.problems.arrays import Matrix, to_numpy
from proxlearn.problems.penalty_descriptions import Grouped, OnSimplex, Separable

if TYPE_CHECKING:
    from proxlearn.problems.penalties import Penalty
    from proxlearn.problems.smooth import Smooth

MOST_ENTRIES = 2**31 - 1
"""Entries of a sparse matrix that the core can number."""


@dataclass
class LinearModel:
    """A problem with a loss of A x and a penalty that the core knows."""

    loss: str
    """A name of `proxlearn.core.losses.LOSSES`."""
    A: Matrix
    b: Any
    """(B, m)"""
    penalty: Separable | Grouped | OnSimplex
    options: dict[str, Any] = field(default_factory=dict)
    """What else the loss takes, arrays (B,) or (1,)."""

    @property
    def tasks(self) -> int:
        """Number of targets that share A; b is (B, T m) for several, task after task."""
        return self.penalty.tasks

    @property
    def n(self) -> int:
        """Number of variables; the matrix of several tasks is (n, T), row by row.

        That of several classes is (classes, n), row by row.
        """
        classes = int(self.options["classes"][0]) if "classes" in self.options else 1
        return self.A.shape[1] * self.penalty.tasks * classes

    @property
    def batch(self) -> int:
        """Number of instances."""
        count = max(self.A.batch, len(self.b), self.penalty.batch)
        return max(count, *map(len, self.options.values())) if self.options else count

    @property
    def covered(self) -> bool:
        """True where the core can read A; it has no groups of several classes."""
        A = self.A.array
        if "classes" in self.options and not self.penalty.separable:
            return False
        return A is not None and (isinstance(A, np.ndarray) or A.nnz <= MOST_ENTRIES)

    @property
    def has_starts(self) -> bool:
        """True where a method of `proxlearn.solving.named_starts` can start the core."""
        return self.penalty.proximal and LOSSES[self.loss].curvature is not None

    def options_of(self, i: int) -> dict[str, Any]:
        """The options of the loss of instance i."""
        arrays = {name: to_numpy(value) for name, value in self.options.items()}
        return {name: v[i if len(v) > 1 else 0] for name, v in arrays.items()}

    def glm(self, penalty: Separable | Grouped | OnSimplex | None = None) -> Glm:
        """The problem for the core, with another penalty where one is given."""
        r = self.penalty if penalty is None else penalty
        return describe(
            self.A.array,
            to_numpy(self.b),
            self.loss,
            largest=self.A.largest,
            options={name: to_numpy(value) for name, value in self.options.items()},
            **r.numbers(self.n),
        )

    def terms(self) -> "tuple[Smooth, Penalty]":
        """The same as objects of PyTorch: f and r."""
        from proxlearn.problems.smooth import BY_LOSS
        from proxlearn.problems.tensors import as_tensor

        options = {name: as_tensor(value) for name, value in self.options.items()}
        A = self.A.operator
        if self.tasks > 1:
            from proxlearn.problems.task_operator import ForTasks

            A = ForTasks(A, self.tasks)
        f = BY_LOSS[self.loss](A, as_tensor(self.b), **options)
        return f, self.penalty.term()


def model_of_plain(plain: Any) -> LinearModel:
    """The description of what `plain_squares` and `plain_nnls` of the core hold."""
    A = Matrix(plain.A, plain.A.shape, 1, False, plain.largest, plain.products)
    lam2 = np.array([plain.l2]) if plain.l2 > 0 else None
    lower = np.zeros((1, 1)) if plain.nonnegative else None
    r = Separable(np.array([plain.l1]) if plain.l1 > 0 else None, lam2, lower=lower)
    return LinearModel("squares", A, plain.b[None], r)
