"""proxlearn: the same pipeline with the learned rule or with restarted FISTA."""

import inspect

import numpy as np
import torch

import proxlearn as pl
from contest.task import Task
from contest.variant import OURS, Peer, Variant

MAX_ITER = 20_000


def peer(name: str, optimizer: str, task: Task, engine: str | None) -> Peer:
    make = _path if task.path else _batch
    rule = f"{optimizer}, " if name == OURS[0] else ""
    types = {"float32": torch.float32, "float64": torch.float64}
    return Peer(
        name, tuple(make(rule + key, optimizer, dtype, engine) for key, dtype in types.items())
    )


def chosen(function, engine: str | None) -> dict[str, str]:
    """The argument for `engine`, where one is asked for and the function takes it."""
    if engine is None or "engine" not in inspect.signature(function).parameters:
        return {}
    return {"engine": engine}


def method(optimizer: str, engine: str | None) -> str:
    """The core has a method of its own, and takes no other."""
    return "auto" if engine == "core" else optimizer


def _batch(settings: str, optimizer: str, dtype: torch.dtype, engine: str | None) -> Variant:
    extra, optimizer = chosen(pl.solve, engine), method(optimizer, engine)

    def solve(problem: pl.Problem, tol: float) -> np.ndarray:
        return np.asarray(pl.solve(problem, optimizer, tol=tol, max_iter=MAX_ITER, **extra).x)

    return Variant(settings, lambda task: _prepared(task, dtype, engine), solve, whole=True)


def _prepared(task: Task, dtype: torch.dtype, engine: str | None) -> pl.Problem:
    problem = task.problem(dtype)
    if engine == "torch" or "engine" not in inspect.signature(pl.solve).parameters:
        problem.lipschitz()  # the operator keeps it; the compiled core needs none
    return problem


def _path(settings: str, optimizer: str, dtype: torch.dtype, engine: str | None) -> Variant:
    extra, optimizer = chosen(pl.path, engine), method(optimizer, engine)

    def prepare(task: Task):
        return _prepared(task, dtype, engine), task.lam

    def solve(prepared, tol: float) -> np.ndarray:
        problem, lams = prepared
        found = pl.path(problem, lams, optimizer=optimizer, tol=tol, max_iter=MAX_ITER, **extra)
        return np.asarray(found.x).reshape(len(lams), -1)

    return Variant(settings, prepare, solve, whole=True)
