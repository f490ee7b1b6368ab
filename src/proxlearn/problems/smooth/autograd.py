"""Any smooth convex PyTorch function."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from proxlearn.problems.batch import SHARED
from proxlearn.problems.smooth.smooth_term import Evaluation, Smooth


@dataclass(frozen=True)
class Autograd(Smooth):
    """``f(x) = function(x, *data)`` for a function (B, n), ... -> (B,) that PyTorch differentiates.

    The i-th value must depend on the i-th row of x only. Tensors with a row for each instance
    belong in `data` (each with a leading axis of B or 1), where a batch can slice and convert them.
    `L` (B,) is a Lipschitz constant of the gradient, which automatic differentiation cannot
    compute.
    """

    function: Callable[..., Tensor] = field(metadata=SHARED)
    variables: int = field(metadata=SHARED)
    L: Tensor
    data: tuple[Tensor, ...] = ()

    @property
    def n(self) -> int:
        return self.variables

    @property
    def batch(self) -> int:
        return max(len(self.L), *(len(t) for t in self.data)) if self.data else len(self.L)

    @property
    def like(self) -> Tensor:
        return self.L

    def lipschitz(self) -> Tensor:
        return self.L

    def value(self, x: Tensor) -> Tensor:
        return self.function(x, *self.data)

    def evaluate(self, x: Tensor) -> Evaluation:
        unrolled = torch.is_grad_enabled() and x.requires_grad
        with torch.enable_grad():
            point = x if unrolled else x.detach().requires_grad_()
            value = self.function(point, *self.data)
            (grad,) = torch.autograd.grad(value.sum(), point, create_graph=unrolled)
        return Evaluation(x, value if unrolled else value.detach(), grad)
