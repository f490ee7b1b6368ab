"""Regularisation paths in PyTorch, for the problems that the compiled core does not cover."""

import time
from typing import Any

import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.methods.optimizers import Optimizer
from proxlearn.problems.penalties import Penalty
from proxlearn.problems.problem import Problem
from proxlearn.problems.tensors import start_point
from proxlearn.solving.exact import minimiser_over
from proxlearn.solving.first_order import LoopSettings, iterate
from proxlearn.solving.solution import Solution, SolutionPath


@torch.no_grad()
def iterate_path(
    problem: Problem, optimizer: str | Optimizer, lams: Tensor, x0: Any, settings: LoopSettings
) -> SolutionPath:
    """Solve for each of lams (K, B), which fall, from the solution of the one before."""
    began = time.perf_counter()
    x = null_point(problem) if x0 is None else start_point(problem, x0)
    points: list[Solution] = []
    for lam in lams:
        point = iterate(problem.replaced(r=with_lam(problem.r, lam)), optimizer, settings, x)
        x = _usable(point, x)
        points.append(point)
    return SolutionPath(
        lams=lams[:, 0] if problem.single else lams,
        x=torch.stack([p.x for p in points]),
        objective=torch.stack([p.objective for p in points]),
        gap=torch.stack([p.gap for p in points]),
        status=tuple(p.status for p in points),
        iterations=torch.stack([p.iterations for p in points]),
        grad_evals=torch.stack([p.grad_evals for p in points]),
        seconds=time.perf_counter() - began,
    )


@torch.no_grad()
def largest_lam(problem: Problem) -> Tensor:
    """The smallest lam for which every penalised coordinate of the solution is zero, (B,)."""
    require_lam(problem.r)
    return _lam_max(problem, null_point(problem))


def with_lam(r: Penalty, lam: Tensor) -> Penalty:
    """The same penalty with another lam (B,), or an error where there is no lam to vary."""
    varied = r.with_lam(lam)
    if varied is None:
        raise InputError(
            f"the penalty {type(r).__name__} has no lam to vary; expected l1, elastic net, group l1"
        )
    return varied


def require_lam(r: Penalty) -> None:
    """An error where the penalty has no lam to vary."""
    with_lam(r, torch.ones(r.batch))


def _lam_max(problem: Problem, x: Tensor) -> Tensor:
    """lam_max from a minimiser x over the unpenalised coordinates."""
    r, g = problem.r, problem.f.grad(x)
    free = r.free()
    if free is not None:
        g = torch.where(free, 0.0, g)  # zero but for rounding
    # The largest feasible scaling at a lam below lam_max is lam / lam_max; it is never above 1.
    small = g.abs().amax(-1) * torch.finfo(g.dtype).eps
    small = torch.where(small > 0, small, 1.0)
    norm = r.norm_with(small)
    assert norm is not None
    scale = norm.dual_scale(g)
    return torch.where(scale < 1, small / scale, torch.zeros_like(scale))


def null_point(problem: Problem) -> Tensor:
    """The minimiser of f over the unpenalised coordinates, (B, n), the others at 0.

    A product with a unit vector gives each of their columns, and the core solves on those.
    """
    x = torch.zeros(problem.batch, problem.n, dtype=problem.dtype, device=problem.device)
    free = problem.r.free()
    if free is None:
        return x
    loss = problem.f.linear_loss()
    if loss is None:
        raise InputError(
            f"the path of {type(problem.f).__name__} with unpenalised coordinates has no known "
            "beginning; expected a loss of A x of this package"
        )
    n = loss.A.shape[1]
    masks = free.expand_as(x).reshape(len(x), -1, n).cpu().numpy()  # (B, classes, n)
    chosen = torch.from_numpy(masks.any((0, 1))).nonzero()[:, 0]
    units = torch.eye(n, dtype=x.dtype, device=x.device)[chosen]
    columns = loss.A.forward(units.expand(loss.A.batch, -1, -1)).double().cpu().numpy()
    targets = loss.b.double().cpu().numpy()
    for i, mask in enumerate(masks):
        given = {name: v[i if len(v) > 1 else 0].item() for name, v in loss.options.items()}
        A, b = columns[i if len(columns) > 1 else 0].T, targets[i if len(targets) > 1 else 0]
        w = minimiser_over(A, b, loss.name, mask[:, chosen], given)
        x[i].reshape(-1, n)[:, chosen] = torch.from_numpy(w).to(x)
    return x


def _usable(point: Solution, last: Tensor) -> Tensor:
    """The solution as the next start, (B, n); the last start where it is not finite."""
    x = point.x.reshape(last.shape)
    return torch.where(x.isfinite().all(-1, keepdim=True), x, last)
