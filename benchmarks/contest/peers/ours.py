"""proxlearn as it is called, and the same core with each start."""

import numpy as np

import proxlearn as pl
from contest.task import Task
from contest.variant import OURS, Peer, Variant
from proxlearn.core.glm import Limits, solve_glm
from proxlearn.solving.exact import workers

MAX_ITER = 20_000
PRECISIONS = {"float32": np.float32, "float64": np.float64}


def entrants(optimizer: str, task: Task, engine: str | None) -> list[Peer]:
    """One peer for each name in `OURS`; `optimizer` is the learned rule."""
    makers = {
        OURS[0]: lambda key: _solved("auto", key, task, engine),
        OURS[1]: lambda key: _alone(key, task, engine),
        OURS[2]: lambda key: _solved(optimizer, key, task, engine),
        OURS[3]: lambda key: _solved("fista-restart", key, task, engine),
    }
    return [
        Peer(name, tuple(v for v in map(make, PRECISIONS) if v is not None), _absent(name, task))
        for name, make in makers.items()
    ]


def _absent(name: str, task: Task) -> str:
    if task.path and name != OURS[0]:
        return "a path begins each lambda at the last solution"
    return ""


def _solved(optimizer: str, key: str, task: Task, engine: str | None) -> Variant | None:
    """`pl.solve`, or for a path `pl.path`, with an optimizer."""
    learned = optimizer not in ("auto", "fista-restart")
    settings = f"{optimizer}, {key}" if learned else key
    options = {"optimizer": optimizer, "max_iter": MAX_ITER, "engine": engine}

    def prepare(part: Task):
        return part.problem(PRECISIONS[key]), part.lam

    def solve(prepared, tol: float) -> np.ndarray:
        return np.asarray(pl.solve(prepared[0], tol=tol, **options).x)

    def follow(prepared, tol: float) -> np.ndarray:
        problem, lams = prepared
        return np.asarray(pl.path(problem, lams, tol=tol, **options).x).reshape(len(lams), -1)

    if task.path:
        return Variant(settings, prepare, follow, whole=True) if optimizer == "auto" else None
    return Variant(settings, prepare, solve, whole=True)


def _alone(key: str, task: Task, engine: str | None) -> Variant | None:
    """The core without any start."""
    if task.path or engine == "torch":
        return None

    def prepare(part: Task):
        return part.problem(PRECISIONS[key]).model.glm()

    def solve(glm, tol: float) -> np.ndarray:
        return solve_glm(glm, limits=Limits(tol, MAX_ITER), threads=workers(None)).x

    return Variant(key, prepare, solve, whole=True)
