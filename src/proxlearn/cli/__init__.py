"""The command line: one file for each command, which imports what it calls when it runs."""

import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

import typer

from proxlearn import __version__
from proxlearn.cli.audit_command import audit
from proxlearn.cli.compare_command import compare
from proxlearn.cli.deblur_command import deblur
from proxlearn.cli.demo_command import demo
from proxlearn.cli.models_command import models
from proxlearn.cli.report_command import report
from proxlearn.cli.reproduce_command import reproduce
from proxlearn.cli.solve_batch_command import solve_batch
from proxlearn.cli.solve_command import solve
from proxlearn.cli.train_command import train
from proxlearn.cli.tune_command import tune
from proxlearn.errors import TORCH_MISSING, InputError

app = typer.Typer(
    name="proxlearn",
    help="Solve composite convex problems, each answer with a certificate of its quality.",
    epilog="Exit codes: 0 success, 1 a solve missed its tolerance, 2 bad input, 130 interrupted.",
    add_completion=False,
    rich_markup_mode="markdown",  # paragraphs are filled to the width of the window
    pretty_exceptions_enable=False,
)

NARROWEST = 40
"""Columns of a terminal that tables need: rich cuts numbers off where COLUMNS says less, even 0."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code. Bad input is one line on stderr."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that has no Greek letters gets "?"
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns) < NARROWEST:
        os.environ["COLUMNS"] = str(NARROWEST)
    try:
        given = None if arguments is None else list(arguments)
        code = app(given, prog_name="proxlearn", standalone_mode=False)
        if sys.stdout is not None:  # standard output may have been closed
            sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # a reader such as `head` has left; rich exits
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


COMMANDS = (
    solve,
    solve_batch,
    demo,
    compare,
    train,
    models,
    audit,
    deblur,
    reproduce,
    report,
    tune,
)
for command in COMMANDS:
    app.command(command.__name__.replace("_", "-"))(command)
