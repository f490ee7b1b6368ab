"""Claims on shared files: who works on what, without a server and without locks.

A claim is a file made with O_EXCL, so that one worker gets it. Its owner renews the time of the
file while it works; a claim that was not renewed for `stale` seconds, or whose owner is a dead
process of this machine, is renamed away, which again only one worker can do. Ages are differences
of times that the file system gave, so that the clocks of the hosts do not matter. A mistake (an
owner that was suspended and wakes up) costs work done twice, nothing else.
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
    token = _take(path, stale)
    if token is None:
        yield False
        return
    done = threading.Event()
    heart = threading.Thread(target=_beat, args=(path, token, stale / 4, done), daemon=True)
    heart.start()
    try:
        yield True
    finally:
        done.set()
        heart.join()
        if _owner(path).get("token") == token:
            with suppress(OSError):
                path.unlink()


def _take(path: Path, stale: float) -> str | None:
    """The token of a new claim, or None where another worker has it."""
    _remove_if_dead(path, stale)
    token = secrets.token_hex(8)
    owner = {"host": socket.gethostname(), "pid": os.getpid(), "place": _place(), "token": token}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as stream:
            json.dump(owner, stream)
    except FileExistsError:
        return None
    except OSError as error:
        raise InputError(f"claim {path} cannot be written: {error.strerror or error}") from None
    return token


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
    def at(cls, path: Path) -> "_Seen":
        return cls(path.read_text(encoding="utf-8"), path.stat().st_mtime_ns)


def _remove_if_dead(path: Path, stale: float) -> None:
    """Rename a dead claim away. Where a live one was caught in its place, it is put back."""
    try:
        seen = _Seen.at(path)
        if not _is_dead(_parse(seen.text)) and age(path) < stale:
            return
        aside = path.with_name(f"{path.name}-{secrets.token_hex(8)}")
        path.rename(aside)
        if _Seen.at(aside) == seen:
            aside.unlink()
        else:
            aside.rename(path)
    except OSError:
        return  # another worker was faster, or there is no claim


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
