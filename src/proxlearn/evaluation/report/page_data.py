"""What a page shows: experiments, their curves, and the folders of rows that they are read from."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from proxlearn.errors import InputError
from proxlearn.evaluation.comparison import Comparison
from proxlearn.evaluation.report import parquet

Array = npt.NDArray[Any]
BAND = (0.1, 0.9)
"""Quantiles over the instances between which the band about the median lies."""


@dataclass(frozen=True)
class Curve:
    """A value at P iterations; gradients and seconds are what was spent until then."""

    iteration: Array
    gradients: Array
    seconds: Array
    """For all instances together."""
    value: Array
    low: Array | None = None
    high: Array | None = None


@dataclass(frozen=True)
class Method:
    """One optimizer: the mean over all instances, and the median with a band over some."""

    name: str
    label: str
    mean: Curve
    median: Curve | None = None
    instances: int = 0
    """How many the median is over."""
    ends: Array | None = None
    """The last value of each instance."""

    def first_below(self, level: float) -> int | None:
        """Index into `mean` of the first value below the level; None if there is none."""
        below = np.flatnonzero(self.mean.value < level)
        return int(below[0]) if len(below) else None


@dataclass(frozen=True)
class Panel:
    """One plot: methods on the same problems in one setting."""

    setting: str
    methods: tuple[Method, ...]
    count: int
    """Number of instances that the means are over."""
    data: str = ""


@dataclass(frozen=True)
class Experiment:
    """Panels, and a card that says what was run; see `read` for its keys."""

    name: str
    panels: tuple[Panel, ...]
    card: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return str(self.card.get("title", self.name))

    def place(self, method: Method) -> int:
        """Which colour and dashes the method has: the same in all panels."""
        names = dict.fromkeys(m.name for panel in self.panels for m in panel.methods)
        return list(names).index(method.name)

    @property
    def y(self) -> str | None:
        """What the value is, where it is not the relative gap."""
        return self.card.get("y")

    @property
    def against_time(self) -> bool:
        """True where the curves are drawn against time first: their iterations differ in kind."""
        return self.card.get("x") == "time"


def from_comparison(name: str, result: Comparison, card: Mapping[str, Any]) -> Experiment:
    """An experiment of one panel; `name` is that of its files."""
    methods = []
    for key, run in result.runs.items():
        gap = result.relative_gap(key).cpu().numpy()
        spent = (
            np.arange(len(gap)),
            run.grad_evals.double().mean(1).cpu().numpy(),
            run.seconds.cpu().numpy(),
        )
        mean = Curve(*spent, gap.mean(1))
        median = Curve(*spent, *_quantiles(gap)) if gap.shape[1] > 1 else None
        methods.append(Method(key, result.label(key), mean, median, gap.shape[1], gap[-1]))
    return Experiment(name, (Panel("", tuple(methods), len(result.optimum)),), card)


def _quantiles(values: Array) -> list[Array]:
    """Median and the ends of the band over the columns; what is no number counts as huge."""
    known = np.where(np.isnan(values), np.inf, values)
    ranks = [round(q * (values.shape[1] - 1)) for q in BAND]
    ordered = np.sort(known, axis=1)
    middle = (ordered[:, (values.shape[1] - 1) // 2] + ordered[:, values.shape[1] // 2]) / 2
    return [middle, ordered[:, ranks[0]], ordered[:, ranks[1]]]


def read_folder(folder: str | Path) -> list[Experiment]:
    """All experiments of a folder: `<name>.parquet` with rows, `<name>.json` with the card."""
    if not Path(folder).is_dir():
        raise InputError(f"{folder} is not a folder; expected one that proxlearn reproduce wrote")
    paths = sorted(Path(folder).glob("*.parquet"))
    if not paths:
        raise InputError(
            f"{folder} has no .parquet files; expected a folder that proxlearn reproduce wrote"
        )
    found = [read(path) for path in paths]
    return sorted(found, key=lambda e: (_place(e.card.get("paper")), e.name))


def _place(figure: Any) -> tuple[bool, int]:
    """Figures of the paper come in order, then its tables, then what is in none of them."""
    number = re.search(r"\d+", str(figure))
    table = "fig" not in str(figure).lower()
    return (table, int(number.group())) if number else (True, sys.maxsize)


def read(path: Path) -> Experiment:
    """The experiment whose rows are in `path`, with the card beside it where there is one.

    Keys of a card, all optional: title, paper (the figure), data, settings (a mapping), command,
    seed, version, count, iterations, optimizers (a list of name and label, in order), levels,
    notes (a list), optimum (how F* was found), y (what `gap` holds, if it is no gap), x ("time" if
    the curves are against time), panels (a list of setting, count and data, where those differ).
    """
    card = read_json(path.with_suffix(".json"), dict) or {}
    labels = _labels(path, card.get("optimizers", []))
    columns = parquet.read(path)
    about = {p.get("setting"): p for p in card.get("panels", []) if isinstance(p, dict)}
    panels = []
    for setting in _in_order(columns["setting"]):
        methods = _methods(columns, columns["setting"] == setting, labels)
        said = {**card, "data": "", **about.get(setting, {})}
        count = said.get("count")
        if not isinstance(count, int) or count < 1:
            count = max(1, *(m.instances for m in methods))
        panels.append(Panel(setting, methods, count, said["data"]))
    if not panels:
        raise InputError(f"{path} has no rows; run the experiment again")
    return Experiment(path.stem, tuple(panels), card)


def read_json(path: Path, kind: type) -> Any:
    """What the file holds, None where it does not exist."""
    if not path.exists():
        return None
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(value, kind):
        raise InputError(f"{path} holds a {type(value).__name__}; expected a {kind.__name__}")
    return value


def _labels(path: Path, given: Any) -> dict[str, str]:
    """Label of each optimizer, in the card's order."""
    if isinstance(given, Mapping):
        return {str(name): str(label) for name, label in given.items()}
    labels = {}
    for entry in given if isinstance(given, Sequence) and not isinstance(given, str) else [given]:
        if isinstance(entry, str):
            labels[entry] = entry
        elif isinstance(entry, Mapping) and "name" in entry:
            labels[str(entry["name"])] = str(entry.get("label", entry["name"]))
        else:
            raise InputError(
                f"{path.with_suffix('.json')} lists the optimizer {entry!r}; expected a name, or "
                "a name and a label"
            )
    return labels


def _in_order(values: Array) -> list[Any]:
    return list(dict.fromkeys(values.tolist()))


def _methods(
    columns: Mapping[str, Array], mask: Array, labels: dict[str, str]
) -> tuple[Method, ...]:
    """The methods of one setting, those of the card first and in its order."""
    rows = {name: values[mask] for name, values in columns.items()}
    found = _in_order(rows["optimizer"])
    names = [n for n in labels if n in found] + [n for n in found if n not in labels]
    of = {n: {c: v[rows["optimizer"] == n] for c, v in rows.items()} for n in names}
    return tuple(_method(n, str(labels.get(n, n)), of[n]) for n in names)


def _method(name: str, label: str, rows: Mapping[str, Array]) -> Method:
    """The curves of one method from its rows."""
    single = rows["instance"] != parquet.MEAN
    shown = single & (rows["instance"] < parquet.SHOWN)
    some = _grid({c: v[shown] for c, v in rows.items()}) if shown.any() else None
    count = 0 if some is None else some["gap"].shape[1]
    median = None
    if some is not None and count > 1:
        middle, low, high = _quantiles(some["gap"])
        median = Curve(*_spent(some), middle, low, high)
    whole = _grid(rows if single.all() else {c: v[~single] for c, v in rows.items()})
    last = single & (rows["iteration"] == rows["iteration"].max())
    mean = Curve(*_spent(whole), whole["gap"].mean(1))
    return Method(name, label, mean, median, count, rows["gap"][last] if last.any() else None)


def _spent(grid: Mapping[str, Array]) -> tuple[Array, Array, Array]:
    return grid["iteration"], grid["gradients"].mean(1), grid["seconds"].max(1)


def _grid(rows: Mapping[str, Array]) -> dict[str, Array]:
    """Rows in long format as arrays (iterations, instances); `iteration` is (iterations,).

    Where instances ended at different iterations, the last row of each stands for the rest.
    """
    iterations, k = np.unique(rows["iteration"], return_inverse=True)
    instances, i = np.unique(rows["instance"], return_inverse=True)
    grid: dict[str, Array] = {"iteration": iterations}
    here = np.zeros((len(iterations), len(instances)), dtype=bool)
    here[k, i] = True
    latest = np.maximum.accumulate(np.where(here, np.arange(len(iterations))[:, None], 0), axis=0)
    for name in ("gap", "gradients", "seconds"):
        values = np.full(here.shape, np.nan)
        values[k, i] = rows[name]
        grid[name] = np.take_along_axis(values, latest, axis=0)
    return grid
