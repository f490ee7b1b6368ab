"""One HTML page of results: plots, tables, settings and commands. Needs no network and no server.

The page holds all that it shows; its script draws with uPlot (MIT licence, in `assets/`).
"""

import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from proxlearn import __version__
from proxlearn.errors import InputError, unknown
from proxlearn.evaluation.comparison import Comparison
from proxlearn.evaluation.report import curves, prose
from proxlearn.evaluation.report.page_data import (
    Array,
    Curve,
    Experiment,
    Panel,
    from_comparison,
    read_folder,
    read_json,
)
from proxlearn.files import replacing

CLAIMS = "claims.json"


def write_page(
    folder: str | Path,
    experiments: Sequence[Experiment] | None = None,
    title: str = "proxlearn: results",
    only: str | None = None,
    seen: Sequence[str] = (),
) -> Path:
    """Write `index.html` into the folder, with a PNG and an SVG of each experiment beside it.

    The experiments are those whose rows are in the folder, if not given; see `page_data`. With
    `only`, the page shows that experiment alone and is called `NAME.html`. A
    file `claims.json`, a list of mappings with the keys claim, paper, ours and verdict, becomes a
    table at the top. A claim that names its experiment is shown where that experiment is. The
    sentences `seen` stand before all that.
    """
    curves.require_matplotlib()
    folder = Path(folder)
    shown = read_folder(folder) if experiments is None else experiments
    if only is not None:
        known = [experiment.name for experiment in shown]
        if only not in known:
            raise unknown("experiment", only, known)
        shown = [experiment for experiment in shown if experiment.name == only]
    claims = read_json(folder / CLAIMS, list) or []
    if not all(isinstance(claim, dict) for claim in claims):
        raise InputError(f"{folder / CLAIMS} does not list claims; expected a list of mappings")
    names = {experiment.name for experiment in shown}
    everywhere = {None} if only is None else set()
    claims = [claim for claim in claims if claim.get("experiment") in {*everywhere, *names}]
    for experiment in shown:
        curves.save(experiment, folder)
    page = folder / f"{only or 'index'}.html"
    with replacing(page) as temporary:
        temporary.write_text(render(shown, claims, title, seen), encoding="utf-8")
    return page


def write_comparison(folder: Path, result: Comparison, card: Mapping[str, Any]) -> Path:
    """The page of one comparison; its pictures are `convergence.png` and `convergence.svg`."""
    experiment = from_comparison("convergence", result, card)
    return write_page(folder, [experiment])


def render(
    experiments: Sequence[Experiment],
    claims: Sequence[Mapping[str, Any]] = (),
    title: str = "proxlearn: results",
    seen: Sequence[str] = (),
) -> str:
    """The page as text."""
    said = f'<p class="summary">{"<br>".join(map(escape, seen))}</p>' if seen else ""
    return Template(_asset("page.html")).substitute(
        title=escape(title),
        version=escape(__version__),
        style=_asset("uPlot.min.css") + _asset("page.css"),
        contents=said + prose.contents(experiments, bool(claims)),
        claims=prose.claims_table(claims, {e.name for e in experiments}),
        sections="\n".join(prose.section(e) for e in experiments),
        licence=_asset("uPlot-LICENSE"),
        library=_asset("uPlot.iife.min.js"),
        script=_asset("page.js"),
        data=_for_script([[_panel(e, p) for p in e.panels] for e in experiments]),
    )


def _asset(name: str) -> str:
    return (files("proxlearn.evaluation.report") / "assets" / name).read_text(encoding="utf-8")


def _for_script(data: Any) -> str:
    """JSON that no text in it can turn into markup."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("&", "\\u0026")


def _panel(experiment: Experiment, panel: Panel) -> dict[str, Any]:
    """What the script draws: for each method thinned curves, times in milliseconds a problem."""
    floor = None if experiment.y else curves.FLOOR
    methods = []
    for method in panel.methods:
        both = {"mean": method.mean, "median": method.median}
        drawn = {n: _thinned(c, floor, panel.count) for n, c in both.items() if c is not None}
        methods.append({"label": method.label, "place": experiment.place(method), **drawn})
    return {
        "y": experiment.y or "relative gap (F − F*) / F*",
        "gap": experiment.y is None,
        "x": "t" if experiment.against_time else "k",
        "all": panel.count,
        "some": max(method.instances for method in panel.methods),
        "methods": methods,
    }


def _thinned(curve: Curve, floor: float | None, count: int) -> dict[str, list[Any]]:
    """At most `curves.POINTS` of a curve: all of the beginning, then ever fewer."""
    chosen = curves.some_of(len(curve.iteration))

    def pick(values: Array, digits: int = 4) -> list[Any]:
        return [_short(v, digits) for v in values[chosen].astype(float).tolist()]

    def drawable(values: Array) -> list[Any]:  # a logarithm has no place for 0
        least = np.where(values > 0, values, np.nan) if floor is None else np.maximum(values, floor)
        return pick(least, 3)

    drawn = {
        "k": curve.iteration[chosen].tolist(),
        "t": pick(1e3 * curve.seconds / count),
        "v": drawable(curve.value),
    }
    if (curve.gradients != curve.iteration).any():
        drawn["g"] = pick(curve.gradients)
    if curve.low is not None and curve.high is not None:
        drawn |= {"low": drawable(curve.low), "high": drawable(curve.high)}
    return drawn


def _short(value: float, digits: int) -> float | int | None:
    """Rounded to less than a pixel; what is not finite is not drawn."""
    if not np.isfinite(value):
        return None
    short = float(f"{value:.{digits - 1}e}")
    return int(short) if short.is_integer() and abs(short) < 1e6 else short
