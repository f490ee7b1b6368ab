"""Unrolled methods for the LASSO: a fixed number of layers, each with weights of its own.

    Step-LISTA (Ablin et al., 2019)     x+ = soft(x - p_k A^T (A x - b), theta_k)
    Ada-LISTA (Aberdam et al., 2021)    x+ = soft(x - p_k A^T M^T M (A x - b), theta_k)

Both are rules of the scheme with y = x. b1 adds what M changes, and moves the threshold from the
lam p_k of the prox to theta_k.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from proxlearn.checks import check_size
from proxlearn.errors import InputError
from proxlearn.methods.rules.learned_rule import LearnedRule
from proxlearn.methods.scheme import Coefficients, View
from proxlearn.problems.problem import Problem


@dataclass(frozen=True)
class UnrolledSettings:
    """Number of layers, and the size (rows, columns) of the problems they were made for."""

    layers: int = 20
    rows: int = 250
    columns: int = 500

    def __post_init__(self) -> None:
        for name, largest in [("layers", 1000), ("rows", 4000), ("columns", 1_000_000)]:
            check_size(name, getattr(self, name), largest)


class StepLista(LearnedRule):
    """p_k = exp(u_k)/L and theta_k = lam exp(v_k)/L, for every layer k; ISTA at first."""

    Settings = UnrolledSettings
    name = "step-lista"

    def __init__(self, settings: UnrolledSettings, generator: torch.Generator | None = None):
        super().__init__(settings)
        self.log_p = nn.Parameter(torch.zeros(settings.layers))
        self.log_theta = nn.Parameter(torch.zeros(settings.layers))

    @property
    def layers(self) -> int:
        """The last iteration it has weights for."""
        return int(self.settings.layers)

    def init(self, problem: Problem, x0: Tensor) -> Tensor:
        """1/L, (B, 1); other problems than LASSO of the right size are refused."""
        s, f, r = self.settings, problem.f.as_glm(), problem.r
        if f is None or not (f.scales_with_target and r.is_l1):
            given = f"{type(problem.f).__name__} with {type(r).__name__}"
            raise InputError(
                f"{self.name} is made for LASSO and the problem is {given}; "
                "use a method for any problem, such as 'lasso' or 'fista-restart'"
            )
        if f.A.shape != (s.rows, s.columns):
            raise InputError(
                f"{self.name} was trained for problems of {s.rows} x {s.columns} and this one has "
                f"{f.A.shape[0]} x {f.A.shape[1]}; train another for this size"
            )
        return problem.safe_step()

    def forward(self, view: View, step: Tensor) -> tuple[Coefficients, Tensor]:
        """The coefficients of layer k."""
        if view.k >= self.layers:
            raise InputError(
                f"{self.name} has {self.layers} layers and was asked for iteration {view.k + 1}; "
                f"set max_iter to at most {self.layers}"
            )
        level = view.problem.r.level()
        assert level is not None
        p = step * self.log_p[view.k].exp().to(step.dtype)
        theta = level * step * self.log_theta[view.k].exp().to(step.dtype)
        bias = p * self.correction(view)
        v = view.y - p * view.at.grad - bias
        return Coefficients(p=p, b1=bias + shrinkage(v, theta - level * p, theta)), step

    def correction(self, view: View) -> Tensor | float:
        """The difference between the direction of the method and the gradient, which is 0 here."""
        return 0.0


class AdaLista(StepLista):
    """The same with one matrix M (rows, rows) for all layers, the identity at first.

    An iteration costs a gradient and another product with A^T, so that the certificate is that
    of the problem itself.
    """

    name = "ada-lista"
    gradients = 2

    def __init__(self, settings: UnrolledSettings, generator: torch.Generator | None = None):
        super().__init__(settings)
        self.M = nn.Parameter(torch.eye(settings.rows))

    def correction(self, view: View) -> Tensor:
        """A^T M^T M (A x - b) - A^T (A x - b)."""
        f, residual, M = view.problem.f.as_glm(), view.at.dual, self.M.to(view.x.dtype)
        assert f is not None
        assert residual is not None
        pulled: Tensor = f.pull(residual @ M.T @ M)
        return pulled - view.at.grad


def shrinkage(v: Tensor, extra: Tensor, theta: Tensor) -> Tensor:
    """The b1 with soft(v - b1, theta - extra) = soft(v, theta), as the paper's appendix has it."""
    more = v.sign() * torch.minimum(extra.expand_as(v), v.abs())
    less = v.sign() * extra * (v.abs() > theta)
    return torch.where(extra > 0, more, less)
