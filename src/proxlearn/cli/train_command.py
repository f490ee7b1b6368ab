"""``proxlearn train``: a rule learned from problems of a family."""

import sys
from collections.abc import Callable
from math import isfinite
from typing import TYPE_CHECKING, Annotated

import typer

from proxlearn import checks, names
from proxlearn.cli.compare_command import show_comparison
from proxlearn.cli.options import Seed, Sizes
from proxlearn.cli.progress import watching

if TYPE_CHECKING:
    from proxlearn.training import Report
    from proxlearn.watch import Watch


def train(
    context: typer.Context,
    family: Annotated[str, typer.Argument(help="Name of a family, such as gaussian-lasso.")],
    out: Annotated[str, typer.Option(help="File for the weights, .safetensors.")],
    rule: Annotated[
        str, typer.Option(help="compact, or what the paper's LSTM learns: p, a, pa, pba, ...")
    ] = "compact",
    sizes: Sizes = None,
    settings: Annotated[
        list[str] | None, typer.Option("--rule-set", help="NAME=VALUE of the rule.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Minibatches (500).")] = None,
    batch: Annotated[int | None, typer.Option(help="Problems in a minibatch (64).")] = None,
    horizon: Annotated[int | None, typer.Option(help="Iterations on each (40).")] = None,
    unroll: Annotated[int | None, typer.Option(help="Iterations in a segment (20).")] = None,
    lr: Annotated[float | None, typer.Option(help="Step of Adam (0.01).")] = None,
    schedule: Annotated[str | None, typer.Option(help="constant or cosine (cosine).")] = None,
    loss: Annotated[
        str | None, typer.Option(help=f"One of {', '.join(names.LOSSES)} (log-mean-gap).")
    ] = None,
    seed: Seed = 0,
    data: Annotated[
        str | None,
        typer.Option(help="Folder of pictures, for families such as deblur."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue a training that stopped.")
    ] = False,
    device: Annotated[str, typer.Option(help="Where to compute.")] = "cpu",
) -> int:
    """Learn a rule from problems of a family, and compare it with FISTA on fresh ones.

    The defaults in brackets are what we advise for the compact rule. Rules of the paper have the
    paper's settings: --horizon 100, --schedule constant, --loss objective. For families of pictures
    the rule is "banded" by default, and the settings are those of the shipped model "imaging".

    Under torchrun every process draws its own problems, and the gradients are averaged.
    """
    given = {"steps": steps, "batch": batch, "horizon": horizon, "unroll": unroll, "lr": lr}
    source = context.get_parameter_source("rule")
    if family in names.PICTURES and source is not None and source.name == "DEFAULT":
        rule = "banded"
    chosen = {"rule": rule, "seed": seed, "schedule": schedule, "loss": loss}
    checks.check_train(family, out, sizes or [], chosen, settings or [], device, data)
    from proxlearn.evaluation.training_job import compare_trained, train_from_options

    with watching() as show:
        learned, trained_on = train_from_options(
            family,
            sizes or [],
            {**chosen, **given},
            settings or [],
            out=out,
            data=data,
            resume=resume,
            device=device,
            watch=minibatches(show),
        )
    if learned is None:
        return 0  # another rank prints the report
    with watching() as show:
        result = compare_trained(out, learned, trained_on, watch=show)
    show_comparison(result)
    print(f"wrote {out}; use it by this name in solve, compare and audit")
    if learned.card["status"] != "finished":
        print("warning: training diverged; these are the best weights before", file=sys.stderr)
    return 0 if learned.card["status"] == "finished" else 1


def minibatches(show: "Watch") -> "Callable[[Report], None]":
    """A watch of a training: loss and validation score beside the minibatches."""

    def watch(report: "Report") -> None:
        text = f"minibatch {report.step} of {report.steps}, loss {report.loss:.3f}"
        text += f", validation {report.validation:.2f}" if isfinite(report.validation) else ""
        text += f", {report.skipped} skipped" if report.skipped else ""
        show(text, report.step, report.steps)

    return watch
