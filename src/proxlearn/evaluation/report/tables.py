"""Tables for a terminal."""

from textwrap import wrap

from rich.table import Table

from proxlearn import zoo
from proxlearn.evaluation.comparison import Comparison
from proxlearn.evaluation.model_results import FEW
from proxlearn.methods.checkpoint import load
from proxlearn.training import families

MODELS_NOTE = """
Iterations to a mean relative gap of 1e-3 / 1e-6, - where it was not reached.
The test problems were in no training. FISTA: FISTA with restart on the same."""


def models_text(verbose: bool = False) -> str:
    """The shipped models, a line each with their first test; where `verbose`, all that is known.

    Plain text of at most 80 columns: a table of rich would shorten names in a narrow window.
    """
    if verbose:
        return "\n\n".join(_all_about(name) for name in zoo.names()) + "\n" + MODELS_NOTE
    columns = "{:17} {:10} {:>7}  {:17} {:>10} {:>10}"
    lines = [columns.format("model", "rule", "weights", "trained on", "iterations", "FISTA")]
    for name in zoo.names():
        family, tests = _trained_on(name)[0], _tests(name)
        lines.append(columns.format(name, *_rule_of(name), family, *tests[0][1:]))
    more = "\nproxlearn models --verbose has the problems of each test, and further tests."
    return "\n".join(lines) + "\n" + MODELS_NOTE + more


def _all_about(name: str) -> str:
    kind, count = _rule_of(name)
    family, settings = _trained_on(name)
    trained = f"trained on {family} with {settings}" if settings else f"trained on {family}"
    lines = [name, f"    {kind}, {count} weights"]
    lines += [f"    {line}" for line in wrap(trained, 76)]
    lines += [f"    {test:44} {ours:>9}   FISTA {fista:>9}" for test, ours, fista in _tests(name)]
    return "\n".join(lines)


def _rule_of(name: str) -> tuple[str, int]:
    """The kind of rule, and its number of weights."""
    learned = load(name)
    rule = learned.card["rule"]
    count = sum(p.numel() for p in learned.rule.parameters())
    return rule["settings"].get("learns", rule["kind"]), count


def _trained_on(model: str) -> tuple[str, str]:
    """The family's name on the command line, and its parameters."""
    family = dict(load(model).card["family"])
    name = families.name_of(family.pop("name"))
    return name, ", ".join(f"{key}={value}" for key, value in family.items())


def _tests(name: str) -> list[tuple[str, str, str]]:
    """What it was tested on, its iterations, and those of FISTA with restart."""
    results = load(name).card.get("results", {})
    found = [(_said(t), _pair(r[name]), _pair(r["fista-restart"])) for t, r in results.items()]
    return found or [("not tested", "", "")]


def _said(test: str) -> str:
    """The test in words; `few` is how the zoo names a test of fewer problems than usual."""
    problems = test.removeprefix("few ")
    return test if problems == test else f"{problems}, {FEW} problems"


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
        table.add_row(result.label(name), *(reached(result, name, eps) for eps in levels))
    return table


def reached(result: Comparison, name: str, eps: float) -> str:
    """'iterations / milliseconds a problem', or that the level was not reached."""
    k, seconds = result.iterations_to(name, eps), result.seconds_to(name, eps)
    if k is None or seconds is None:
        return f"not within {len(result.runs[name].seconds) - 1}"
    return f"{k} / {1e3 * seconds / len(result.optimum):.2f}"
