"""`solve`: the compiled core wherever it covers the problem, the loop in PyTorch elsewhere."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from proxlearn.checks import check_choice, check_limits
from proxlearn.core import kernel
from proxlearn.core.losses import LOSSES
from proxlearn.errors import InputError, needing_torch
from proxlearn.names import AUTO, ENGINES
from proxlearn.problems.arrays import to_numpy
from proxlearn.problems.problem import Problem, require_problem
from proxlearn.solving.exact import solve_exactly, solve_plainly
from proxlearn.solving.named_starts import find_start
from proxlearn.solving.solution import Solution

if TYPE_CHECKING:
    from proxlearn.methods.optimizers import Optimizer
    from proxlearn.solving.first_order import Progress

VARIABLE = b"PROXLEARN_ENGINE"
"""The environment variable that names the engine where `solve` is given none."""


def solve(
    problem: Problem,
    optimizer: "str | Optimizer" = AUTO,
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
    (`proxlearn.problems.interior`) or A is given by its products.

    Parameters
    ----------
    problem : Problem
        What is minimised, such as ``pl.lasso(A, b, lam)``.
    optimizer : str or Optimizer
        "auto" is the compiled core wherever it covers the problem: the losses of
        `proxlearn.core.losses` with separable or group penalties, and least squares on the
        simplex, dense or sparse, on the CPU. It begins with a learned rule where that was measured
        to be faster (`proxlearn.solving.named_starts`).
        Elsewhere "auto" is a method of the loop, with an l1 or group penalty a shipped rule:
        `imaging-splitting` behind masks, blurs and Fourier samples, `imaging` behind other
        operators whose bands differ in curvature, and `general` where A is a matrix or there are
        several classes. For the rest it is FISTA with restart.

        Every other optimizer, classic or learned, gives the core its start: at most 24
        iterations, and then the exact method. The core itself runs those of "fista",
        "fista-restart" and weights of a compact rule, and ends them where the signs of x settle;
        the loop in PyTorch runs the others. Where the core does not cover the problem, and with
        ``polish=False``, `record` or `callback`, an optimizer runs in that loop from beginning to
        end.
    tol : float
        The relative gap to reach. With 0 the loop runs `max_iter` iterations.
    max_iter : int
        Most iterations: working sets of the core with the iterations of its start, or steps of the
        loop.
    x0 : array (n,) or (B, n), optional
        Where to start; the penalty's point nearest to 0 by default, and in the core also where F is
        smaller there than at x0.
    time_limit : float, optional
        Most seconds.
    safeguard : bool
        Whether a learned optimizer is replaced by FISTA with restart, for each instance by itself,
        while it makes no progress (`proxlearn.solving.safeguard`). Only the loop needs it: the core
        drops a start that did not lower F.
    polish : bool
        Whether the core may end the solve, and in the loop whether float64 may end the solve of a
        problem in float32. With False every optimizer is itself and nothing else: first-order
        iterations in the loop, in the problem's precision, "auto" included.
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
    unset = x0 is None and time_limit is None and engine is None and callback is None
    usual = unset and optimizer is AUTO and polish and not record
    if usual and problem.plain is not None and chosen_engine() == AUTO:
        found = solve_plainly(problem.plain, tol, max_iter)
        if found is not None:
            return found
    check_limits(tol, max_iter, time_limit)
    recorded = record or callback is not None
    if in_core(engine, problem, optimizer, tol, max_iter, polish=polish, recorded=recorded):
        start = None if is_automatic(optimizer) else find_start(optimizer)
        return solve_exactly(problem, x0, tol, int(max_iter), time_limit, threads, start=start)
    from_core = in_core(engine, problem, AUTO, tol, max_iter, polish=polish, recorded=recorded)
    what = f"the optimizer {optimizer!r}" if from_core else "a solve outside of the compiled core"
    with needing_torch(what):
        from proxlearn.solving.first_order import LoopSettings, iterate
        from proxlearn.solving.first_order_starts import (
            iterate_in_double,
            needs_double,
            solve_from_start,
        )

    told = _in_library(callback, problem.numpy)
    settings = LoopSettings(tol, int(max_iter), time_limit, safeguard, record, told)
    if from_core:
        found = solve_from_start(problem, optimizer, settings, x0, threads)
        return found.in_numpy() if problem.numpy else found
    if polish and not recorded and needs_double(problem, tol):
        solution = iterate_in_double(problem, optimizer, settings, x0)
    else:
        solution = iterate(problem, optimizer, settings, x0)
    solution = replace(solution, image=problem.image(solution.x))
    return solution.in_numpy() if problem.numpy else solution


def in_core(
    engine: str | None,
    problem: Problem,
    optimizer: "str | Optimizer" = AUTO,
    tol: float = 1e-6,
    max_iter: int = 1000,
    *,
    polish: bool = True,
    recorded: bool = False,
) -> bool:
    """True where the core alone solves; an error where it is asked for by name and cannot."""
    name = engine or chosen_engine()
    check_choice("engine", name, ENGINES)
    if name == "torch":
        return False
    missing = _missing(problem, optimizer, tol, max_iter, polish, recorded)
    if missing is not None and name == "core":
        raise InputError(f"the compiled core {missing}; use engine='auto' or engine='torch'")
    return missing is None


def chosen_engine() -> str:
    """The engine that the environment names, "auto" where it names none."""
    return kernel.environment(VARIABLE) or AUTO


def _missing(
    problem: Problem, optimizer: Any, tol: float, max_iter: int, polish: bool, recorded: bool
) -> str | None:
    """What the core lacks for a solve, as the end of a sentence; None where it lacks nothing."""
    if recorded:
        return "neither records nor calls back"
    if not (tol > 0 and max_iter > 0):
        return f"needs tol > 0 and max_iter > 0, and they are {tol:g} and {max_iter}"
    if not polish:
        return "is an exact method, and polish=False asks for first-order iterations alone"
    model = problem.model
    if model is None:
        f, r = type(problem.f).__name__, type(problem.r).__name__
        return (
            f"does not solve {f} with {r}, but the losses {', '.join(LOSSES)} with l1, elastic "
            "net, group, sparse-group, non-negative or box penalties, and least squares on the "
            "simplex"
        )
    if not model.covered:
        return "needs A as a dense or sparse matrix on the CPU"
    if is_automatic(optimizer) or (model.has_starts and find_start(optimizer) is not None):
        return None
    return f"cannot begin this problem with optimizer {optimizer!r}"


def is_automatic(optimizer: Any) -> bool:
    """True where the method is left to `solve`."""
    return isinstance(optimizer, str) and optimizer == AUTO


def _in_library(
    callback: "Callable[[Progress], None] | None", numpy: bool
) -> "Callable[[Progress], None] | None":
    """The callback, with NumPy arrays where the problem was made of those."""
    if callback is not None and not callable(callback):
        raise InputError(f"callback is {callback!r}; expected a function of one argument, or None")
    if callback is None or not numpy:
        return callback
    call = callback
    return lambda p: call(replace(p, index=to_numpy(p.index), x=to_numpy(p.x)))
