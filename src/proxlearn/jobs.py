"""A solve whose arrays are in files: what ``proxlearn solve`` does."""

import math
from typing import Any

import torch
from torch import Tensor

from proxlearn import constructors, names
from proxlearn.arrays import check_device, in_precision, to_operator
from proxlearn.files import read_matrix, read_vector, write_array
from proxlearn.problem import Problem
from proxlearn.solution import Solution
from proxlearn.solver import solve

DTYPES = {name: getattr(torch, name) for name in names.DTYPES}


def problem_from_files(
    kind: str, A: str, b: str, options: dict[str, Any], dtype: str | None, device: str
) -> Problem:
    """The problem of the files A and b; `options` holds what the kind's constructor takes.

    Options that are None count as not given; `weights` and `groups` are files. The matrix is
    converted to the precision asked for first, so that the constructor can refuse numbers that this
    precision does not hold.
    """
    given = {name: value for name, value in options.items() if value is not None}
    check_device(device)
    for name in {"weights", "groups"} & given.keys():
        given[name] = read_vector(given[name])
    matrix = in_precision("A", to_operator("A", read_matrix(A)), DTYPES.get(dtype or ""), device)
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
        write_array(out, solution.x.cpu().numpy())
    return solution


def nonzeros(solution: Solution) -> Tensor:
    """Number of entries of x that are not 0, (B,)."""
    x = solution.x[None] if solution.x.ndim == 1 else solution.x
    return (x != 0).sum(-1)


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
        "gap_known": solution.gap.isfinite().tolist(),
        "iterations": solution.iterations.tolist(),
        "grad_evals": solution.grad_evals.tolist(),
        "nonzeros": nonzeros(solution).tolist(),
        "seconds": solution.seconds,
    }
    return {**record, "x": solution.x.tolist()} if with_x else record


def _finite(values: Tensor) -> list[float | None]:
    return [v if math.isfinite(v) else None for v in values.tolist()]
