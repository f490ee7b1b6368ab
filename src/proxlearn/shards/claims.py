"""Claims on shared files: who works on what, without a server and without locks.

A claim is a file made with O_EXCL, so that one worker gets it. Its owner renews the time of the
file while it works. A claim that was not renewed for `stale` seconds, or whose owner is a dead
process of this machine, is succeeded, never removed, by the next generation (`x.claim`,
`x.claim.1`, `x.claim.2`): again a file made with O_EXCL, so that one worker gets it, however many
found the old one dead. The newest generation counts. Its owner removes them all in the end, oldest
first, so that who judged one of them long ago finds it gone. Ages are differences of times that the
file system gave, so that the clocks of the hosts do not matter. A mistake (an owner that was
suspended and wakes up) costs work done twice, nothing else.
"""

import json
import os
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from proxlearn.errors import InputError


@contextmanager
def claimed(path: Path, stale: float) -> Iterator[bool]:
    """True where the claim `path` is ours until the end of the block; False where it is not."""
    token = secrets.token_hex(8)
    generations = _take(path, stale, token)
    if not generations:
        yield False
        return
    done = threading.Event()
    ours = generations[-1]
    heart = threading.Thread(target=_beat, args=(ours, token, stale / 4, done), daemon=True)
    heart.start()
    try:
        yield True
    finally:
        done.set()
        heart.join()
        if _owner(ours).get("token") == token:
            _remove(generations)


def _take(path: Path, stale: float, token: str) -> list[Path]:
    """The generations of the claim, the last of them ours; none where another worker has it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        generations, seen = _dead(path, stale)
        ours = _generation(path, len(generations))
        _create(ours, token)
        if generations and _Seen.at(generations[-1]) != seen:
            _remove([ours])  # renewed or removed while it was judged
            return []
    except (FileExistsError, FileNotFoundError):
        return []  # another worker was faster
    except OSError as error:
        raise InputError(f"claim {path} cannot be written: {error.strerror or error}") from None
    return [*generations, ours]


def _create(path: Path, token: str) -> None:
    owner = {"host": socket.gethostname(), "pid": os.getpid(), "place": _place(), "token": token}
    with path.open("x", encoding="utf-8") as stream:
        json.dump(owner, stream)


def _remove(generations: list[Path]) -> None:
    for path in generations:
        with suppress(OSError):
            path.unlink()


def _generation(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}") if number else path


def _beat(path: Path, token: str, seconds: float, done: threading.Event) -> None:
    while not done.wait(seconds):
        if _owner(path).get("token") != token:
            return  # taken over
        with suppress(OSError):
            os.utime(path)


@dataclass(frozen=True)
class _Seen:
    """A claim as it was when it was judged."""

    text: str
    changed: int

    @classmethod
    def at(cls, path: Path) -> "_Seen | None":
        try:
            return cls(path.read_text(encoding="utf-8"), path.stat().st_mtime_ns)
        except FileNotFoundError:
            return None


def _dead(path: Path, stale: float) -> tuple[list[Path], _Seen | None]:
    """All generations, the newest as it was judged dead; FileExistsError where it is alive."""
    generations: list[Path] = []
    while (newest := _generation(path, len(generations))).exists():
        generations.append(newest)
    if not generations:
        return generations, None
    seen = _Seen.at(generations[-1])
    if seen is None or (not _is_dead(_parse(seen.text)) and age(generations[-1]) < stale):
        raise FileExistsError(generations[-1])
    return generations, seen


def age(path: Path) -> float:
    """Seconds since the file changed, by the clock of its file system."""
    probe = path.with_name(f".{secrets.token_hex(8)}.clock")
    probe.touch()
    try:
        return (probe.stat().st_mtime_ns - path.stat().st_mtime_ns) / 1e9
    finally:
        probe.unlink()


def _owner(path: Path) -> dict[str, Any]:
    try:
        return _parse(path.read_text(encoding="utf-8"))
    except OSError:
        return {}


def _parse(text: str) -> dict[str, Any]:
    try:
        owner = json.loads(text)
    except ValueError:
        return {}  # between its creation and its first line
    return owner if isinstance(owner, dict) else {}


def _is_dead(owner: dict[str, Any]) -> bool:
    """True where the owner lived where we do and is gone; elsewhere only its age can tell."""
    if _place() is None or owner.get("place") != _place():
        return False
    try:
        os.kill(int(owner["pid"]), 0)
    except ProcessLookupError:
        return True
    except (OSError, KeyError, ValueError, TypeError):
        return False
    return False


@cache
def _place() -> str | None:
    """What tells process numbers of one place from those of another; None where unknown.

    Hosts may share a name, and containers a host: the boot and the name space decide.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None
