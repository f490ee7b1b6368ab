"""What a solve returns: the answer of every instance, how it ended, and what it cost."""

from dataclasses import dataclass
from enum import Enum

from torch import Tensor


class Status(str, Enum):
    """How an instance ended; `advice` says what to do about it."""

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


@dataclass(frozen=True)
class History:
    """What `record=True` keeps, at x_0, ..., x_K, in float64; recording is not timed or counted."""

    objective: Tensor
    """(K+1, B)"""
    gap: Tensor
    """(K+1, B)"""
    grad_evals: Tensor
    """(K+1, B)"""
    seconds: Tensor
    """(K+1,)"""


@dataclass(frozen=True)
class Solution:
    """The answer to a batch of B instances."""

    x: Tensor
    """(B, n), or (n,) where one problem was given."""
    objective: Tensor
    """F(x), (B,), float64."""
    gap: Tensor
    """Certified upper bound on F(x) - F*, (B,), float64; infinite where none is known."""
    status: tuple[Status, ...]
    """B of them."""
    iterations: Tensor
    """(B,)"""
    grad_evals: Tensor
    """Gradient equivalents, (B,): the method's own, and the checks that were not free."""
    seconds: float
    history: History | None = None

    @property
    def solved(self) -> bool:
        """True where every instance met the tolerance."""
        return all(s == Status.SOLVED for s in self.status)

    def __str__(self) -> str:
        counts = {s: self.status.count(s) for s in Status if s in self.status}
        states = ", ".join(f"{c} {s}" if len(self.status) > 1 else s for s, c in counts.items())
        worst = int(self.gap.argmax())
        return (
            f"{states}: objective {self.objective.mean().item():.6g}, "
            f"gap {self.gap[worst].item():.1e}, "
            f"{self.iterations.double().mean().item():.4g} iterations, "
            f"{self.grad_evals.double().mean().item():.4g} gradients"
        )
