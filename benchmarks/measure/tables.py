"""Results for people (tables of 80 columns), for documents (Markdown) and for machines (JSON)."""

import math
from collections.abc import Iterable

import numpy as np

from measure.race import Entry
from measure.rows import ALL_KINDS
from measure.task import Task

COLUMNS = ("scikit-learn", "celer", "skglm", "SPAMS")
FURTHER = ("adelie", "SciPy")
"""Columns of further kinds of problems, shown where one of these took part."""
SHORT = {"scikit-learn": "sklearn", "prototype": "proto"}
ABSENT, FAILED = "-", "failed"


def record(row, task: Task, entries: list[Entry], ours: str, statistic: str, target: float) -> dict:
    """Everything that was measured in a row; a time or gap that is not there is null."""
    held = {
        "row": row.name, "kind": row.kind, "data": row.data, "share": row.share,
        "m": task.m, "n": task.n, "lam": task.lam, "target": target, "ours": ours,
    }  # fmt: skip
    held["entries"] = [
        {
            "solver": e.name,
            "settings": e.variant.settings,
            "tol": e.found.tol,
            "min": _finite(e.time("min")),
            "median": _finite(e.time("median")),
            "runs": len(e.seconds),
            "gap": _finite(e.gap),
            "calibrated": e.found.seconds,
            "limit": _finite(e.found.limit),
            "note": e.found.note,
        }
        for e in entries
    ]
    return held | ratios(held, statistic)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def ratios(held: dict, statistic: str) -> dict:
    """Times over ours, for each solver; where it was given up, a lower bound and `bound` true."""
    mine = next(e for e in held["entries"] if e["solver"] == held["ours"])
    solved = mine[statistic] is not None and (mine["gap"] or 0.0) <= held["target"]
    solved = solved and mine["gap"] is not None
    found = {}
    for name in dict.fromkeys(e["solver"] for e in held["entries"]):
        if name == held["ours"]:
            continue
        group = [e for e in held["entries"] if e["solver"] == name]
        times = [e[statistic] for e in group if e[statistic] is not None]
        given_up = [e["limit"] for e in group if e["note"].startswith("over") and e["limit"]]
        seconds = min(times or given_up, default=None)
        if seconds is not None:
            ratio = seconds / mine[statistic] if solved else None
            found[name] = {"seconds": seconds, "ratio": ratio, "bound": not times}
    peers = {k: v for k, v in found.items() if k in (*COLUMNS, *FURTHER)}
    exact = {k: v for k, v in peers.items() if not v["bound"]} or peers
    best = min(exact, key=lambda k: exact[k]["seconds"], default=None)
    return {
        "seconds": mine[statistic],
        "solved": solved,
        "ratios": found,
        "best_peer": best,
        "ratio": exact[best]["ratio"] if best else None,
    }


def number(value: float | None) -> str:
    """Three digits."""
    if value is None:
        return ABSENT
    if value >= 99.95:
        return f"{value:.0f}"
    if value >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.0995 else f"{value:.2g}"


def _cell(found: dict | None) -> str:
    if found is None or found["ratio"] is None:
        return ABSENT
    return (">" if found["bound"] else "") + number(found["ratio"])


def headers(records: list[dict]) -> list[str]:
    extra = [n for n in (*FURTHER, "prototype") if any(n in r["ratios"] for r in records)]
    names = [SHORT.get(n, n) for n in (*COLUMNS, *extra)]
    return ["data", "lambda", "ours ms", *names, "best"]


def line(held: dict, columns: Iterable[str]) -> list[str]:
    """Ratios of one row; `best` is the fastest peer's."""
    full = {SHORT.get(n, n): n for n in (*COLUMNS, *FURTHER, "prototype")}
    cells = [held["data"], f"{held['share']:g}", _milliseconds(held)]
    cells += [_cell(held["ratios"].get(full[c])) for c in columns if c in full]
    best = held["ratios"].get(held["best_peer"])
    return [*cells, _cell(best) if held["solved"] else FAILED]


def _milliseconds(held: dict) -> str:
    return ABSENT if held["seconds"] is None else f"{1e3 * held['seconds']:.3g}"


SUMMARY = ["problem", "rows", "below 1", "median", "minimum", "where"]


def summary(records: list[dict]) -> list[list[str]]:
    """For each kind and for all: rows, ratios below 1 (or unsolved), median and minimum."""
    groups = {title: [r for r in records if r["kind"] == k] for k, title in ALL_KINDS.items()}
    groups["all"] = records
    return [_summed(name, group) for name, group in groups.items() if group]


def _summed(name: str, group: list[dict]) -> list[str]:
    compared = [r for r in group if r["best_peer"] or not r["solved"]]
    values = [r["ratio"] or 0.0 for r in compared]
    if not values:
        return [name, str(len(group)), "0", ABSENT, ABSENT, ABSENT]
    worst = compared[int(np.argmin(values))]
    where = f"{worst['data']} {worst['share']:g}"
    below = sum(v < 1 for v in values)
    return [name, str(len(group)), str(below), number(float(np.median(values))),
            number(min(values)), where]  # fmt: skip


def plain(title: str, head: list[str], lines: list[list[str]], left: int = 1) -> str:
    """A table in columns as wide as their longest cell, the first `left` of them to the left."""
    widths = [max(len(r[i]) for r in [head, *lines]) for i in range(len(head))]
    rows = [head, ["-" * w for w in widths], *lines]
    text = [
        " ".join(
            c.ljust(w) if i < left else c.rjust(w)
            for i, (c, w) in enumerate(zip(r, widths, strict=True))
        )
        for r in rows
    ]
    return "\n".join([title, *(t.rstrip() for t in text), ""])


def markdown(title: str, head: list[str], lines: list[list[str]], left: int = 1) -> str:
    ruler = ["---" if i < left else "---:" for i in range(len(head))]
    return f"**{title}**\n\n" + "".join(f"| {' | '.join(r)} |\n" for r in [head, ruler, *lines])


def report(records: list[dict], style=plain) -> str:
    """A table for each kind, then the summary."""
    parts, head = [], headers(records)
    for kind, title in ALL_KINDS.items():
        lines = [line(r, head) for r in records if r["kind"] == kind]
        if lines:
            parts.append(style(title, head, lines))
    parts.append(style("Best peer's time over ours", SUMMARY, summary(records)))
    return "\n".join(parts)
