"""Rules without weights: ISTA, FISTA with and without restart, Nesterov, variable metric, PPA."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.methods.scheme import Coefficients, View
from proxlearn.problems.problem import Problem


@dataclass(frozen=True)
class Ista:
    """Proximal gradient: p = 1/L, a = 0."""

    looks_at = "y"
    gradients = 1

    def init(self, problem: Problem, x0: Tensor) -> Tensor:
        return problem.safe_step()

    def __call__(self, view: View, step: Tensor) -> tuple[Coefficients, Tensor]:
        return Coefficients(p=step), step


class Momentum(NamedTuple):
    """1/L (B, 1), and FISTA's t (B, 1)."""

    step: Tensor
    t: Tensor


@dataclass(frozen=True)
class Fista:
    """FISTA (Beck and Teboulle, 2009): p = 1/L, a = (t - 1)/t+, t+ = (1 + sqrt(1 + 4 t^2))/2.

    With `restart`, the gradient scheme of O'Donoghue and Candes (2015): where the step from y
    points against the last progress, <y - x+, x+ - x> > 0, the momentum is dropped and t starts
    again at 1, for every instance by itself.
    """

    restart: bool = False

    looks_at = "y"
    gradients = 1

    def init(self, problem: Problem, x0: Tensor) -> Momentum:
        step = problem.safe_step()
        return Momentum(step, torch.ones_like(step))

    def __call__(self, view: View, memory: Momentum) -> tuple[Coefficients, Momentum]:
        p, t = memory
        t_next = (1 + (1 + 4 * t**2).sqrt()) / 2
        a = (t - 1) / t_next
        if self.restart:
            x_next = view.problem.r.prox(view.y - p * view.at.grad, p)
            against = ((view.y - x_next) * (x_next - view.x)).sum(-1, keepdim=True) > 0
            a = torch.where(against, 0.0, a)
            t_next = torch.where(against, 1.0, t_next)
        return Coefficients(p=p, a=a), Momentum(p, t_next)


@dataclass(frozen=True)
class Nesterov:
    """Nesterov's method for smooth f: p = 1/L, a = k/(k + 3); the penalty must be zero."""

    looks_at = "y"
    gradients = 1

    def init(self, problem: Problem, x0: Tensor) -> Tensor:
        if not problem.r.vanishes:
            raise InputError(
                f"'nesterov' minimises a smooth f alone, and this problem has the penalty "
                f"{type(problem.r).__name__}; use 'fista' or 'fista-restart'"
            )
        return problem.safe_step()

    def __call__(self, view: View, step: Tensor) -> tuple[Coefficients, Tensor]:
        return Coefficients(p=step, a=view.k / (view.k + 3)), step


class Metric(NamedTuple):
    """1/L (B, 1), the last inverse metric u (B, n), iterate and gradient (B, n)."""

    step: Tensor
    u: Tensor
    x: Tensor
    grad: Tensor


@dataclass(frozen=True)
class VariableMetric:
    """Proximal gradient with a diagonal metric p_k (Park et al., 2020): b = a = b1 = b2 = 0.

    The diagonal Barzilai-Borwein metric u = 1/p solves
    min_u ||u * s - g||^2 + mu ||u - u_last||^2 for the last step s and gradient change g, that is
    u = (s*g + mu u_last) / (s^2 + mu), with mu relative to the mean of s^2. Clipped to
    p in [1/L, 1.9/L]: below 2/L every step descends, so no line search is needed.
    """

    mu: float = 0.1

    looks_at = "x"
    gradients = 1

    def init(self, problem: Problem, x0: Tensor) -> Metric:
        if not problem.r.separable:
            raise InputError(
                f"'pgd' uses a p for each coordinate, and the penalty {type(problem.r).__name__} "
                "couples coordinates; use 'ista' or 'fista-restart'"
            )
        step = problem.safe_step()
        return Metric(step, (1 / step).expand_as(x0), x0, torch.zeros_like(x0))

    def __call__(self, view: View, last: Metric) -> tuple[Coefficients, Metric]:
        u = last.u
        if view.k > 0:
            s, g = view.x - last.x, view.at.grad - last.grad
            mu = self.mu * s.square().mean(-1, keepdim=True)
            mu = mu.clamp(min=torch.finfo(s.dtype).tiny)
            u = (s * g + mu * u) / (s.square() + mu)
            u = torch.minimum(torch.maximum(u, 1 / (1.9 * last.step)), 1 / last.step)
        return Coefficients(p=1 / u, b=0.0), Metric(last.step, u, view.x, view.at.grad)


@dataclass(frozen=True)
class ProximalPoint:
    """The proximal point method, f = 0: x+ = prox_{r,p}(x) with a constant p."""

    p: float = 1.0

    looks_at = "y"
    gradients = 0

    def init(self, problem: Problem, x0: Tensor) -> Tensor:
        if not problem.f.gradients_are_free:
            raise InputError(
                f"'ppa' minimises a penalty alone, and this problem has the smooth term "
                f"{type(problem.f).__name__}; use 'fista-restart'"
            )
        return x0.new_full((len(x0), 1), self.p)

    def __call__(self, view: View, p: Tensor) -> tuple[Coefficients, Tensor]:
        return Coefficients(p=p), p
