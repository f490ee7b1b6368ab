"""Pictures of a recovery: the data, two methods after a few iterations, and the optimum."""

from typing import Any

import numpy as np

from proxlearn.evaluation.report.curves import require_matplotlib
from proxlearn.problems.problem import Problem
from proxlearn.solving.solution import Solution
from proxlearn.solving.solver import solve

METHODS = ("fista-restart", "auto")
FEW = 20
"""Iterations after which each of them is stopped."""
LEAST = 1e-12
"""A tolerance that is not reached: with 0 no certificate would be looked for on the way."""


def stages(
    problem: Problem,
    before: Any,
    title: str = "measured",
    *,
    tol: float = 1e-3,
) -> tuple[Any, Solution]:
    """A figure with the data and what two methods make of them, with certified gaps below.

    Parameters
    ----------
    problem : Problem
        One picture, from `sparse_recovery`.
    before : array (h, w)
        What was measured, as a picture.
    title : str
        What to write above it.
    tol : float
        The relative gap to which the second of `METHODS` goes on.

    Returns
    -------
    figure : matplotlib.figure.Figure
    solution : Solution
        The optimum.
    """
    require_matplotlib()
    import matplotlib.pyplot as plt

    panels = [(title, np.asarray(before), "")]
    for name in METHODS:
        short = solve(problem, name, tol=LEAST, max_iter=FEW, polish=False)
        panels.append((f"{name}, {FEW} iterations", _picture(short), _gap(short)))
    best = solve(problem, METHODS[-1], tol=tol, polish=False)
    count = int(np.asarray(best.iterations).max())
    panels.append((f"optimum, {count} iterations", _picture(best), _gap(best)))
    figure, axes = plt.subplots(1, len(panels), figsize=(3 * len(panels), 3.5))
    for axis, (name, picture, below) in zip(axes, panels, strict=True):
        axis.imshow(picture, cmap="gray", vmin=0, vmax=1)
        axis.set_title(name, fontsize=10)
        axis.set_xlabel(below)
        axis.set_xticks([])
        axis.set_yticks([])
    figure.tight_layout()
    return figure, best


def _picture(solution: Solution) -> Any:
    return np.asarray(solution.image)


def _gap(solution: Solution) -> str:
    gap, objective = (float(np.asarray(v).max()) for v in (solution.gap, solution.objective))
    return f"certified gap {gap / objective:.1e}"
