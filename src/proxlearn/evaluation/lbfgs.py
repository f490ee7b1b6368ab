"""L-BFGS from SciPy, instance after instance: what a smooth problem is compared with."""

import time
from contextlib import suppress

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.evaluation.comparison import Run
from proxlearn.problems.problem import Problem


class _Enough(Exception):
    """Raised by the objective when its gradients are used up."""


def lbfgs(problem: Problem, gradients: int) -> Run:
    """F against the number of gradients, for at most `gradients` of them, from x = 0 in float64.

    Row k is the smallest F among x0 and the points that SciPy proposed after at most k gradients,
    its line search's among them: as with the other methods, where x_k is known after k gradients.
    An instance that SciPy ends earlier keeps its last value.

    >>> import proxlearn as pl
    >>> problem = pl.families.GaussianLeastSquares(m=20, n=10).sample(2, 0)
    >>> run = lbfgs(problem, gradients=60)
    >>> bool((run.objective[60] < 1.0001 * pl.optimum(problem)).all())
    True
    """
    if not problem.r.vanishes:
        raise InputError(
            f"'lbfgs' minimises a smooth f alone, and this problem has the penalty "
            f"{type(problem.r).__name__}; use 'fista-restart'"
        )
    rows = [_one(problem, i, gradients) for i in range(problem.batch)]
    objective, counts, seconds = (torch.stack(part, -1) for part in zip(*rows, strict=True))
    return Run(objective, counts, seconds.sum(-1))


def _one(problem: Problem, i: int, gradients: int) -> tuple[Tensor, Tensor, Tensor]:
    """F, gradients and seconds so far of instance i, each (gradients + 1,)."""
    f = problem.select(torch.tensor([i], device=problem.device)).to(torch.float64).f
    values: list[float] = []
    times: list[float] = []

    def value_and_grad(x: np.ndarray) -> tuple[float, np.ndarray]:
        times.append(time.perf_counter())
        with torch.no_grad():
            value, grad = f.value_and_grad(torch.as_tensor(x, device=problem.device)[None])
        values.append(float(value))
        if len(values) > gradients:
            raise _Enough
        return values[-1], grad[0].cpu().numpy()

    options = {"maxiter": 2 * gradients, "maxfun": 2 * gradients}
    with suppress(_Enough):
        minimize(
            value_and_grad,
            np.zeros(problem.n),
            jac=True,
            method="L-BFGS-B",
            options={**options, "ftol": 0.0, "gtol": 0.0},
        )
    rest = gradients + 1 - len(values)
    best = torch.tensor(values + values[-1:] * rest, dtype=torch.float64).cummin(0).values
    spent = torch.tensor(times + times[-1:] * rest, dtype=torch.float64) - times[0]
    return best, torch.arange(gradients + 1).clamp(max=len(values)), spent
