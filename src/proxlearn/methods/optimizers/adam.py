"""Adam and AdamHD on a subgradient of F."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.methods.optimizers.optimizer import (
    SubgradientState,
    follow_subgradient,
    refuse_constraints,
)
from proxlearn.problems.problem import Problem


class Moments(NamedTuple):
    """First and second moments m, v (B, n), the step size alpha (B, 1), the last update (B, n)."""

    m: Tensor
    v: Tensor
    alpha: Tensor
    update: Tensor


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma and Ba, 2015) with a subgradient g of F:

        m+ = beta1 m + (1 - beta1) g        v+ = beta2 v + (1 - beta2) g^2
        x+ = x - alpha * u,                 u  = m+/(1 - beta1^k) / (sqrt(v+/(1 - beta2^k)) + eps)

    `hyper` > 0 is AdamHD (Baydin et al., 2018): the step size follows its own gradient,
    alpha+ = max(alpha + hyper <g, u_last>, least), with a dot product and an alpha for each
    instance. The paper's code has one dot product for the whole batch, and least = 1e-8.
    """

    alpha: float = 1e-2
    hyper: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    least: float = -math.inf
    """AdamHD's lower bound on alpha; without one alpha can become negative."""

    gradients = 1

    def __post_init__(self) -> None:
        for name, low, high in (
            ("alpha", 0, math.inf),
            ("hyper", 0, math.inf),
            ("beta1", 0, 1),
            ("beta2", 0, 1),
            ("eps", 0, math.inf),
            ("least", -math.inf, math.inf),
        ):
            value = getattr(self, name)
            if not low <= value < high:
                raise InputError(f"{name} of Adam is {value}; expected {low} <= {name} < {high}")

    def init(self, problem: Problem, x0: Tensor) -> SubgradientState:
        refuse_constraints("adamhd" if self.hyper else "adam", problem)
        zero = torch.zeros_like(x0)
        alpha = x0.new_full((len(x0), 1), self.alpha)
        return SubgradientState(x0, 0, None, Moments(zero, zero, alpha, zero))

    def step(self, problem: Problem, state: SubgradientState) -> SubgradientState:
        at, g = follow_subgradient(problem, state.x)
        m, v, alpha, last = state.memory
        k = state.k + 1
        if self.hyper:
            alpha = alpha + self.hyper * (g * last).sum(-1, keepdim=True)
            alpha = alpha.clamp(min=self.least)
        m = self.beta1 * m + (1 - self.beta1) * g
        v = self.beta2 * v + (1 - self.beta2) * g.square()
        u = m / (1 - self.beta1**k) / ((v / (1 - self.beta2**k)).sqrt() + self.eps)
        return SubgradientState(state.x - alpha * u, k, at, Moments(m, v, alpha, u))
