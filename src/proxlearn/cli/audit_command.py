"""``proxlearn audit``: the paper's conditions, measured for optimizers side by side."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from proxlearn import checks
from proxlearn.cli.options import Count, Seed, Sizes

if TYPE_CHECKING:
    from rich.table import Table
    from torch import Tensor

    from proxlearn.evaluation.audit import Findings


def audit(
    models: Annotated[
        str,
        typer.Argument(help="Optimizers with commas between them, such as lasso,fista-restart."),
    ],
    family: Annotated[str, typer.Option(help="Name of a family.")] = "gaussian-lasso",
    count: Count = 8,
    max_iter: Annotated[int, typer.Option(min=1, help="Iterations of each run.")] = 200,
    seed: Seed = 0,
    sizes: Sizes = None,
) -> int:
    """Measure the paper's conditions: fixed point, convergence, range of p, biases, units.

    Methods are measured by themselves, without the safeguard and without the core. The exit code is
    1 where one of them could not be measured.
    """
    names = list(dict.fromkeys(name.strip() for name in models.split(",") if name.strip()))
    checks.check_audit(names, family, seed, sizes or [])
    from rich.console import Console

    from proxlearn.cli.progress import watching
    from proxlearn.errors import InputError
    from proxlearn.evaluation.audit import audit as run
    from proxlearn.evaluation.family_comparison import titled

    with watching() as watch:
        found = run(
            names,
            family,
            count=count,
            iterations=max_iter,
            seed=seed,
            sizes=sizes or (),
            watch=watch,
        )
    errors = {name: f for name, f in found.items() if isinstance(f, InputError)}
    measured = {name: f for name, f in found.items() if not isinstance(f, InputError)}
    if not measured:
        raise next(iter(errors.values()))
    title = f"{count} problems of {titled(family, sizes or ())}"
    Console().print(_table(measured, title, max_iter))
    print(NOTES.format(K=max_iter))
    for name, error in errors.items():
        print(f"warning: {name} was not measured: {error}", file=sys.stderr)
    return 1 if errors else 0


NOTES = """drift: the largest |x_k - x*| / |x*| in {K} iterations from the minimiser x*
reach: share of random starts from which (F - F*) / F* <= 1e-6 within {K} iterations; k: the median
A, b, λ x10: that median where the same problem comes in other units
p L: the least and the largest step; b1, b2: mean norm / |x*| in the first and the last iteration
‖J‖: the largest ‖J‖_F / √n of the Jacobian of x - x+ by y and grad f(y) / L
-: the method has no such coefficient, or the problem no such unit"""


def _table(found: "dict[str, Findings]", title: str, max_iter: int) -> "Table":
    """The table of what was measured, a row for each optimizer."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("optimizer")
    for column in ("drift", "reach", "k", "A x10", "b x10", "λ x10", "p L", "‖J‖", "b1", "b2"):
        table.add_column(column, justify="right")
    for name, f in found.items():
        scaled = (_median(k, max_iter) for k in f.rescaled.values())
        biases = (None, None) if f.bias is None else (f.bias["b1"], f.bias["b2"])
        table.add_row(
            name,
            f"{f.drift:.0e}" if f.drift else "0",
            f"{f.share:.0%}",
            _median(f.iterations, max_iter),
            *scaled,
            _range(f.step),
            "-" if f.jacobian is None else f"{f.jacobian:.2g}",
            *(_range(ends) for ends in biases),
        )
    return table


def _median(iterations: "Tensor | None", max_iter: int) -> str:
    if iterations is None:
        return "-"
    middle = iterations.median().item()
    return f"{middle:.0f}" if middle <= max_iter else f">{max_iter}"


def _range(ends: tuple[float, float] | None) -> str:
    if ends is None:
        return "-"
    low, high = (f"{value:.2g}" for value in ends)
    return low if low == high else f"{low}..{high}"
