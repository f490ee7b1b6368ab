"""Tables for a terminal."""

from rich.table import Table

from proxlearn import zoo
from proxlearn.checkpoint import load
from proxlearn.comparison import Comparison


def models_table() -> Table:
    """The shipped models: rule, training family, and the first of their measured results."""
    table = Table(caption="iterations to a mean relative gap of 1e-3 / 1e-6")
    for column in ("model", "rule", "weights", "trained on", "measured"):
        table.add_column(column)
    for name in zoo.names():
        learned = load(name)
        rule, card = learned.card["rule"], learned.card
        kind = rule["settings"].get("learns", rule["kind"])
        count = sum(p.numel() for p in learned.rule.parameters())
        measured = "\n".join(
            f"{test}: {_pair(result[name])} (FISTA with restart {_pair(result['fista-restart'])})"
            for test, result in card.get("results", {}).items()
        )
        table.add_row(name, kind, str(count), card["family"]["name"], measured)
    return table


def _pair(iterations: list[int | None]) -> str:
    return " / ".join("-" if k is None else str(k) for k in iterations)


def comparison_table(result: Comparison, levels: tuple[float, ...]) -> Table:
    """Iterations and milliseconds a problem to each mean relative gap."""
    table = Table(
        title=f"{len(result.optimum)} problems, to a mean relative gap of ...",
        caption="iterations / milliseconds a problem",
    )
    table.add_column("optimizer")
    for eps in levels:
        table.add_column(f"{eps:g}", justify="right")
    for name in result.runs:
        table.add_row(name, *(reached(result, name, eps) for eps in levels))
    return table


def reached(result: Comparison, name: str, eps: float) -> str:
    """'iterations / milliseconds a problem', or that the level was not reached."""
    k, seconds = result.iterations_to(name, eps), result.seconds_to(name, eps)
    if k is None or seconds is None:
        return f"not within {len(result.runs[name].seconds) - 1}"
    return f"{k} / {1e3 * seconds / len(result.optimum):.2f}"
