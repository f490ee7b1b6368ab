"""Files by name: checks before anything is read, and outputs that are written whole or not at all.

Nothing heavy is imported here, so that the command line can refuse a wrong name at once.
"""

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from proxlearn.errors import InputError

READABLE = (".npy", ".npz", ".csv", ".mtx")
"""Extensions of arrays that can be read."""
WRITABLE = (".npy", ".csv")
"""Extensions of arrays that can be written."""


def split(source: str) -> tuple[Path, str | None]:
    """A path, or the path and the name of ``file.npz:name``."""
    head, colon, key = source.rpartition(".npz:")
    return (Path(head + ".npz"), key) if colon else (Path(source), None)


def check_input(source: str) -> None:
    """Refuses a name from which no array can be read: a wrong extension, no file, an empty one."""
    path, _ = split(source)
    if path.suffix.lower() not in READABLE:
        known = ", ".join(READABLE)
        raise InputError(
            f"{shown(source)} has the extension '{path.suffix[:20]}'; expected one of {known}"
        )
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder; expected a file")
        if not path.is_file() and path.exists():
            raise InputError(f"{path} is a device or a pipe; expected a file")
        if path.stat().st_size == 0:
            raise InputError(f"{path} is empty; expected an array of numbers")
        with path.open("rb"):
            pass
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; check the path") from None
    except (OSError, ValueError) as error:
        raise InputError(
            f"{shown(path)} cannot be read: {reason(error)}; check the path and its permissions"
        ) from None


def check_output(path: str, extensions: tuple[str, ...] = WRITABLE) -> None:
    """Refuses, before any work is done, a name to which no file could be written."""
    target = Path(path)
    if target.suffix.lower() not in extensions:
        expected = " or ".join(extensions)
        raise InputError(
            f"output {shown(path)} has the extension '{target.suffix[:20]}'; expected {expected}"
        )
    if os.path.isdir(target):
        raise InputError(f"output {shown(path)} is a folder; give the name of a file in it")
    check_folder(target.parent)
    try:
        os.lstat(target)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:  # too long, above all
        raise InputError(
            f"output {shown(path)} cannot be written ({reason(error)}); choose another name"
        ) from None


def check_folder(path: str | Path) -> Path:
    """The folder, if files can be made in it; a missing one can be, and is by `replacing`."""
    folder = existing = Path(path)
    missing = []
    try:
        existing = Path(os.path.abspath(folder))
        while not os.path.lexists(existing):
            missing.append(existing.name)
            existing = existing.parent
        for name in missing:  # each can be made unless its name is too long
            with suppress(FileNotFoundError):
                os.lstat(existing / name)
        probe = existing / f".{secrets.token_hex(8)}.tmp"
        probe.touch()
        probe.unlink()
    except (OSError, ValueError) as error:
        raise InputError(
            f"output folder {shown(folder)} cannot be written to "
            f"({reason(error)}: {shown(existing)}); choose another"
        ) from None
    return folder


def check_not_input(out: str, inputs: Iterable[str | None], force: bool) -> None:
    """Refuses an output that is one of the inputs, under this or another name, unless forced."""
    for source in inputs:
        if source is None or force:
            continue
        with suppress(OSError):
            if os.path.samefile(out, split(source)[0]):
                raise InputError(
                    f"output {shown(out)} is also the input {shown(source)}; "
                    "choose another name, or give --force to replace the input"
                )


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A name beside `path` to write to, which becomes `path` at the end, or vanishes on failure.

    The folder is made where it is missing.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{secrets.token_hex(8)}{target.suffix}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        raise InputError(
            f"output {shown(path)} cannot be written: {reason(error)}; choose another name"
        ) from None
    finally:
        with suppress(OSError):
            temporary.unlink()


def shown(path: str | Path) -> str:
    """A path for a message: the middle of a very long one is left out."""
    text = str(path)
    return text if len(text) <= 120 else f"{text[:60]}...{text[-30:]}"


def reason(error: BaseException) -> str:
    """What an error of the operating system says, in one line and without the path."""
    text = getattr(error, "strerror", None) or str(error)
    if "requested and" in text:  # how NumPy says that the system took a part of an array alone
        text = f"No space left on the disk, or a limit ({text})"
    return " ".join(text.split()) or type(error).__name__
