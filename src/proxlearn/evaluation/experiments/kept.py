"""Rows of an earlier run that stay in the file when some methods of an experiment are run again.

This way a method that was added or trained since then is measured alone. Rows of the others are
kept as they are, with the version of the package that made them.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proxlearn.errors import InputError
from proxlearn.evaluation.experiments.experiment import Experiment
from proxlearn.evaluation.report import parquet

SAME = ("scale", "seed", "count", "iterations")
"""What the earlier run must have in common with the new one, as its card says."""


def earlier(folder: Path, experiment: Experiment) -> tuple[Any, dict[str, Any]] | None:
    """Rows and card of the earlier run in a folder; None where there is none."""
    rows, card = (folder / f"{experiment.name}.{kind}" for kind in ("parquet", "json"))
    if not (rows.is_file() and card.is_file()):
        return None
    found: dict[str, Any] = json.loads(card.read_text(encoding="utf-8"))
    return parquet.read(rows), found


def parts(rows: Mapping[str, Any], new: Mapping[str, Any]) -> list[Any]:
    """The rows of every setting and optimizer that the new card does not have."""
    again = {(p["setting"], name) for p in new["panels"] for name in p["optimizers"]}
    pairs = dict.fromkeys(zip(rows["setting"].tolist(), rows["optimizer"].tolist(), strict=True))
    found = []
    for setting, optimizer in pairs:
        if (setting, optimizer) in again:
            continue
        here = (rows["setting"] == setting) & (rows["optimizer"] == optimizer)
        columns = {name: column[here] for name, column in rows.items()}
        texts = [name for name, kind in parquet.SCHEMA.items() if kind == "dictionary"]
        found.append({**columns, **{name: columns[name].tolist() for name in texts}})
    return found


def joined(
    old: Mapping[str, Any], new: Mapping[str, Any], experiment: Experiment
) -> dict[str, Any]:
    """The card of both runs: the new one, with the methods of the old one beside its own."""
    for key in SAME:
        if old.get(key) != new[key]:
            raise InputError(
                f"the earlier run of {experiment.name} has {key} {old.get(key)} and this one "
                f"{new[key]}; make them equal, or run without --keep"
            )
    panels = {p["setting"]: dict(p) for p in old["panels"]}
    for panel in new["panels"]:
        before = panels.get(panel["setting"], {**panel, "optimizers": []})
        if before["data"] != panel["data"]:
            raise InputError(
                f"the earlier run of {experiment.name} has other problems ({before['data']}) "
                f"than this one ({panel['data']}); run all its optimizers again, without --keep"
            )
        both = dict.fromkeys([*before["optimizers"], *panel["optimizers"]])
        panels[panel["setting"]] = {**panel, "optimizers": list(both)}
    order = [s.name for s in experiment.settings]
    labels = {entry["name"]: entry for card in (old, new) for entry in card["optimizers"]}
    own = [name for name in experiment.optimizers() if name in labels]
    names = [*own, *(name for name in labels if name not in own)]
    kept = [name for name in names if name not in {entry["name"] for entry in new["optimizers"]}]
    notes = [n for n in old["notes"] if not n.startswith("Not run, as") and n not in new["notes"]]
    return {
        **new,
        "panels": sorted(panels.values(), key=lambda p: order.index(p["setting"])),
        "data": "; ".join(dict.fromkeys(p["data"] for p in panels.values())),
        "optimizers": [labels[name] for name in names],
        "notes": [*notes, *new["notes"]],
        "command": f"{old['command']}; then {new['command']} --keep",
        "kept": {"version": old["version"], "optimizers": kept},
    }
