"""Arguments that need no arrays, checked before anything heavy is imported.

The command line calls these before it imports PyTorch. The library calls the same functions, so
that both refuse the same values in the same words.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from proxlearn import names, zoo
from proxlearn.errors import InputError, unknown
from proxlearn.filenames import check_folder, check_input, check_not_input, check_output, shown

LARGEST_SEED = 2**63 - 1
"""Largest seed of a generator of PyTorch that fits into 64 bits with a sign."""


MOST_ITERATIONS = 2**63 - 1
"""Largest `max_iter` that the compiled code counts to."""
MOST_WORKERS = 16
"""Most processes for each core; a larger number is probably a mistake and exhausts the memory."""


def check_choice(what: str, value: object, known: Iterable[str]) -> None:
    """Refuses a value that is not one of the known ones, which the message lists."""
    known = tuple(known)
    if value not in known:
        raise unknown(what, value, known)


def check_kind(kind: str, given: Iterable[str]) -> None:
    """Refuses an unknown kind of problem, and options that the kind lacks or does not take."""
    check_choice("kind of problem", kind, names.KINDS)
    needs = names.KINDS[kind].needs
    takes = needs + names.KINDS[kind].takes
    given = tuple(given)
    for name in needs:
        if name not in given:
            meaning = "file with each coordinate's group" if name == "groups" else "number > 0"
            raise InputError(f"'{kind}' needs --{_option(name)}; give a {meaning}")
    for name in given:
        if name not in takes:
            known = ", ".join(f"--{_option(n)}" for n in takes) or "nothing of this sort"
            raise InputError(
                f"'{kind}' was given --{_option(name)}; it takes {known}: leave it out"
            )


def _option(name: str) -> str:
    """The name of an option on the command line."""
    return name.replace("_", "-")


def check_limits(tol: Any, max_iter: Any, time_limit: Any = None) -> None:
    """Refuses a tolerance, a number of iterations or a time limit that no solve can keep."""
    usual = type(tol) is float and type(max_iter) is int and time_limit is None
    if usual and 0 <= tol <= 1 and 0 <= max_iter <= MOST_ITERATIONS:
        return
    if not 0 <= as_number(tol) < float("inf"):
        raise InputError(f"tol is {tol}; expected a number >= 0, such as 1e-6")
    if not (0 <= as_number(max_iter) <= MOST_ITERATIONS and as_number(max_iter).is_integer()):
        most = f", at most {MOST_ITERATIONS}" if as_number(max_iter) > 0 else ""
        raise InputError(f"max_iter is {max_iter}; expected a whole number >= 0{most}")
    if time_limit is not None and not as_number(time_limit) >= 0:
        raise InputError(f"time_limit is {time_limit}; expected seconds >= 0, or None")


def check_whole(**values: Any) -> None:
    """Refuses a count that is no whole number from 1 on."""
    for name, value in values.items():
        if not (as_number(value) >= 1 and as_number(value).is_integer()):
            raise InputError(f"{name} is {value!r}; expected a whole number >= 1")


def as_number(value: Any) -> float:
    """The value as a float; NaN, which no comparison accepts, where it is not a number."""
    try:
        return float("nan") if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def check_seed(seed: Any) -> None:
    """Refuses a seed that a generator of PyTorch does not take."""
    if not (hasattr(seed, "__index__") and 0 <= seed <= LARGEST_SEED):
        raise InputError(f"seed is {seed!r}; expected a whole number from 0 to {LARGEST_SEED}")


def check_optimizer(name: str, *more: str) -> None:
    """Refuses an optimizer that is neither known nor shipped nor a file; `more` are allowed too."""
    if name in names.OPTIMIZERS or name in more or zoo.has(name):
        return
    if name.endswith(".safetensors"):
        check_weights(name)
    else:
        raise unknown("optimizer", shown(name), [*names.OPTIMIZERS, *more, *zoo.names()])


def check_weights(name: str | os.PathLike[str]) -> None:
    """Refuses a name under which there are no weights: no file, and no shipped model."""
    if not isinstance(name, str | os.PathLike):
        raise InputError(f"the checkpoint is {name!r}; expected a file's or a shipped model's name")
    name = os.fspath(name)
    if not zoo.has(name) and not os.path.isfile(name):
        raise InputError(
            f"no checkpoint {shown(name)!r}: neither a file nor a shipped model; "
            f"shipped are {', '.join(zoo.names())}"
        )


def check_optimizers(listed: Sequence[str], *more: str) -> None:
    """Refuses a list of optimizers that is empty, or names one that is not known."""
    if not listed:
        raise InputError("no optimizers were given; expected at least one, such as 'fista-restart'")
    for name in listed:
        check_optimizer(name, *more)


def check_device_name(device: str) -> None:
    """Refuses what is no name of a device, such as cpu or cuda:1; see `tensors.check_device`."""
    kind, colon, index = device.partition(":")
    if kind not in names.DEVICES or (colon and not (index.isascii() and index.isdigit())):
        raise unknown("device", device, names.DEVICES)


def check_pairs(texts: Iterable[str]) -> None:
    """Refuses what is not of the form NAME=VALUE."""
    for text in texts:
        name, equals, _ = text.partition("=")
        if not equals or not name:
            raise InputError(f"{text!r} is not of the form NAME=VALUE, such as m=100")


def check_solve(
    kind: str,
    A: str,
    b: str,
    options: Mapping[str, Any],
    *,
    optimizer: str,
    engine: str | None,
    tol: float,
    max_iter: int,
    time_limit: float | None,
    x0: str | None,
    dtype: str | None,
    device: str,
    out: str | None,
    force: bool,
) -> None:
    """Refuses arguments of ``proxlearn solve`` that are wrong whatever the arrays hold."""
    check_kind(kind, [name for name, value in options.items() if value is not None])
    if dtype is not None:
        check_choice("dtype", dtype, names.DTYPES)
    check_device_name(device)
    check_optimizer(optimizer, names.AUTO)
    if engine is not None:
        check_choice("engine", engine, names.ENGINES)
    check_limits(tol, max_iter, time_limit)
    inputs = [A, b, *(options.get(name) for name in sorted(names.FILES)), x0]
    for source in inputs:
        if source is not None:
            check_input(source)
    if out is not None:
        check_output(out)
        check_not_input(out, inputs, force)


def check_train(
    family: str,
    out: str,
    sizes: Sequence[str],
    options: Mapping[str, Any],
    settings: Sequence[str],
    device: str,
    data: str | None = None,
) -> None:
    """Refuses wrong arguments of ``proxlearn train``; options that are None are not given."""
    check_choice("family", family, names.FAMILIES)
    if data is not None and family not in names.PICTURES:
        raise InputError(
            f"--data was given for {family}; it is for families of pictures: "
            f"{', '.join(names.PICTURES)}"
        )
    if data is not None and not os.path.isdir(data):
        raise InputError(f"--data is {shown(data)}, no folder; expected one with pictures")
    check_choice("rule", options["rule"], names.RULES)
    for name, known in (("loss", names.LOSSES), ("schedule", names.SCHEDULES)):
        if options[name] is not None:
            check_choice(name, options[name], known)
    check_seed(options["seed"])
    check_pairs(sizes)
    check_pairs(settings)
    check_device_name(device)
    if not out.endswith(".safetensors"):
        raise InputError(
            f"the weights would go to {shown(out)!r}; expected a name ending in .safetensors"
        )
    check_output(out, (".safetensors",))


def check_comparison(
    family: str, optimizers: Sequence[str], seed: int, sizes: Sequence[str], folder: str | None
) -> None:
    """Refuses wrong arguments of ``proxlearn compare``."""
    check_choice("family", family, names.FAMILIES)
    check_optimizers(optimizers, names.LBFGS)
    check_seed(seed)
    check_pairs(sizes)
    if folder is not None:
        check_folder(folder)


def check_audit(optimizers: Sequence[str], family: str, seed: int, sizes: Sequence[str]) -> None:
    """Refuses wrong arguments of ``proxlearn audit``, which needs at least one known optimizer."""
    check_choice("family", family, names.FAMILIES)
    check_seed(seed)
    check_pairs(sizes)
    errors = []
    for name in optimizers:
        try:
            check_optimizer(name)
        except InputError as error:
            errors.append(error)
    if errors and len(errors) == len(optimizers):
        raise errors[0]
    if not optimizers:
        check_optimizers(optimizers)


def check_experiment(what: str, scale: str, out: str, optimizers: Sequence[str] | None) -> None:
    """Refuses wrong arguments of ``proxlearn reproduce``."""
    if what not in ("list", "all", "claims"):
        check_choice("experiment", what, names.EXPERIMENTS)
    check_choice("scale", scale, names.SCALES)
    if optimizers is not None:
        own = [n for n in optimizers if n.startswith(names.TRAINED) or n.endswith(names.RESCALED)]
        check_optimizers(optimizers, *own)
    if what != "list":
        check_folder(out)


def check_batch(
    problems: str,
    out: str,
    *,
    kind: str | None,
    tol: float,
    max_iter: int,
    dtype: str | None,
    scheduler: str | None,
    workers: int | None,
) -> None:
    """Refuses wrong arguments of ``proxlearn solve-batch``."""
    if kind is not None:
        check_choice("kind of problem", kind, names.KINDS)
    if dtype is not None:
        check_choice("dtype", dtype, names.DTYPES)
    check_limits(tol, max_iter)
    if scheduler is not None and workers is not None:
        raise InputError(
            f"--scheduler {shown(scheduler)} and --workers {workers} were given; expected one of "
            "them: a running cluster has its own workers"
        )
    most = MOST_WORKERS * (os.cpu_count() or 1)
    if workers is not None and workers > most:
        raise InputError(f"--workers is {workers}; expected at most {most}, and usually one a core")
    if not problems or not out:
        which = "output" if problems else "input"
        raise InputError(f"the name of the {which} is empty; give a name")
    if not os.path.exists(problems):
        raise InputError(
            f"{shown(problems)} does not exist; expected an .npz file, a zarr group or a folder of "
            ".npy files"
        )
    for path in (problems, *(entry.path for entry in _entries(problems))):
        if not os.path.isfile(path) and not os.path.isdir(path) and os.path.exists(path):
            raise InputError(f"{shown(path)} is a device or a pipe; expected a file")
    if os.path.isfile(out):
        raise InputError(f"output {shown(out)} is a file; expected the name of a folder")
    check_folder(os.path.dirname(os.path.abspath(out)))
    check_not_input(out, [problems], force=False)


def _entries(path: str) -> list[os.DirEntry[str]]:
    """What is in a folder; nothing where it is a file, or cannot be listed."""
    try:
        with os.scandir(path) as entries:
            return list(entries)
    except OSError:
        return []


def check_size(name: str, value: int, largest: int) -> None:
    """A number of units or layers, from a file perhaps: at least one, and not absurd."""
    if not 1 <= value <= largest:
        raise InputError(f"setting {name} is {value}; expected 1 to {largest}")
