"""Regularisation paths: one problem for many lam, each solution the start of the next."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from proxlearn.checks import as_number, check_limits, check_whole
from proxlearn.errors import InputError, needing_torch
from proxlearn.names import AUTO
from proxlearn.problems.arrays import to_array, to_numpy
from proxlearn.problems.problem import Problem, require_problem
from proxlearn.solving.exact import largest_lam, path_exactly
from proxlearn.solving.solution import SolutionPath
from proxlearn.solving.solver import in_core

if TYPE_CHECKING:
    from proxlearn.methods.optimizers import Optimizer

ROUNDED_UP = 1 + 8 * float(np.finfo(np.float64).eps)
"""Factor of the first value of a path above `lam_max`, whose last bits are rounding."""


def path(
    problem: Problem,
    lams: Any = None,
    n_lams: int = 100,
    eps: float = 1e-3,
    *,
    optimizer: "str | Optimizer" = "auto",
    tol: float = 1e-6,
    max_iter: int = 1000,
    x0: Any = None,
    safeguard: bool = True,
    polish: bool = True,
    engine: str | None = None,
    threads: int | None = None,
) -> SolutionPath:
    """Solve a problem with an l1, elastic net or group l1 penalty for many lam.

    Parameters
    ----------
    problem : Problem
        Its own lam does not matter, except that an elastic net keeps its ratio lam2 / lam.
    lams : array (K,) or (K, B), optional
        The values, used in decreasing order; by default `n_lams` values from `lam_max`, where all
        penalised coordinates are zero, down to ``eps * lam_max``, evenly in logarithms.
    x0 : array (n,) or (B, n), optional
        The start for the largest lam.
    optimizer, tol, max_iter, safeguard, polish, engine, threads
        As in `solve`. The core keeps its working set and its Gram matrix from one lam to the next,
        and begins each lam at the last solution, so that it takes no other start: an optimizer
        that would only give it one changes nothing.

    Returns
    -------
    SolutionPath
        NumPy arrays where the problem was made of those, tensors where it was made of tensors.

    Examples
    --------
    >>> import numpy as np, proxlearn as pl
    >>> problem = pl.lasso(np.eye(2), [3.0, 0.5], lam=1.0)
    >>> pl.path(problem, [2.0, 0.25]).x.round(6)
    array([[1.  , 0.  ],
           [2.75, 0.25]])
    """
    require_problem(problem)
    check_limits(tol, max_iter)
    _require_lam(problem)
    chain = _values(problem, lams, n_lams, eps)
    if in_core(engine, problem, optimizer, tol, max_iter, polish=polish):
        return path_exactly(problem, chain, x0, tol, int(max_iter), threads)
    if in_core(engine, problem, AUTO, tol, max_iter, polish=polish):
        _require_optimizer(optimizer)
        return path_exactly(problem, chain, x0, tol, int(max_iter), threads)
    with needing_torch("a path that the compiled core does not cover"):
        from proxlearn.problems.tensors import as_tensor
        from proxlearn.solving.first_order import LoopSettings
        from proxlearn.solving.first_order_paths import iterate_path

    values = as_tensor(chain).to(dtype=problem.dtype, device=problem.device)
    settings = LoopSettings(tol, int(max_iter), safeguard=safeguard)
    found = iterate_path(problem, optimizer, values, x0, settings)
    return found.in_numpy() if problem.numpy else found


def _require_optimizer(optimizer: "str | Optimizer") -> None:
    """An error where there is no such optimizer; the core begins each lam at the last solution."""
    with needing_torch(f"the optimizer {optimizer!r}"):
        from proxlearn.methods import optimizers

    optimizers.get(optimizer)


def lam_max(problem: Problem) -> Any:
    """The smallest lam for which every penalised coordinate of the solution is zero, (B,).

    From the gradient of f at the minimiser over the unpenalised coordinates, at 0 without those.
    """
    _require_lam(problem)
    top = _lam_max(problem)
    if problem.numpy:
        return top
    from proxlearn.problems.tensors import as_tensor

    return as_tensor(top).to(dtype=problem.dtype, device=problem.device)


def _lam_max(problem: Problem) -> npt.NDArray[np.float64]:
    model = problem.model
    if model is not None and model.covered:
        return largest_lam(model)
    with needing_torch("the path of a problem that the compiled core does not cover"):
        from proxlearn.solving.first_order_paths import largest_lam as largest

    return np.asarray(to_numpy(largest(problem)), dtype=np.float64)


def _require_lam(problem: Problem) -> None:
    model = problem.model
    if model is None or not model.penalty.has_path:
        from proxlearn.solving.first_order_paths import require_lam

        require_lam(problem.r)
    elif bool((model.penalty.lam <= 0).any()):
        raise InputError("lam is 0, so its ratio to lam2 is unknown; expected an elastic net > 0")


def _values(problem: Problem, lams: Any, n_lams: int, eps: float) -> npt.NDArray[Any]:
    """The values of lam, (K, B), each column decreasing, in the problem's precision."""
    B, precision = problem.batch, _precision(problem)
    if lams is not None:
        given = to_numpy(to_array("lams", lams)).astype(precision)
        shape = given.shape
        given = given[:, None] if given.ndim == 1 else given
        if given.ndim != 2 or not len(given) or given.shape[1] not in (1, B):
            raise InputError(f"lams has shape {shape}; expected (K,), or (K, {B})")
        if bool((given <= 0).any()):
            raise InputError(f"lams holds {float(given.min()):g}; expected numbers > 0")
        return -np.sort(-np.broadcast_to(given, (len(given), B)), axis=0)
    check_whole(n_lams=n_lams)
    if not (0 < as_number(eps) <= 1):
        raise InputError(f"eps is {eps!r}; expected a number in (0, 1], such as 1e-3")
    # Data that no column explains have lam_max = 0, and a penalty must be positive.
    # The first value is rounded up, so that no coordinate is above 0 by rounding alone.
    top = np.maximum(_lam_max(problem) * ROUNDED_UP, np.finfo(precision).resolution)
    powers = np.linspace(0, 1, int(n_lams))
    return (top * eps ** powers[:, None]).astype(precision)


def _precision(problem: Problem) -> str:
    model = problem.model
    return str(problem.dtype).removeprefix("torch.") if model is None else model.A.precision
