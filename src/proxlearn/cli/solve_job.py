"""A solve whose arrays are in files: what ``proxlearn solve`` does."""

import math
from typing import Any

import numpy as np

from proxlearn import names
from proxlearn.files import read_matrix, read_vector, write_array
from proxlearn.problems import constructors
from proxlearn.problems.arrays import to_matrix, to_numpy
from proxlearn.problems.problem import Problem
from proxlearn.solving.solution import Solution
from proxlearn.solving.solver import solve


def problem_from_files(
    kind: str, A: str, b: str, options: dict[str, Any], dtype: str | None, device: str
) -> Problem:
    """The problem of the files A and b; `options` holds what the kind's constructor takes.

    Options that are None count as not given; those of FILES are files. Where a precision or a
    device is asked for, the matrix is converted first, so that the constructor can refuse numbers
    that this precision does not hold.
    """
    given = {name: value for name, value in options.items() if value is not None}
    for name in names.FILES & given.keys():
        given[name] = read_vector(given[name])
    matrix = read_matrix(A)
    if dtype is not None or device != "cpu":
        matrix = to_matrix("A", matrix).in_precision("A", dtype, device)
    build = getattr(constructors, kind.replace("-", "_"))
    problem: Problem = build(matrix, read_vector(b), **given)
    return problem


def solve_files(
    kind: str,
    A: str,
    b: str,
    options: dict[str, Any],
    *,
    dtype: str | None = None,
    device: str = "cpu",
    x0: str | None = None,
    out: str | None = None,
    **settings: Any,
) -> Solution:
    """Read, solve, write x to `out`; `settings` go to `solve`.

    `checks.check_solve` refuses wrong arguments beforehand, without importing PyTorch.
    """
    problem = problem_from_files(kind, A, b, options, dtype, device)
    start = None if x0 is None else read_vector(x0)
    solution = solve(problem, x0=start, **settings)
    if out is not None:
        write_array(out, to_numpy(solution.x))
    return solution


def nonzeros(solution: Solution) -> Any:
    """Number of entries of x that are not 0, (B,)."""
    return np.count_nonzero(np.atleast_2d(to_numpy(solution.x)), axis=-1)


def to_json(solution: Solution, with_x: bool) -> dict[str, Any]:
    """A solution as an object for JSON: lists with an entry an instance.

    JSON knows no infinity: numbers that are not finite become null, and `gap_known` says for
    each instance whether a certificate exists.
    """
    record = {
        "solved": solution.solved,
        "status": [str(s) for s in solution.status],
        "advice": [s.advice for s in solution.status],
        "objective": _finite(solution.objective),
        "gap": _finite(solution.gap),
        "gap_known": np.isfinite(to_numpy(solution.gap)).tolist(),
        "iterations": solution.iterations.tolist(),
        "grad_evals": solution.grad_evals.tolist(),
        "nonzeros": nonzeros(solution).tolist(),
        "seconds": solution.seconds,
        "engine": solution.engine,
    }
    return {**record, "x": solution.x.tolist()} if with_x else record


def _finite(values: Any) -> list[float | None]:
    return [v if math.isfinite(v) else None for v in values.tolist()]
