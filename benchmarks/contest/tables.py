"""Results for people (tables), for the documentation (Markdown) and for machines (JSON)."""

import math
from dataclasses import asdict

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from contest.growth import Growth
from contest.race import Entry
from contest.roofline import Roofline
from contest.variant import OURS

WIDTH = 100
HEADERS = (
    "solver",
    "settings",
    "tol",
    "setup ms",
    "all ms",
    "max gap",
    "95%",
    "ratio",
    "quartiles",
)


def ratios(entry: Entry, ours: Entry) -> list[float]:
    """Their time over ours in each repeat: above 1 where we are faster."""
    return [a / b for a, b in zip(entry.seconds, ours.seconds, strict=True)]


def best_peer(entries: list[Entry]) -> Entry | None:
    """The fastest that is not proxlearn."""
    timed = [e for e in entries if e.seconds and e.name not in OURS]
    return min(timed, key=lambda e: np.median(e.seconds), default=None)


def _gap(value: float) -> str:
    return f"{max(value, 0):.0e}"


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.1g}"


def cells(entries: list[Entry], count: int) -> list[tuple[str, ...]]:
    """The lines of a table; times are milliseconds for one instance."""
    ours, best, lines = entries[0], best_peer(entries), []
    for entry in entries:
        if not entry.seconds:
            lines.append((entry.name, entry.note, *[""] * (len(HEADERS) - 2)))
            continue
        per = 1e3 / count
        ratio, quartiles = "", ""
        if entry is not ours and ours.seconds:
            low, middle, high = np.quantile(ratios(entry, ours), [0.25, 0.5, 0.75])
            ratio, quartiles = _ratio(middle), f"{_ratio(low)}-{_ratio(high)}"
        lines.append(
            (
                entry.name + (" *" if entry is best else ""),
                entry.settings,
                f"{entry.tol:.0e}" if entry.tol else "none",
                f"{per * np.median(entry.setup):.3g}",
                f"{per * np.median(entry.seconds):.3g}",
                _gap(entry.worst),
                _gap(entry.p95),
                ratio,
                quartiles,
            )
        )
    return lines


def rich_table(title: str, headers, lines) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for header in headers:
        left = header in ("solver", "settings", "grows")
        table.add_column(header, justify="left" if left else "right", overflow="fold",
                         no_wrap=not left)  # fmt: skip
    for line in lines:
        table.add_row(*line)
    return table


def markdown(title: str, headers, lines) -> str:
    ruler = ["---" if h in ("solver", "settings", "grows") else "---:" for h in headers]
    rows = [headers, ruler, *lines]
    return f"**{title}**\n\n" + "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


GROWTH = ("solver", "grows", "from", "to", "first ms", "last ms", "exponent")


def growth_cells(found: list[Growth]) -> list[tuple[str, ...]]:
    return [
        (
            g.name,
            g.grows,
            str(g.sizes[0]),
            str(g.sizes[-1]),
            f"{1e3 * g.seconds[0]:.3g}",
            f"{1e3 * g.seconds[-1]:.3g}",
            f"{g.exponent:.2f}" if math.isfinite(g.exponent) else "not all sizes solved",
        )
        for g in found
    ]


def roofline_cells(r: Roofline) -> list[tuple[str, ...]]:
    times = {
        "sum of A from memory": r.read_memory,
        "sum of A in cache": r.read_cache,
        "A y from memory": r.matvec_memory,
        "A y in cache": r.matvec_cache,
        "one iteration of ours": r.iteration,
    }
    return [(k, f"{v:.1f}", f"{r.iteration / v:.2f}") for k, v in times.items()]


ROOFLINE = ("solver", "microseconds an instance", "iteration / this")


def as_json(title: str, row: int, count: int, target: float, entries: list[Entry]) -> dict:
    """Everything measured; a gap or time that is not there is null."""
    best = best_peer(entries)
    return {
        "row": row,
        "title": title,
        "count": count,
        "target": target,
        "best_peer": best.name if best else None,
        "entries": [_finite(asdict(e)) | {"ratios": _ratios(e, entries[0])} for e in entries],
    }


def _ratios(entry: Entry, ours: Entry) -> list[float]:
    return ratios(entry, ours) if entry.seconds and ours.seconds else []


def _finite(record: dict) -> dict:
    return {
        k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in record.items()
    }
