"""What a solve returns: the answer of every instance, how it ended, and what it cost."""

from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any, TypeAlias, TypeVar

from proxlearn.problems.arrays import to_numpy

Array: TypeAlias = Any
"""A NumPy array or a tensor, by what the problem was made of."""
T = TypeVar("T", bound="InArrays")


class Status(str, Enum):
    """How an instance ended; `advice` says what to do about it.

    Examples
    --------
    >>> import proxlearn as pl
    >>> pl.Status.SOLVED.advice
    'The certificate meets the tolerance.'
    """

    SOLVED = "SOLVED"
    MAX_ITER = "MAX_ITER"
    TIME_LIMIT = "TIME_LIMIT"
    NUMERICAL_ERROR = "NUMERICAL_ERROR"

    __str__ = str.__str__

    @property
    def advice(self) -> str:
        """What the status means and what to do, in words."""
        return _ADVICE[self]


_ADVICE = {
    Status.SOLVED: "The certificate meets the tolerance.",
    Status.MAX_ITER: "The tolerance was not reached: raise max_iter, loosen tol, or use float64.",
    Status.TIME_LIMIT: "The time limit came first: raise time_limit or loosen tol.",
    Status.NUMERICAL_ERROR: "The iterates left the range of numbers; x is the last finite one: "
    "rescale the data, use float64, or another optimizer.",
}


class InArrays:
    """Answers in NumPy arrays or tensors. Subclasses are frozen dataclasses."""

    def in_numpy(self: T) -> T:
        """The same with NumPy arrays in place of tensors."""
        arrays = {}
        for part in fields(self):  # type: ignore[arg-type]
            value = getattr(self, part.name)
            arrays[part.name] = value.in_numpy() if isinstance(value, InArrays) else to_numpy(value)
        return replace(self, **arrays)  # type: ignore[type-var]


@dataclass(frozen=True)
class History(InArrays):
    """What `record=True` keeps, at x_0, ..., x_K, in float64; recording is not timed or counted."""

    objective: Array
    """(K+1, B)"""
    gap: Array
    """(K+1, B)"""
    grad_evals: Array
    """(K+1, B)"""
    seconds: Array
    """(K+1,)"""


@dataclass(frozen=True)
class Solution(InArrays):
    """The answer to a batch of B instances.

    Examples
    --------
    >>> import proxlearn as pl
    >>> solution = pl.solve(pl.lasso([[1.0, 0.0], [0.0, 1.0]], [3.0, 0.5], lam=1.0))
    >>> solution.solved, solution.x.tolist()
    (True, [2.0, 0.0])
    """

    x: Array
    """(B, n), or (n,) where one problem was given."""
    objective: Array
    """F(x), (B,), float64."""
    gap: Array
    """Certified upper bound on F(x) - F*, (B,), float64; infinite where none is known."""
    status: tuple[Status, ...]
    """How each instance ended, B of them."""
    iterations: Array
    """Number of iterations, (B,)."""
    grad_evals: Array
    """Gradient equivalents, (B,): products with all of A and of its transpose count as one."""
    seconds: float
    """The time of the whole batch."""
    history: History | None = None
    """The iterates' objectives and times, where they were recorded."""
    engine: str = "torch"
    """Which engine solved it: the compiled "core", or the loop in "torch"."""
    image: Array | None = None
    """Of `sparse_recovery`, the pictures (B, h, w), or (h, w) where one problem was given."""

    @classmethod
    def of(
        cls,
        x: Array,
        objective: Array,
        gap: Array,
        status: tuple[Status, ...],
        iterations: Array,
        grad_evals: Array,
        seconds: float,
    ) -> "Solution":
        """A solution with what the core found; filling a frozen dataclass takes 2 microseconds."""
        solution = cls.__new__(cls)
        solution.__dict__.update(
            x=x, objective=objective, gap=gap, status=status, iterations=iterations,
            grad_evals=grad_evals, seconds=seconds, history=None, engine="core", image=None,
        )  # fmt: skip
        return solution

    @property
    def solved(self) -> bool:
        """True where every instance met the tolerance."""
        return all(s == Status.SOLVED for s in self.status)

    def __str__(self) -> str:
        counts = {s: self.status.count(s) for s in Status if s in self.status}
        states = ", ".join(f"{c} {s}" if len(self.status) > 1 else s for s, c in counts.items())
        gap, objective = (to_numpy(v) for v in (self.gap, self.objective))
        iterations, gradients = (to_numpy(v) for v in (self.iterations, self.grad_evals))
        return (
            f"{states}: objective {objective.mean():.6g}, gap {gap.max():.1e}, "
            f"{iterations.mean():.4g} iterations, {gradients.mean():.4g} gradients"
        )


@dataclass(frozen=True)
class SolutionPath(InArrays):
    """The answers for K values of lam, largest first, for a batch of B instances.

    Examples
    --------
    >>> import proxlearn as pl
    >>> problem = pl.lasso([[1.0, 0.0], [0.0, 1.0]], [3.0, 0.5], lam=1.0)
    >>> found = pl.path(problem, lams=[2.0, 1.0])
    >>> found.x.tolist()
    [[1.0, 0.0], [2.0, 0.0]]
    """

    lams: Array
    """(K, B), or (K,) where one problem was given."""
    x: Array
    """(K, B, n), or (K, n) where one problem was given."""
    objective: Array
    """F(x), (K, B), float64."""
    gap: Array
    """Certified upper bound on F(x) - F*, (K, B), float64; infinite where none is known."""
    status: tuple[tuple[Status, ...], ...]
    """How each instance ended, K rows of B."""
    iterations: Array
    """Number of iterations, (K, B)."""
    grad_evals: Array
    """Gradient equivalents, (K, B)."""
    seconds: float
    """The time of the whole path."""
    engine: str = "torch"
    """What solved it: the compiled "core", or the loop in "torch"."""

    @property
    def solved(self) -> bool:
        """True where every point of every instance met the tolerance."""
        return all(s == Status.SOLVED for row in self.status for s in row)
