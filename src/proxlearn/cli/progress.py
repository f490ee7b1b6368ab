"""Progress on standard error: a bar in a terminal, now and then a plain line elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

FIRST = 2.0
"""Seconds before the first plain line: a shorter job ends without one."""
LEAST = 10.0
"""Seconds between plain lines, at least. Later a tenth of the time so far, so that hours of work
leave a log of a few dozen lines."""
CLOCK = time.monotonic

Watch = Callable[[str, float, float], None]


@contextmanager
def watching(title: str = "") -> Iterator[Watch]:
    """A watch (see `proxlearn.watch`) that shows what is at work, the share done and the time left.

    `title` stands before what is at work.
    """
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(title)
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    words, left = TextColumn("{task.description}"), TextColumn("{task.fields[left]}")
    columns = (BarColumn(), TaskProgressColumn(), left, words)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None, left="")
        estimate = Estimate()

        def show(what: str, done: float, total: float) -> None:
            seconds = estimate.left(done, total)
            text = "" if seconds is None else f"{spoken(seconds)} left"
            named = f"{title}: {what}" if title else what
            bar.update(task, total=total, completed=done, description=named, left=text)

        yield show


class Estimate:
    """Time left, if the job goes on as fast as since it was first heard of.

    What was done before that, by a run that was interrupted, took no time here and does not count.
    """

    def __init__(self, clock: Callable[[], float] | None = None):
        self.clock = clock or CLOCK
        self.first: tuple[float, float] | None = None

    def left(self, done: float, total: float) -> float | None:
        """Seconds left; None until a part of the work is done."""
        now = self.clock()
        if self.first is None:
            self.first = (done, now)
        before, began = self.first
        if done <= before:
            return None
        return (now - began) / (done - before) * max(total - done, 0.0)


class _Lines:
    """Prints a line after `FIRST` seconds, and then ever more rarely."""

    def __init__(self, title: str, clock: Callable[[], float] | None = None):
        self.title, self.clock, self.estimate = title, clock or CLOCK, Estimate(clock)
        self.began = self.clock()
        self.next = self.began + FIRST

    def __call__(self, what: str, done: float, total: float) -> None:
        seconds = self.estimate.left(done, total)
        now = self.clock()
        if now < self.next:
            return
        spent = now - self.began
        self.next = now + max(LEAST, spent / 10)
        ahead = "" if seconds is None else f", about {spoken(seconds)} left"
        named = f"{self.title}: {what}" if self.title else what
        print(
            f"{100 * done / total:.0f}% after {spoken(spent)}{ahead} ({named})",
            file=sys.stderr,
            flush=True,
        )


def spoken(seconds: float) -> str:
    """A duration in the two units that matter.

    >>> spoken(7.4), spoken(190), spoken(7300)
    ('7 s', '3 min 10 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
