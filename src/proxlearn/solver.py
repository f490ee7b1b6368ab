"""`solve`: the compiled core wherever it covers the problem, the loop in PyTorch elsewhere."""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from proxlearn.arrays import to_numpy
from proxlearn.checks import check_limits
from proxlearn.errors import InputError, needing_torch, unknown
from proxlearn.exact import solve_exactly
from proxlearn.names import AUTO, ENGINES
from proxlearn.problem import Problem, require_problem
from proxlearn.solution import History, Solution

if TYPE_CHECKING:
    from proxlearn.first_order import Progress
    from proxlearn.optimizers import Optimizer

VARIABLE = "PROXLEARN_ENGINE"
"""The environment variable that names the engine where `solve` is given none."""


def solve(
    problem: Problem,
    optimizer: "str | Optimizer" = "auto",
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    x0: Any = None,
    time_limit: float | None = None,
    safeguard: bool = True,
    polish: bool = True,
    engine: str | None = None,
    threads: int | None = None,
    record: bool = False,
    callback: "Callable[[Progress], None] | None" = None,
) -> Solution:
    """Minimise F for every instance of a problem.

    An instance is SOLVED when its certified gap is at most ``max(tol * |F(x)|, eps * |F(0)|)``,
    where eps is the machine precision of float64 and F(0) the objective at the penalty's point
    nearest 0. The second term is what SOLVED means where the optimum is 0 or nearly so, as in an
    exact fit: rounding hides anything smaller.

    Where no gap is known, `gap` is infinite, and an instance is SOLVED when the optimality
    conditions hold up to `tol` times the gradient at 0. That is the case for a smooth f without a
    penalty, for f given as a function or as a quadratic with some penalties, and for one-sided
    constraints such as NNLS where the columns of A leave the dual without an interior
    (`proxlearn.interior`) or A is matrix-free.

    Parameters
    ----------
    problem : Problem
        What is minimised, such as ``pl.lasso(A, b, lam)``.
    optimizer : str or Optimizer
        "auto" is the compiled core wherever it covers the problem: least squares and logistic
        losses with separable penalties, dense or sparse, on the CPU. Elsewhere it is the shipped
        rule `general` for softmax models and group LASSO, and FISTA with restart for the rest. The
        name of a method or of shipped weights, or an optimizer, runs in the loop in PyTorch.
    tol : float
        The relative gap to reach. With 0 the loop runs `max_iter` iterations.
    max_iter : int
        Most iterations: working sets of the core, steps of a named optimizer.
    x0 : array (n,) or (B, n), optional
        Where to start; the penalty's point nearest to 0 by default.
    time_limit : float, optional
        Most seconds.
    safeguard : bool
        Whether a learned optimizer is replaced by FISTA with restart, for each instance by itself,
        while it makes no progress (`proxlearn.safeguard`).
    polish : bool
        Whether the loop solves on the active set where that has nearly settled
        (`proxlearn.polish`). With False, "auto" is the bare rule in the loop.
    engine : {"auto", "core", "torch"}, optional
        What solves; "auto" by default, unless the environment variable PROXLEARN_ENGINE names
        another. Asking for the core where it does not cover the problem is an `InputError`.
    threads : int, optional
        Threads that share the instances of a batch in the core; by default as many as there are
        processors, or as OMP_NUM_THREADS says.
    record : bool
        Whether to keep objective, gap and counts of every iteration (in the loop only).
    callback : function, optional
        Called after every iteration (of the loop only).

    Returns
    -------
    Solution
        NumPy arrays where the problem was made of those, tensors where it was made of tensors.

    Examples
    --------
    >>> import numpy as np, proxlearn as pl
    >>> problem = pl.lasso(np.eye(2), [3.0, 0.5], lam=1.0)
    >>> solution = pl.solve(problem)
    >>> solution.x
    array([2., 0.])
    >>> print(solution)
    SOLVED: objective 2.625, gap ..., ... iterations, ... gradients
    """
    require_problem(problem)
    check_limits(tol, max_iter, time_limit)
    recorded = record or callback is not None
    if in_core(engine, problem, optimizer, tol, max_iter, polish=polish, recorded=recorded):
        return solve_exactly(problem, x0, tol, int(max_iter), time_limit, threads)
    with needing_torch("a solve that the compiled core does not cover"):
        from proxlearn.first_order import iterate

    solution = iterate(
        problem, optimizer, tol=tol, max_iter=int(max_iter), x0=x0, time_limit=time_limit,
        safeguard=safeguard, polish=polish, record=record,
        callback=_in_library(callback, problem.numpy),
    )  # fmt: skip
    return _with_numpy(solution) if problem.numpy else solution


def in_core(
    engine: str | None,
    problem: Problem,
    optimizer: "str | Optimizer" = "auto",
    tol: float = 1e-6,
    max_iter: int = 1000,
    *,
    polish: bool = True,
    recorded: bool = False,
) -> bool:
    """True where the compiled core solves; an error where it is asked for by name and cannot."""
    name = engine or os.environ.get(VARIABLE) or AUTO
    if name not in ENGINES:
        raise unknown("engine", name, ENGINES)
    if name == "torch":
        return False
    missing = _missing(problem, optimizer, tol, max_iter, polish, recorded)
    if missing is not None and name == "core":
        raise InputError(f"the compiled core {missing}; use engine='auto' or engine='torch'")
    return missing is None


def _missing(
    problem: Problem, optimizer: Any, tol: float, max_iter: int, polish: bool, recorded: bool
) -> str | None:
    """What the core lacks for a solve, as the end of a sentence; None where it lacks nothing."""
    if not (isinstance(optimizer, str) and optimizer == AUTO):
        return f"has its own method and does not run optimizer {optimizer!r}"
    if recorded:
        return "neither records nor calls back"
    if not (tol > 0 and max_iter > 0):
        return f"needs tol > 0 and max_iter > 0, and they are {tol:g} and {max_iter}"
    if not polish:
        return "cannot leave out its second-order steps, as polish=False asks"
    model = problem.model
    if model is None:
        f, r = type(problem.f).__name__, type(problem.r).__name__
        return (
            f"does not solve {f} with {r}, but least squares and logistic losses with l1, elastic "
            "net, non-negative or box penalties"
        )
    return None if model.covered else "needs A as a dense or sparse matrix on the CPU"


def _in_library(
    callback: "Callable[[Progress], None] | None", numpy: bool
) -> "Callable[[Progress], None] | None":
    """The callback, with NumPy arrays where the problem was made of those."""
    if callback is None or not numpy:
        return callback
    call = callback
    return lambda p: call(replace(p, index=to_numpy(p.index), x=to_numpy(p.x)))


def _with_numpy(solution: Solution) -> Solution:
    """The same with NumPy arrays."""
    history = solution.history
    if history is not None:
        parts = (history.objective, history.gap, history.grad_evals, history.seconds)
        history = History(*(to_numpy(part) for part in parts))
    names = ("x", "objective", "gap", "iterations", "grad_evals")
    arrays = {name: to_numpy(getattr(solution, name)) for name in names}
    return replace(solution, history=history, **arrays)
