"""Convergence plots as pictures, PNG and SVG."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from proxlearn.errors import InputError
from proxlearn.evaluation.report.page_data import Array, Curve, Experiment, Panel
from proxlearn.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which readers with any colour vision can tell apart, and four more for
# plots of many methods; `page.css` has the same.
COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000",
           "#882255", "#7A7A1F", "#767676", "#332288")  # fmt: skip
LINES = ("-", "--", ":", "-.")
FLOOR = 1e-12
"""Smallest relative gap that is drawn: F* is not known better."""
CEILING = 1e3
"""Largest value that is drawn, except at the start: what diverges must not flatten the rest."""

POINTS = 200
"""Most points of a drawn curve. Tables are made from all iterations."""
LONG = 300
"""Beyond so many iterations their axis is logarithmic: quick methods and slow ones are seen."""
INSIDE = 5
"""Most methods whose names find room within the axes."""


def require_matplotlib() -> None:
    """Says what to install, before any work is done."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise InputError(
            "plots need matplotlib, which is not installed; pip install matplotlib"
        ) from None


def convergence(experiment: Experiment) -> "Figure":
    """The mean against iterations or time: axes for each panel, a curve for each method."""
    from matplotlib.figure import Figure

    panels = experiment.panels
    wide = 9.0 if max(len(p.methods) for p in panels) > INSIDE else 7.2
    figure = Figure(figsize=(wide, 4.2 * len(panels)), layout="constrained")
    for row, panel in enumerate(panels, 1):
        axes = figure.add_subplot(len(panels), 1, row)
        for method in panel.methods:
            i = experiment.place(method)
            value, drawn = _floored(experiment, method.mean.value), some_of(len(method.mean.value))
            axes.semilogy(
                _spent(experiment, panel, method.mean)[drawn],
                value[drawn],
                color=COLOURS[i % len(COLOURS)],
                linestyle=LINES[i % len(LINES)],
                linewidth=2,
                label=method.label,
            )
        _dress(axes, experiment, panel)
    return figure


def some_of(length: int) -> Array:
    """Indices of at most `POINTS` points of a curve: all of the beginning, then ever fewer."""
    if length <= POINTS:
        return np.arange(length)
    dense = POINTS // 3
    rest = np.geomspace(dense, length - 1, POINTS - dense)
    return np.unique(np.concatenate([np.arange(dense), rest.round().astype(int)]))


def _floored(experiment: Experiment, value: Array) -> Array:
    return value if experiment.y else np.where(value < FLOOR, FLOOR, value)


def _dress(axes: "Axes", experiment: Experiment, panel: Panel) -> None:
    """Limits, scales, labels and legend of the axes of a panel."""
    values = np.concatenate([_floored(experiment, m.mean.value) for m in panel.methods])
    drawn = values[np.isfinite(values) & (values > 0)]
    if len(drawn):
        first = max(float(m.mean.value[0]) for m in panel.methods)
        low = np.floor(np.log10(drawn.min()))
        high = np.ceil(np.log10(min(drawn.max(), max(first, CEILING))))
        axes.set_ylim(10**low, 10 ** max(high, low + 1))
    ends = [
        float(_spent(experiment, panel, m.mean)[_end(experiment, m.mean)]) for m in panel.methods
    ]
    last = max(ends) if experiment.against_time else max(1, *ends)
    if last > LONG:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:.0f}")
    axes.set_xlim(1 if last > LONG else 0, last)
    axes.set_xlabel(_spent_in(experiment, panel))
    axes.set_ylabel(experiment.y or "mean relative gap  (F − F*) / F*")
    axes.set_title(": ".join(filter(None, (experiment.title, panel.setting))), loc="left")
    axes.grid(True, which="major", color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    if len(panel.methods) > INSIDE:
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    else:
        axes.legend(frameon=False)


def _spent(experiment: Experiment, panel: Panel, curve: Curve) -> Array:
    """What a curve is drawn against: iterations, or milliseconds a problem."""
    return 1e3 * curve.seconds / panel.count if experiment.against_time else curve.iteration


def _spent_in(experiment: Experiment, panel: Panel) -> str:
    if experiment.against_time:
        return "milliseconds a problem"
    return "iteration (one gradient each)" if _one_gradient(panel) else "iteration"


def _end(experiment: Experiment, curve: Curve) -> int:
    """The place in the curve after which it stays at the floor."""
    above = np.flatnonzero(
        ~(_floored(experiment, curve.value) <= FLOOR) | (experiment.y is not None)
    )
    last = int(above[-1]) + 1 if len(above) else 0
    return min(last, len(curve.iteration) - 1)


def _one_gradient(panel: Panel) -> bool:
    return all(
        bool((np.diff(m.mean.gradients) == np.diff(m.mean.iteration)).all()) for m in panel.methods
    )


def save(experiment: Experiment, folder: Path) -> None:
    """Write `<name>.png` and `<name>.svg`, each whole or not at all."""
    import matplotlib

    figure = convergence(experiment)
    with replacing(folder / f"{experiment.name}.png") as temporary:
        figure.savefig(temporary, format="png", dpi=150)
    figure.set_layout_engine("none")  # as it is now, and not computed twice
    # The same rows give the same file: no date, no random names.
    with (
        replacing(folder / f"{experiment.name}.svg") as temporary,
        matplotlib.rc_context({"svg.hashsalt": "proxlearn"}),
    ):
        figure.savefig(temporary, format="svg", metadata={"Date": None})
