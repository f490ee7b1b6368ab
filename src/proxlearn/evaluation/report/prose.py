"""The parts of the page that are text: tables, settings, headings. All names are escaped."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import quote

import numpy as np

from proxlearn.evaluation.report.curves import FLOOR
from proxlearn.evaluation.report.page_data import Experiment, Method, Panel

LEVELS = (1e-3, 1e-6)
"""Mean relative gaps to which iterations and time are counted, where a card gives no others."""
SAMPLES = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
"""Iterations in the table of numbers."""
BAR = "fista-restart"
"""What every method is measured against."""
VERDICTS = {"reproduced": "yes", "not reproduced": "no", "not measured": "open"}
CLAIMS = {
    "paper": "paper",
    "ours": "ours",
    "restarted_fista": "FISTA with restart, right step",
    "verdict": "verdict",
    "tight": "verdict at 10⁻⁸",
    "weights": "preset, seeds, spread",
    "note": "",
}
"""Columns of the table of claims, beside the claim, and their headings."""
JUDGED = (
    "Iterations are to a mean relative gap at x over all problems. A stated number is reproduced "
    "where ours is at most a tenth larger, a baseline's where it is within a quarter; “almost N "
    "times faster” where the ratio is at least half of N, “more than N times” where it is at "
    "least N. Converged, without a level, means 10⁻⁶, and 10⁻⁸ in the column for it. Norms have "
    "settled where they stay within a tenth of their last value; a curve fluctuates where it rises "
    "above twice the smallest gap before. FISTA's published step is 1/‖A‖, the right one 1/L. The "
    "published preset trains as the authors' code does, the corrected one with the right step; the "
    "spread is that of its seeds. Shipped weights that belong to neither were trained on less."
)


def contents(experiments: Sequence[Experiment], claims: bool) -> str:
    """Links to the sections, where there is more than one."""
    if len(experiments) + claims < 2:
        return ""
    links = [("claims", "What the paper says, and what we measured")] if claims else []
    links += [(f"e-{e.name}", e.title) for e in experiments]
    items = "".join(f'<li><a href="#{quote(i)}">{escape(t)}</a></li>' for i, t in links)
    return f'<nav aria-label="Contents"><ul>{items}</ul></nav>'


def claims_table(claims: Sequence[Mapping[str, Any]], shown_names: Collection[str] = ()) -> str:
    """The paper's statements beside ours; empty where there are none.

    A statement leads to the figure of its experiment, where that is one of `shown_names`.
    """
    if not claims:
        return ""
    always = ("paper", "ours", "verdict")
    shown = {k: h for k, h in CLAIMS.items() if k in always or any(c.get(k) for c in claims)}
    body = []
    for claim in claims:
        said, name = escape(_text(claim.get("claim", ""))), claim.get("experiment")
        if name in shown_names:
            said = f'<a href="#e-{quote(str(name))}">{said}</a>'
        cells = f'<th scope="row">{said}</th>'
        for key in shown:
            text = _text(claim.get(key, ""))
            judged = key == "verdict" or (key == "tight" and text)
            kind = VERDICTS.get(text, "partly") if judged else f"claim-{key}"
            cells += f'<td class="{kind}" data-head="{shown[key]}">{escape(text)}</td>'
        body.append(f"<tr>{cells}</tr>")
    heading = '<h2 id="claims">What the paper says, and what we measured</h2>'
    table = _table(["claim", *shown.values()], body, "claims")
    said = f'<p class="summary">{escape(_tally(claims))}</p>{table}<p class="caption">{JUDGED}</p>'
    return f'<section aria-labelledby="claims">{heading}{said}</section>'


def _tally(claims: Sequence[Mapping[str, Any]]) -> str:
    """How many claims have which verdict, and how often FISTA with restart is no slower."""
    verdicts = Counter(_text(claim.get("verdict", "")) for claim in claims)
    one = len(claims) == 1
    counts = ", ".join(v if one else f"{n} {v}" for v, n in verdicts.most_common())
    behind = sum("FISTA with restart" in _text(claim.get("note", "")) for claim in claims)
    where = "Here" if one else f"In {behind} of them"
    said = f" {where} FISTA with restart is as fast or faster." if behind else ""
    return f"{'One statement' if one else f'Of {len(claims)} statements'}: {counts}.{said}"


def section(experiment: Experiment) -> str:
    """Heading, plots, tables, settings and command of one experiment."""
    card, name = experiment.card, escape(experiment.name)
    paper = (
        f'<span class="paper">{escape(_text(card["paper"]))}</span>' if card.get("paper") else ""
    )
    data = f"<p>{escape(_text(card['data']))}</p>" if card.get("data") else ""
    notes = "".join(f"<li>{escape(_text(note))}</li>" for note in _listed(card.get("notes")))
    return "\n".join(
        [
            f'<section class="experiment" aria-labelledby="e-{name}">',
            f'<h2 id="e-{name}">{escape(experiment.title)} {paper}</h2>',
            data,
            f'<ul class="notes">{notes}</ul>' if notes else "",
            *(_panel(experiment, panel) for panel in experiment.panels),
            _settings(experiment),
            "</section>",
        ]
    )


def _panel(experiment: Experiment, panel: Panel) -> str:
    """Heading, plot and tables of one panel."""
    heading = f"<h3>{escape(panel.setting)}</h3>" if len(experiment.panels) > 1 else ""
    label = escape(f"{experiment.title} {panel.setting}".strip())
    names = escape(", ".join(method.label for method in panel.methods))
    levels = "" if experiment.y else _summary(experiment, panel) + _levels(experiment, panel)
    data = panel.data if panel.data != experiment.card.get("data") else ""
    return (
        f"{heading}{f'<p>{escape(data)}</p>' if data else ''}"
        f'<figure class="plot" aria-label="{label}"><div class="controls"></div>'
        f'<div class="canvas" role="img" aria-label="{label}: curves of {names}. '
        f'The table of numbers below holds the same."></div></figure>'
        f"{levels}{_numbers(experiment, panel)}"
    )


def _steps(method: Method, level: float) -> int | None:
    i = method.first_below(level)
    return None if i is None else int(method.mean.iteration[i])


def _levels_of(experiment: Experiment) -> tuple[float, ...]:
    return tuple(experiment.card.get("levels") or LEVELS)


def _milliseconds(panel: Panel, method: Method, level: float) -> float | None:
    """Time a problem to the level."""
    i = method.first_below(level)
    return None if i is None else 1e3 * float(method.mean.seconds[i]) / panel.count


def _summary(experiment: Experiment, panel: Panel) -> str:
    """Which method needs the fewest iterations, and which the least time, to each level."""
    lines = []
    for level in _levels_of(experiment):
        counts = {m.label: k for m in panel.methods if (k := _steps(m, level)) is not None}
        times = {m.label: _milliseconds(panel, m, level) or 0.0 for m in panel.methods}
        if not counts:
            lines.append(f"No method reaches {_power(level)}.")
            continue
        least = min(counts.values())
        first = [name for name, k in counts.items() if k == least]
        quick = min(counts, key=lambda name: times[name])
        lines.append(
            f"To {_power(level)}: {' and '.join(first)} need{'s' if len(first) == 1 else ''} the "
            f"fewest iterations, {least}; {quick} takes the least time, "
            f"{_figure(times[quick])} ms a problem."
        )
    lines += _losses(experiment, panel)
    return f'<p class="summary">{"<br>".join(map(escape, lines))}</p>'


def _losses(experiment: Experiment, panel: Panel) -> list[str]:
    """A line for each of the paper's rules that is no faster than FISTA with restart."""
    bar = next((m for m in panel.methods if m.name == BAR), None)
    lines: list[str] = []
    if bar is None:
        return lines
    for method in (m for m in panel.methods if m.name.endswith("-pa")):
        for level in _levels_of(experiment):
            ours, theirs = _steps(method, level), _steps(bar, level)
            if theirs is not None and (ours is None or ours >= theirs):
                last = int(method.mean.iteration[-1])
                many = f"{ours} iterations" if ours is not None else f"not within {last}"
                said = f"{method.label} is not faster than {bar.label} to {_power(level)}"
                lines.append(f"{said}: {many} against {theirs}.")
        ends = float(method.mean.value[-1]), float(bar.mean.value[-1])
        if _steps(bar, max(_levels_of(experiment))) is None and not ends[0] < ends[1]:
            gaps = f"{_figure(ends[0])}, that of {bar.label} {_figure(ends[1])}"
            lines.append(f"At the end the gap of {method.label} is {gaps}.")
    return lines


def _levels(experiment: Experiment, panel: Panel) -> str:
    """Iterations and time to each level, time an iteration, and the mean gap at the end."""
    levels, methods = _levels_of(experiment), panel.methods
    columns: dict[str, list[float | None]] = {}
    for level in levels:
        columns[f"iterations to {_power(level)}"] = [_steps(m, level) for m in methods]
    for level in levels:
        columns[f"ms to {_power(level)}"] = [_milliseconds(panel, m, level) for m in methods]
    columns["ms an iteration"] = [
        1e3 * float(m.mean.seconds[-1]) / panel.count / max(int(m.mean.iteration[-1]), 1)
        for m in methods
    ]
    columns["gap at the end"] = [max(float(m.mean.value[-1]), FLOOR) for m in methods]
    shares = panel.count > 1 and all(m.ends is not None and len(m.ends) > 1 for m in methods)
    best = [min((v for v in c if v is not None and v == v), default=None) for c in columns.values()]
    body = []
    for i, method in enumerate(methods):
        never = f"not within {method.mean.iteration[-1]}"
        row = [column[i] for column in columns.values()]
        cells = "".join(
            _cell(never if v is None else _figure(v), v is not None and v == top)
            for v, top in zip(row, best, strict=True)
        )
        if shares and method.ends is not None:
            cells += _cell(f"{int((method.ends < levels[-1]).sum())} of {len(method.ends)}")
        body.append(f'<tr><th scope="row">{escape(method.label)}</th>{cells}</tr>')
    caption = f"Mean over {_all(panel)}; milliseconds (ms) a problem; the best of a column is bold."
    more = [f"ends below {_power(levels[-1])}"] if shares else []
    return _table(["method", *columns, *more], body, "levels", caption)


def _all(panel: Panel) -> str:
    return f"all {panel.count} problems" if panel.count > 1 else "the one problem"


def _numbers(experiment: Experiment, panel: Panel) -> str:
    """The mean of every method at some iterations: the plot as text."""
    last = max(int(m.mean.iteration[-1]) for m in panel.methods)
    rows = [k for k in SAMPLES if k < last] + [last]
    body = []
    for k in rows:
        cells = "".join(_cell(_value_at(method, k, experiment.y)) for method in panel.methods)
        body.append(f'<tr><th scope="row">{k}</th>{cells}</tr>')
    head = ["iteration", *(method.label for method in panel.methods)]
    what = experiment.y or "relative gap"
    table = _table(head, body, "numbers", f"Mean {what} over {_all(panel)}.")
    return f"<details><summary>The numbers as a table</summary>{table}</details>"


def _value_at(method: Method, k: int, y: str | None) -> str:
    i = int(np.searchsorted(method.mean.iteration, k))
    if i == len(method.mean.iteration) or method.mean.iteration[i] != k:
        return ""
    value = float(method.mean.value[i])
    return _figure(value if y else max(value, FLOOR))


def _settings(experiment: Experiment) -> str:
    """Settings, seed, version, how F* was found, the command, and links to the pictures."""
    card = experiment.card
    named = {"optimum": "optimal values", "count": "problems", "iterations": "iterations"}
    given = {title: card[key] for key, title in named.items() if card.get(key) is not None}
    settings = card.get("settings")
    more = settings if isinstance(settings, Mapping) else {"settings": settings} if settings else {}
    given |= {str(k): v for k, v in more.items()}
    given |= {key: card[key] for key in ("seed", "version") if card.get(key) is not None}
    terms = "".join(
        f"<div><dt>{escape(k)}</dt><dd>{escape(_text(v))}</dd></div>" for k, v in given.items()
    )
    command = card.get("command")
    shown = f"<pre><code>{escape(_text(command))}</code></pre>" if command else ""
    links = ", ".join(
        f'<a href="{quote(experiment.name)}.{kind}">{kind.upper()}</a>' for kind in ("png", "svg")
    )
    return f'{shown}<dl>{terms}</dl><p class="links">The same as a picture: {links}</p>'


def _table(head: Iterable[str], body: Iterable[str], kind: str, caption: str = "") -> str:
    """A table that scrolls by itself where it is too wide, under its caption, which does not."""
    cells = "".join(f'<th scope="col">{escape(h)}</th>' for h in head)
    said = f'<p class="caption">{escape(caption)}</p>' if caption else ""
    label = escape(caption or kind)
    return (
        f'{said}<div class="wide" tabindex="0" role="region" aria-label="{label}">'
        f'<table class="{kind}" aria-label="{label}"><thead><tr>{cells}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _cell(value: Any, best: bool = False) -> str:
    text = escape(_text(value))
    return f"<td><strong>{text}</strong></td>" if best else f"<td>{text}</td>"


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{k} {_text(v)}" for k, v in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_text(v) for v in value)
    if isinstance(value, float):
        return f"{value:g}"
    return "-" if value is None else str(value)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value] if value else []


def _figure(value: float) -> str:
    """Three digits; F* is not known well enough for gaps below `FLOOR`."""
    if value == FLOOR:
        return f"≤ {_power(FLOOR)}"
    return f"{value:.0f}" if float(value).is_integer() and abs(value) < 1e6 else f"{value:.3g}"


def _power(level: float) -> str:
    """1e-3 as 10⁻³; other numbers as they are."""
    mantissa, exponent = f"{level:e}".split("e")
    if float(mantissa) != 1:
        return f"{level:g}"
    return "10" + str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
