"""A solve whose arrays are in files: what ``proxlearn solve`` does."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from proxlearn import constructors
from proxlearn.errors import InputError, unknown
from proxlearn.files import check_output, read_matrix, read_vector, write_array
from proxlearn.problem import Problem
from proxlearn.solution import Solution
from proxlearn.solver import solve


@dataclass(frozen=True)
class Kind:
    """A kind of problem by name: its constructor's own options, needed and possible."""

    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()


KINDS = {
    "lasso": Kind(needs=("lam",), takes=("weights",)),
    "elastic-net": Kind(needs=("lam", "lam2"), takes=("weights",)),
    "nnls": Kind(),
    "simplex-ls": Kind(takes=("radius",)),
    "group-lasso": Kind(needs=("lam", "groups"), takes=("weights",)),
    "logistic": Kind(needs=("lam",), takes=("weights",)),
    "softmax": Kind(needs=("lam",), takes=("classes", "weights")),
}
DTYPES = {"float32": torch.float32, "float64": torch.float64}


def problem_from_files(
    kind: str, A: str, b: str, options: dict[str, Any], dtype: str | None, device: str
) -> Problem:
    """The problem of the files A and b; `options` holds what the kind's constructor takes.

    Options that are None count as not given; `weights` and `groups` are files.
    """
    given = {name: value for name, value in options.items() if value is not None}
    _check_options(kind, given)
    if dtype is not None and dtype not in DTYPES:
        raise unknown("dtype", dtype, DTYPES)
    check_device(device)
    for name in {"weights", "groups"} & given.keys():
        given[name] = read_vector(given[name])
    build = getattr(constructors, kind.replace("-", "_"))
    problem: Problem = build(read_matrix(A), read_vector(b), **given)
    return problem.to(dtype=None if dtype is None else DTYPES[dtype], device=device)


def _check_options(kind: str, given: dict[str, Any]) -> None:
    if kind not in KINDS:
        raise unknown("kind of problem", kind, KINDS)
    needs, takes = KINDS[kind].needs, KINDS[kind].needs + KINDS[kind].takes
    for name in needs:
        if name not in given:
            meaning = "file with each coordinate's group" if name == "groups" else "number > 0"
            raise InputError(f"'{kind}' needs --{name}; give a {meaning}")
    for name in given:
        if name not in takes:
            known = ", ".join(f"--{n}" for n in takes) or "nothing of this sort"
            raise InputError(f"'{kind}' was given --{name}; it takes {known}: leave it out")


def check_device(device: str) -> None:
    """Refuses a device that this PyTorch cannot compute on."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise InputError(
            f"device {device!r} is not available to this PyTorch; use 'cpu', or install a "
            "PyTorch built for it"
        ) from None


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
    """Read, solve, write x to `out`; `settings` go to `solve`. Bad input is found beforehand."""
    if out is not None:
        check_output(out)
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
