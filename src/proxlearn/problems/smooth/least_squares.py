"""f(x) = 1/2 ||A x - b||^2."""

from dataclasses import dataclass

import torch
from torch import Tensor

from proxlearn.problems.operators import Operator
from proxlearn.problems.powers import times_power
from proxlearn.problems.smooth.smooth_term import GLM, Evaluation, LinearLoss, units_of_squares


@dataclass(frozen=True)
class LeastSquares(GLM):
    """``f(x) = 1/2 ||A x - b||^2`` with b (B, m); L = ||A||^2."""

    A: Operator
    b: Tensor

    scales_with_target = True

    def lipschitz(self) -> Tensor:
        return self.A.norm() ** 2

    @property
    def has_proximal(self) -> bool:
        return self.A.has_implicit_residual

    def evaluate_proximal(self, w: Tensor, gamma: Tensor) -> Evaluation | None:
        found = self.A.implicit_residual(w, self.b, gamma)
        if found is None:
            return None
        u, g = found
        return Evaluation(w - gamma * g, 0.5 * u.square().sum(-1), g, u)

    def linear_loss(self) -> LinearLoss:
        return LinearLoss("squares", self.A, self.b)

    def loss(self, z: Tensor) -> Tensor:
        return 0.5 * (z - self.b).square().sum(-1)

    def dloss(self, z: Tensor) -> Tensor:
        return z - self.b

    def evaluated_once(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        u, grad = self.A.through(x, None, -self.b)
        return 0.5 * u.square().sum(-1), grad, u

    def through_hessian(self, u: Tensor, v: Tensor, shift: Tensor | None) -> Tensor:
        return self.A.through(v, None, shift)[1]

    def loss_conjugate(self, u: Tensor) -> Tensor:
        return (u * (0.5 * u + self.b)).sum(-1)

    def natural_units(self) -> tuple[Tensor, Tensor] | None:
        return units_of_squares(self.A, self.b)

    def in_units(self, variable: Tensor, objective: Tensor) -> "LeastSquares":
        # A x - b = 2^c (2^(k-c) A x' - 2^-c b), and f has the square of b's unit: l = 2 c.
        c = torch.div(objective, 2, rounding_mode="trunc")
        return LeastSquares(self.A.times_power(variable - c), times_power(self.b, -c))

    def best_multiple(self, u: Tensor, slope: Tensor) -> Tensor:
        # -s^2/2 ||u||^2 - s (<u, b> + slope) is largest at s = -(<u, b> + slope) / ||u||^2. Both
        # are divided by the largest entry of u first: squares stay in the range of the dtype.
        size = u.abs().amax(-1)
        size = torch.where(size > 0, size, 1.0)
        unit = u / size[:, None]
        s = -((unit * self.b).sum(-1) + slope / size) / unit.square().sum(-1).clamp(min=1) / size
        return torch.where(s.isfinite(), s.clamp(min=0), 1.0)

    def hessian_product(self, u: Tensor, v: Tensor) -> Tensor:
        return v.expand_as(u)
