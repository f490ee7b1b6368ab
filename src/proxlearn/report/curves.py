"""Convergence plots."""

from pathlib import Path
from typing import TYPE_CHECKING

from proxlearn.comparison import Comparison
from proxlearn.errors import InputError
from proxlearn.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which readers with any colour vision can tell apart.
COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
LINES = ("-", "--", "-.", ":")
FLOOR = 1e-8
"""Smallest relative gap that is drawn."""


def require_matplotlib() -> None:
    """Says what to install, before any work is done."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise InputError(
            "plots need matplotlib, which is not installed; pip install 'proxlearn[plot]'"
        ) from None


def convergence(result: Comparison, title: str) -> "Figure":
    """Mean relative gap against iterations, a labelled curve for each optimizer."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for i, name in enumerate(result.runs):
        gap = result.mean_gap(name).clamp(min=FLOOR / 10).cpu().numpy()
        colour, line = COLOURS[i % len(COLOURS)], LINES[i // len(COLOURS) % len(LINES)]
        axes.semilogy(gap, color=colour, linestyle=line, linewidth=2, label=name)
    _dress(axes, result, title)
    return figure


def _dress(axes: "Axes", result: Comparison, title: str) -> None:
    top = max(float(result.mean_gap(name)[0]) for name in result.runs)
    axes.set_ylim(FLOOR, max(3 * top, 1e-3))
    axes.set_xlim(0, max(len(run.seconds) - 1 for run in result.runs.values()))
    axes.set_xlabel("iteration (one gradient each)" if _one_gradient(result) else "iteration")
    axes.set_ylabel("mean relative gap  (F − F*) / F*")
    axes.set_title(title, loc="left")
    axes.grid(True, which="major", color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)


def _one_gradient(result: Comparison) -> bool:
    return all(bool((run.grad_evals.diff(dim=0) == 1).all().item()) for run in result.runs.values())


def save(figure: "Figure", path: Path) -> None:
    """Write the figure as PNG, whole or not at all."""
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=150)
