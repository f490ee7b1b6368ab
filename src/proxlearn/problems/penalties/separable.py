"""Penalties that are sums over coordinates: one class with four arrays, and its names.

    r(x) = sum_i w_i (lam |x_i| + lam2/2 x_i^2)    where lower <= x <= upper, infinite elsewhere

`L1`, `ElasticNet`, `NonNegative`, `NonNegativeElasticNet`, `Box` and `Zero` only say which of the
arrays they have; `field()` marks those that have to be given.
"""

from dataclasses import dataclass, field, fields, replace

import numpy as np
import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.problems.penalties.penalty_term import Penalty, soft_threshold, zero_or_inf
from proxlearn.problems.penalty_descriptions import Separable as Description
from proxlearn.problems.powers import times_power


class Separable(Penalty):
    """``sum_i w_i (lam |x_i| + lam2/2 x_i^2)`` where ``lower <= x <= upper``, else infinite.

    Attributes
    ----------
    lam, lam2 : Tensor (B,), optional
        Levels >= 0 of the l1 norm and of the squares.
    weights : Tensor (B, n) or (1, n), optional
        Weights w >= 0, 1 by default; 0 leaves a coordinate unpenalised: an intercept.
    lower, upper : Tensor (B or 1, n or 1) or float, optional
        Bounds. With lam or lam2 the lower one is 0 and there is no upper one.
    """

    lam: Tensor | None = None
    lam2: Tensor | None = None
    weights: Tensor | None = None
    lower: Tensor | float | None = None
    upper: Tensor | float | None = None

    @property
    def batch(self) -> int:
        parts = (self.lam, self.lam2, self.weights, self.lower, self.upper)
        return max([1, *(len(part) for part in parts if isinstance(part, Tensor))])

    def levels(self) -> tuple[Tensor | float, Tensor | float]:
        """w lam and w lam2, each (B, n) or (B, 1); 0 for what is not there."""
        w = 1.0 if self.weights is None else self.weights
        t = 0.0 if self.lam is None else self.lam[:, None] * w
        return t, 0.0 if self.lam2 is None else self.lam2[:, None] * w

    def level(self) -> Tensor | None:
        t = self.levels()[0]
        return t if isinstance(t, Tensor) else None

    def value(self, x: Tensor) -> Tensor:
        t, q = self.levels()
        total = x.new_zeros(len(x))
        if self.lam is not None:
            total = (t * x.abs()).sum(-1)
        if self.lam2 is not None:
            # (q x) x, not q x^2: the square of a small or large x leaves the range of the dtype.
            total = total + (0.5 * (q * x) * x).sum(-1)
        return total if self.finite else total + zero_or_inf(self._clamped(x) == x, x)

    def prox(self, v: Tensor, p: Tensor) -> Tensor:
        t, q = self.levels()
        x = v if self.lam is None else soft_threshold(v, p * t)
        x = x if self.lam2 is None else x / (1 + p * q)
        return self._clamped(x)

    def _clamped(self, x: Tensor) -> Tensor:
        """The point nearest to x within the bounds."""
        x = x if self.lower is None else x.clamp(min=self.lower)
        return x if self.upper is None else x.clamp(max=self.upper)

    def subgrad(self, x: Tensor) -> Tensor:
        if not self.finite:
            return super().subgrad(x)
        t, q = self.levels()
        return t * x.sign() + q * x

    def conjugate(self, v: Tensor) -> Tensor:
        """At the x between the bounds that maximises ``<v, x> - r(x)``; infinite if x is."""
        t, q = (torch.as_tensor(part).to(v) for part in self.levels())
        curved = q > 0
        # Where only |v_i| <= t_i makes r* finite, v_i may be above t_i by rounding.
        slack = torch.where(curved, 0.0, 8 * torch.finfo(v.dtype).eps * t)
        e = soft_threshold(v, t + slack)
        low, high = self._limits(v)
        flat = torch.where(e > 0, high, torch.where(e < 0, low, e))
        x = torch.where(curved, self._clamped(e / torch.where(curved, q, 1.0)), flat)
        # x (e - q x / 2) and not e^2 / (2 q): e^2 alone may leave the range.
        half = 0.5 * torch.where(curved, q * x, 0.0)
        return torch.where((x == 0) | (e == 0), 0.0, x * (e - half)).sum(-1)

    def _limits(self, v: Tensor) -> tuple[Tensor, Tensor]:
        """The bounds as tensors like v, infinite where there are none."""
        low = -torch.inf if self.lower is None else self.lower
        high = torch.inf if self.upper is None else self.upper
        return torch.as_tensor(low).to(v), torch.as_tensor(high).to(v)

    def dual_scale(self, g: Tensor) -> Tensor:
        if self.lam is None or (self.lam2 is not None and self.lower is None):
            return super().dual_scale(g)
        t, q = (torch.as_tensor(part).to(g).expand_as(g) for part in self.levels())
        size = g.abs() if self.lower is None else -g
        over = (size > t) & (t > 0) & (q == 0)
        # Divided by 1 elsewhere: 0/0 would spoil the derivative of a value that is not used.
        return torch.where(over, t / torch.where(over, size, 1.0), 1.0).amin(-1)

    def sides(self) -> Tensor | None:
        if self.lower is None and self.upper is None:
            return None
        like = next((p for p in (self.lam, self.lower) if isinstance(p, Tensor)), torch.ones(1))
        t, q = (torch.as_tensor(part).to(like) for part in self.levels())
        low, high = self._limits(like)
        flat = (t == 0) & (q == 0)
        up, down = flat & high.isposinf(), flat & low.isneginf()
        if not bool((up | down).any()) or bool((up & down).any()):
            return None  # an unbounded coordinate leaves no strictly feasible direction
        sides: Tensor = torch.atleast_2d(up.to(like) - down.to(like))
        return sides

    def in_units(self, variable: Tensor, objective: Tensor) -> "Separable":
        powers = {
            "lam": variable - objective, "lam2": 2 * variable - objective,
            "lower": -variable, "upper": -variable,
        }  # fmt: skip
        own = [part.name for part in fields(self) if part.name in powers]  # type: ignore[arg-type]
        changed = {name: times_power(getattr(self, name), powers[name]) for name in own}
        return replace(self, **changed)  # type: ignore[type-var]

    def with_lam(self, lam: Tensor) -> "Separable | None":
        """The same with another lam; the ratio lam2 / lam is kept."""
        if self.lam is None or not self.finite:
            return None
        if self.lam2 is None:
            return L1(lam, self.weights)
        if bool((self.lam <= 0).any()):
            raise InputError(
                "lam is 0, so its ratio to lam2 is unknown; expected an elastic net > 0"
            )
        return ElasticNet(lam, lam * (self.lam2 / self.lam), self.weights)

    def norm_with(self, lam: Tensor) -> "Separable | None":
        return None if self.lam is None or not self.finite else L1(lam, self.weights)

    def free(self) -> Tensor | None:
        if self.weights is None or not self.finite or bool((self.weights != 0).all()):
            return None
        return self.weights == 0

    def core_form(self) -> Description:
        lower = np.zeros((1, 1)) if isinstance(self.lower, float) else self.lower
        return Description(self.lam, self.lam2, self.weights, lower, self.upper)


@dataclass(frozen=True)
class L1(Separable):
    """``r(x) = lam sum_i w_i |x_i|`` with lam (B,) and weights w (B, n), (1, n) or None for ones.

    A weight of 0 leaves a coordinate unpenalised: an intercept.
    """

    lam: Tensor = field()
    weights: Tensor | None = None

    is_l1 = True


@dataclass(frozen=True)
class ElasticNet(Separable):
    """``r(x) = sum_i w_i (lam |x_i| + lam2/2 x_i^2)`` with lam, lam2 (B,), lam2 > 0.

    Weights w are (B, n), (1, n) or None for ones; 0 leaves a coordinate unpenalised.
    """

    lam: Tensor = field()
    lam2: Tensor = field()
    weights: Tensor | None = None


@dataclass(frozen=True)
class NonNegativeElasticNet(Separable):
    """``r(x) = sum_i w_i (lam x_i + lam2/2 x_i^2)`` where x >= 0, infinite elsewhere.

    lam and lam2 >= 0 are (B,), weights w > 0 are (B, n), (1, n) or None for ones. With lam2 = 0 it
    is the l1 norm of non-negative coordinates, with both 0 the constraint alone.
    """

    lam: Tensor = field()
    lam2: Tensor = field()
    weights: Tensor | None = None

    lower = 0.0
    finite = False


@dataclass(frozen=True)
class NonNegative(Separable):
    """``r(x) = 0`` where every x_i >= 0, infinite elsewhere."""

    lower = 0.0
    finite = False
    indicator = True


@dataclass(frozen=True)
class Box(Separable):
    """``r(x) = 0`` where lower <= x <= upper, else infinite; bounds (B, n), (1, n) or (1, 1)."""

    lower: Tensor = field()
    upper: Tensor = field()

    finite = False
    indicator = True


@dataclass(frozen=True)
class Zero(Separable):
    """``r(x) = 0``: smooth minimisation."""

    vanishes = True
