"""What a penalty r is: a value, a prox under a diagonal metric, and what the certificate needs."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.problems.penalty_descriptions import Grouped, OnSimplex, Separable


class Penalty(ABC):
    """A convex r, one for each instance of a batch. Subclasses are frozen dataclasses."""

    separable = True
    """True where r is a sum over coordinates, so that p may differ from one to the next."""
    finite = True
    """True where r is finite everywhere, so that a method without a prox can handle it."""

    indicator = False
    """True where r is 0 on a set and infinite elsewhere, so that r*(s v) = s r*(v) for s > 0."""

    vanishes = False
    """True where r is 0 everywhere, so that methods for smooth functions apply."""
    is_l1 = False
    """True where r is an l1 norm, with or without weights, and nothing else."""

    @property
    @abstractmethod
    def batch(self) -> int:
        """Number of instances, 1 where all instances of a problem share this r."""

    @abstractmethod
    def value(self, x: Tensor) -> Tensor:
        """r(x), (B,); infinite outside its domain."""

    def strict_value(self, x: Tensor) -> Tensor:
        """r(x), where constraints are met to rounding of x's own precision, else infinite.

        `value` also takes points that were rounded to float32.
        """
        return self.value(x)

    @abstractmethod
    def prox(self, v: Tensor, p: Tensor) -> Tensor:
        """argmin_x r(x) + 1/2 sum_i (x_i - v_i)^2 / p_i; v is (B, n), p > 0 is (B, n) or (B, 1)."""

    @abstractmethod
    def conjugate(self, v: Tensor) -> Tensor:
        """r*(v) = sup_x <v, x> - r(x), (B,); infinite outside its domain."""

    def subgrad(self, x: Tensor) -> Tensor:
        """The subgradient of smallest norm at x, (B, n)."""
        why = "says no subgradient" if self.finite else "is a constraint, which has no subgradient"
        raise InputError(
            f"{type(self).__name__} {why}; use a method with a prox, such as 'fista-restart'"
        )

    def dual_scale(self, g: Tensor) -> Tensor:
        """The largest s in [0, 1] for which -s*g lies in the domain of r*, (B,); 1 by default."""
        return g.new_ones(len(g))

    def in_units(self, variable: Tensor, objective: Tensor) -> "Penalty | None":
        """x -> 2^-objective r(2^variable x) for integer exponents (B,); None where not known."""
        return None

    def sides(self) -> Tensor | None:
        """Where x can go to infinity at no cost, so that r* is finite on one side of 0 only.

        (B or 1, n or 1) with 1 where x_i can go to +infinity, -1 where it can go to -infinity, and
        0 elsewhere; None where that is nowhere.
        """
        return None

    def level(self) -> Tensor | None:
        """The size of r's subgradients away from 0, lam w, (B, n) or (B, 1); None without a lam."""
        return None

    def with_lam(self, lam: Tensor) -> "Penalty | None":
        """The same penalty with another lam (B,), for paths; None where there is no lam to vary."""
        return None

    def norm_with(self, lam: Tensor) -> "Penalty | None":
        """lam times the norm in r, which decides from which lam on x is 0: r itself by default."""
        return self.with_lam(lam)

    def tie(self, p: Tensor) -> Tensor:
        """The p nearest to a given one, (B, n), for which the prox exists.

        By default p itself where r is separable, and elsewhere its mean over the coordinates,
        (B, 1): a prox that couples coordinates need not exist in closed form for several values.
        """
        return p if self.separable else p.mean(-1, keepdim=True)

    def core_form(self) -> Separable | Grouped | OnSimplex | None:
        """r in the form that the compiled core solves; None where it has another form."""
        return None

    def free(self) -> Tensor | None:
        """Where r does not depend on x at all, a mask (B or 1, n); None where it always does."""
        return None


def soft_threshold(v: Tensor, t: Tensor) -> Tensor:
    """sign(v) max(|v| - t, 0)."""
    return v.sign() * (v.abs() - t).clamp(min=0)


def zero_or_inf(inside: Tensor, like: Tensor) -> Tensor:
    """An indicator: 0 for the instances whose every coordinate is `inside` (B, n), else inf."""
    zero = like.new_zeros(())
    return torch.where(inside.all(-1), zero, zero + torch.inf)
