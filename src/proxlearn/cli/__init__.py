"""The command line. Each command calls one library function, imported when it runs."""

import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any

import typer

from proxlearn import __version__, checks, names
from proxlearn.cli import audit_command as audit_command
from proxlearn.cli import deblur as deblur_command
from proxlearn.cli import report_command as report_command
from proxlearn.cli import reproduce as reproduce_command
from proxlearn.cli import solve_batch as solve_batch_command
from proxlearn.cli import tune as tune_command
from proxlearn.cli.progress import watching
from proxlearn.errors import TORCH_MISSING, InputError
from proxlearn.filenames import check_folder

if TYPE_CHECKING:
    from proxlearn.evaluation.comparison import Comparison
    from proxlearn.solving.solution import Solution
    from proxlearn.training import Report
    from proxlearn.watch import Watch

app = typer.Typer(
    name="proxlearn",
    help="Solve composite convex problems, each answer with a certificate of its quality.",
    epilog="Exit codes: 0 success, 1 a solve missed its tolerance, 2 bad input, 130 interrupted.",
    add_completion=False,
    rich_markup_mode="markdown",  # paragraphs are filled to the width of the window
    pretty_exceptions_enable=False,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code. Bad input is one line on stderr."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that has no Greek letters gets "?"
    try:
        given = None if arguments is None else list(arguments)
        code = app(given, prog_name="proxlearn", standalone_mode=False)
        if sys.stdout is not None:  # there is none where it was closed
            sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # the reader, such as `head`, has left; rich then exits
        _abandon_stdout()
        return 1
    except OSError as error:
        _abandon_stdout()
        place = f" ({error.filename})" if error.filename else ""
        advice = "check disk space and permissions"
        return _fail(f"error: {error.strerror or error}{place}; {advice}", 2)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", 130)
    except InputError as error:
        return _fail(f"error: {error}", 2)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        return _fail(f"error: {TORCH_MISSING.format('this command')}", 2)
    except (MemoryError, RuntimeError) as error:
        if not _out_of_memory(error):
            raise
        return _fail("error: there is not enough memory for this; make the problem smaller", 2)
    except Exception as error:
        message = getattr(error, "format_message", None)  # what typer and click raise for usage
        if message is None:
            raise
        text = message().strip()
        stop = "" if text.endswith((".", "?")) else "."
        return _fail(f"error: {text}{stop} {_advice(error)}", 2)
    if code == 130:  # how newer versions of typer report an interrupt
        return _fail("interrupted", 130)
    return code if isinstance(code, int) else 0


def _advice(error: Exception) -> str:
    """Where to read on: the help of the command that was misused."""
    command = getattr(getattr(error, "ctx", None), "command_path", "proxlearn")
    return f"See {command} --help"


def _out_of_memory(error: BaseException) -> bool:
    """True for Python's own error, and for those of PyTorch's allocators, which have no type."""
    texts = ("can't allocate memory", "not enough memory", "out of memory", "size calculation")
    return isinstance(error, MemoryError) or any(text in str(error) for text in texts)


def _abandon_stdout() -> None:
    """What is still buffered goes nowhere: Python would fail on it once more at its end."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int) -> int:
    print(" ".join(message.split()), file=sys.stderr)
    return code


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"proxlearn {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


Optimizer = Annotated[
    str,
    typer.Option(
        help="auto, a method such as fista-restart, a model of proxlearn models, or a file of one."
    ),
]


@app.command("solve")
def _solve(
    kind: Annotated[
        str,
        typer.Argument(help=f"One of {', '.join(names.KINDS)}."),
    ],
    a: Annotated[str, typer.Argument(metavar="A", help="The matrix: .npy, .npz, .csv or .mtx.")],
    b: Annotated[str, typer.Argument(help="The target or labels; rows are a batch.")],
    lam: Annotated[float | None, typer.Option(help="Weight of the penalty.")] = None,
    lam2: Annotated[float | None, typer.Option(help="Weight of the elastic net's square.")] = None,
    groups: Annotated[str | None, typer.Option(help="File: each coordinate's group.")] = None,
    weights: Annotated[str | None, typer.Option(help="File: weights of the penalty.")] = None,
    l1_ratio: Annotated[
        float | None, typer.Option(help="Share of the l1 part in the sparse-group penalty (0.5).")
    ] = None,
    l1_weights: Annotated[str | None, typer.Option(help="File: weights of the l1 part.")] = None,
    delta: Annotated[
        float | None, typer.Option(help="The error beyond which Huber's loss is a line.")
    ] = None,
    radius: Annotated[float | None, typer.Option(help="Sum of x on the simplex (1).")] = None,
    classes: Annotated[int | None, typer.Option(help="Number of classes (found in b).")] = None,
    optimizer: Optimizer = "auto",
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(names.ENGINES), help="The engine (that of PROXLEARN_ENGINE, or auto)."
        ),
    ] = None,
    tol: Annotated[float, typer.Option(help="Certified relative gap to reach.")] = 1e-6,
    max_iter: Annotated[int, typer.Option(help="Most iterations.")] = 1000,
    time_limit: Annotated[float | None, typer.Option(help="Most seconds.")] = None,
    x0: Annotated[str | None, typer.Option("--x0", help="File: where to start.")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32 or float64 (that of A).")] = None,
    device: Annotated[str, typer.Option(help="Where to compute.")] = "cpu",
    out: Annotated[str | None, typer.Option(help="Write x here, .npy or .csv.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, with x unless there is --out.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print no table.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Write to --out even if that is an input.")
    ] = False,
) -> int:
    """Solve a problem, or a batch of them, whose arrays are in files.

    A is (m, n), or (B, m, n) for a batch; b is (m,) or (B, m).

    Of an .npz file with several arrays, FILE.npz:NAME is one.
    """
    options = {"lam": lam, "lam2": lam2, "groups": groups, "weights": weights}
    options |= {"delta": delta, "radius": radius, "classes": classes}
    options |= {"l1_ratio": l1_ratio, "l1_weights": l1_weights}
    settings: dict[str, Any] = {
        "optimizer": optimizer,
        "engine": engine,
        "tol": tol,
        "max_iter": max_iter,
        "time_limit": time_limit,
        "x0": x0,
        "dtype": dtype,
        "device": device,
        "out": out,
    }
    checks.check_solve(kind, a, b, options, force=force, **settings)
    from proxlearn.cli.solve_job import solve_files

    solution = solve_files(kind, a, b, options, **settings)
    _show_solution(solution, as_json, quiet, with_x=out is None)
    if out is not None and not (as_json or quiet):
        print(f"wrote {out}")
    return 0 if solution.solved else 1


def _show_solution(solution: "Solution", as_json: bool, quiet: bool, with_x: bool) -> None:
    from rich.console import Console

    from proxlearn.cli.solution_table import solution_table
    from proxlearn.cli.solve_job import to_json

    if as_json:
        print(json.dumps(to_json(solution, with_x), allow_nan=False))
    elif not quiet:
        Console().print(solution_table(solution))
    for status in sorted(set(solution.status) - {"SOLVED"}):
        count, total = solution.status.count(status), len(solution.status)
        which = f"{count} of {total} instances: " if total > 1 else ""
        print(f"warning: {which}{status}. {status.advice}", file=sys.stderr)


Count = Annotated[int, typer.Option(min=1, help="Number of problems.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the problems.")]
Sizes = Annotated[
    list[str] | None, typer.Option("--set", help="NAME=VALUE of the family, such as m=100.")
]


@app.command("demo")
def _demo(
    count: Count = 128,
    seed: Seed = 0,
    out: Annotated[str, typer.Option(help="Folder for the page.")] = "demo-out",
) -> None:
    """Solve fresh LASSO problems with classic methods and a learned rule, and show a page."""
    checks.check_seed(seed)
    folder = check_folder(out)
    from proxlearn.evaluation import demo
    from proxlearn.evaluation.report import curves, page

    curves.require_matplotlib()
    with watching() as watch:
        result = demo.run(count, seed, watch)
    card = demo.card(count, seed)
    _show_comparison(result)
    print("\n".join(card["notes"]))
    wrote = page.write_comparison(folder, result, card)
    print(f"wrote {wrote} (open it in a browser) and {folder / 'convergence.png'}")


@app.command("compare")
def _compare(
    family: Annotated[str, typer.Argument(help="Name of a family, such as gaussian-lasso.")],
    optimizers: Annotated[
        str, typer.Option(help="Names or files of optimizers, with commas between them.")
    ] = "ista,fista,fista-restart",
    count: Count = 64,
    max_iter: Annotated[int, typer.Option(min=1, help="Iterations of each.")] = 300,
    seed: Seed = 0,
    sizes: Sizes = None,
    report: Annotated[str | None, typer.Option(help="Folder for page, plot and rows.")] = None,
) -> None:
    """Run several optimizers on problems of one family and print a table.

    --report writes a page with plots as well.
    """
    names = tuple(name.strip() for name in optimizers.split(",") if name.strip())
    checks.check_comparison(family, names, seed, sizes or [], report)
    from proxlearn.evaluation.competitors import notes
    from proxlearn.evaluation.demo import compare_family, family_card
    from proxlearn.evaluation.report import curves, page, rows

    if report is not None:
        curves.require_matplotlib()
    with watching() as watch:
        result = compare_family(family, names, count, max_iter, seed, watch, sizes or ())
    _show_comparison(result)
    for line in notes(names, family):
        print(line)
    if report is not None:
        folder = check_folder(report)
        card = family_card(family, names, count, max_iter, seed, sizes or ())
        wrote = page.write_comparison(folder, result, card)
        rows.save(result, folder / "rows.csv")
        print(f"wrote {wrote}, {folder / 'convergence.png'} and {folder / 'rows.csv'}")


@app.command("train")
def _train(
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
        str | None, typer.Option(help="objective, log-gap or log-mean-gap (log-mean-gap).")
    ] = None,
    seed: Seed = 0,
    data: Annotated[
        str | None, typer.Option(help="Folder of pictures, for deblur, mri, inpaint, tomography.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue a training that stopped.")
    ] = False,
    device: Annotated[str, typer.Option(help="Where to compute.")] = "cpu",
) -> int:
    """Learn a rule from problems of a family, and compare it with FISTA on fresh ones.

    The defaults, in brackets, are what we advise for the compact rule. A rule of the paper has the
    paper's: --horizon 100, --schedule constant, --loss objective. Families of pictures are learned
    by the rule "banded", with the settings of the shipped rule "imaging".

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
            watch=_minibatches(show),
        )
    if learned is None:
        return 0  # another rank reports
    with watching() as show:
        result = compare_trained(out, learned, trained_on, watch=show)
    _show_comparison(result)
    print(f"wrote {out}; use it by this name in solve, compare and audit")
    if learned.card["status"] != "finished":
        print("warning: training diverged; these are the best weights before", file=sys.stderr)
    return 0 if learned.card["status"] == "finished" else 1


app.command("report")(report_command.report)


app.command("audit")(audit_command.audit)
app.command("deblur")(deblur_command.deblur)
app.command("reproduce")(reproduce_command.reproduce)
app.command("solve-batch")(solve_batch_command.solve_batch)
app.command("tune")(tune_command.tune)


@app.command("models")
def _models(
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show all tests and settings of each model.")
    ] = False,
) -> None:
    """List the shipped models: what they were trained on and how many iterations they need."""
    from proxlearn.evaluation.report.tables import models_text

    print(models_text(verbose))


def _show_comparison(result: "Comparison") -> None:
    from rich.console import Console

    from proxlearn.evaluation.demo import LEVELS
    from proxlearn.evaluation.report.tables import comparison_table

    Console().print(comparison_table(result, LEVELS))


def _minibatches(show: "Watch") -> "Callable[[Report], None]":
    """A watch of a training: loss and validation score beside the minibatches."""

    def watch(report: "Report") -> None:
        text = f"minibatch {report.step} of {report.steps}, loss {report.loss:.3f}"
        text += f", validation {report.validation:.2f}" if isfinite(report.validation) else ""
        text += f", {report.skipped} skipped" if report.skipped else ""
        show(text, report.step, report.steps)

    return watch
