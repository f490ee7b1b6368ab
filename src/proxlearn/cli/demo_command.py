"""``proxlearn demo``: the product in a minute, on a page."""

import time
from typing import Annotated

import typer

from proxlearn import checks
from proxlearn.cli.compare_command import show_comparison
from proxlearn.cli.options import Count, Seed
from proxlearn.cli.progress import watching
from proxlearn.cli.train_command import minibatches
from proxlearn.filenames import check_folder


def demo(
    count: Count = 64,
    seed: Seed = 0,
    steps: Annotated[int, typer.Option(min=1, help="Minibatches of the training.")] = 250,
    out: Annotated[str, typer.Option(help="Folder for the page.")] = "demo-out",
) -> None:
    """Train a rule, solve fresh problems with it and with others, and show a page.

    Half a minute of training on small LASSO problems. Then fresh problems by the trained rule, the
    shipped one, FISTA and scikit-learn, and one wide problem by the compiled core and scikit-learn.
    """
    checks.check_seed(seed)
    folder = check_folder(out)
    from proxlearn.evaluation import coordinate_descent, wide_problem
    from proxlearn.evaluation import demo as parts
    from proxlearn.evaluation.report import curves, page
    from proxlearn.evaluation.report.page_data import from_comparison

    curves.require_matplotlib()
    coordinate_descent.require_sklearn()
    began = time.perf_counter()
    with watching("training") as show:
        rule = parts.train_rule(seed, steps, minibatches(show))
    seconds = time.perf_counter() - began
    with watching("fresh problems") as show:
        fresh = parts.solve_fresh(rule, count, seed, show)
    with watching("wide problem") as show:
        wide = wide_problem.measure(seed, watch=show)
    card = parts.fresh_card(count, seed, steps)
    show_comparison(fresh)
    print("\n".join(card["notes"]))
    seen = parts.sentences(fresh, wide, seconds)
    print("", *seen, sep="\n")
    experiments = [from_comparison("convergence", fresh, card), wide.experiment(seed)]
    wrote = page.write_page(folder, experiments, "proxlearn: a demonstration", seen=seen)
    print(f"\nwrote {wrote} (open it in a browser) and the pictures in it")
