"""Progress of long jobs, as the callables that are told of it."""

from collections.abc import Callable

Watch = Callable[[str, float, float], None]
"""Told what is at work, how much of the job is done, and how much there is in all.

The unit is the job's own: parts, problems or minibatches. A part under way counts as a fraction.
"""


def portion(watch: Watch | None, first: float, last: float, total: float) -> Watch | None:
    """A watch for a job that is one portion, from `first` to `last`, of a larger one.

    >>> seen = []
    >>> half = portion(lambda *event: seen.append(event), 1, 2, 2)
    >>> half("fista", 5, 10)
    >>> seen
    [('fista', 1.5, 2)]
    """
    if watch is None:
        return None
    return lambda what, done, of: watch(what, first + (last - first) * done / of, total)
