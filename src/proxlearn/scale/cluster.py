"""Dask clusters: one of our own on this machine, a client of another, and tasks on either."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from proxlearn.errors import InputError
from proxlearn.solving.exact import workers as processors

AHEAD, LEAST_AHEAD = 4, 32
"""Tasks that the scheduler is given ahead: so many a thread and so many more. It never holds those
of a billion problems at once."""

LOOK = 2.0
"""Seconds between two looks at how many threads the cluster has."""

LOOPBACK = "127.0.0.1"


SETTINGS = {
    "distributed.worker.profile.enabled": False,
    "distributed.scheduler.worker-saturation": 1.0,
}
"""No samples of where the time goes; and no chunk waits on a worker, where it would be blamed too
when the chunk before it kills the worker."""


@contextmanager
def connected(
    scheduler: str | None, workers: int | None, dashboard: int | None = None, threads: bool = False
) -> Iterator[Any]:
    """A client of the cluster at an address, or of one on this machine that ends with the block.

    The cluster of this machine listens on the loopback interface alone. It has a process a worker,
    or with `threads` a thread a worker in this process.
    """
    if scheduler is not None:
        with _client(scheduler) as client:
            yield client
        return
    from dask import config
    from distributed import Client, LocalCluster

    count = processors(None) if workers is None else workers
    _require_dashboard(dashboard)
    with (
        config.set(SETTINGS),
        LocalCluster(
            n_workers=1 if threads else count,
            threads_per_worker=count if threads else 1,
            processes=not threads,
            protocol="tcp://",
            host=LOOPBACK,
            dashboard_address=f"{LOOPBACK}:{dashboard or 0}",
            scheduler_kwargs={"dashboard": dashboard is not None},
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def _require_dashboard(port: int | None) -> None:
    if port is None:
        return
    try:
        import bokeh  # noqa: F401
    except ImportError:
        raise InputError(
            "the dashboard is drawn by bokeh, which is not installed; install bokeh, "
            "or leave out --dashboard"
        ) from None


def _client(address: str) -> Any:
    """A client of a running cluster; certificates come from the user's configuration of Dask."""
    from distributed import Client

    for name in ("distributed", "distributed.client", "tornado.application", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # a lost scheduler is a line of ours
    try:
        return Client(address, timeout=10, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        said = " ".join(str(error).split())[:200]
        raise InputError(
            f"no scheduler of Dask answers at {address} ({said}); expected an address such as "
            "tcp://host:8786, or tls://host:8786 with Dask's TLS settings"
        ) from None


@dataclass(frozen=True)
class Lost:
    """In place of a result: the task did not end, and why."""

    reason: str
    killed: bool
    """True where the workers that ran the task died one after the other."""


def run_each(
    client: Any, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]
) -> Iterator[tuple[int, Any]]:
    """Run ``function(*call)`` on the cluster for every call; yields places and results as they end.

    An exception of the function is raised here. Tasks that are left are cancelled when the
    generator is closed.
    """
    from distributed import as_completed

    waiting = enumerate(calls)
    places: dict[Any, int] = {}
    ending = as_completed(with_results=True, raise_errors=False, loop=client.loop)
    threads, looked = 0, -LOOK
    try:
        while True:
            if time.monotonic() - looked > LOOK:
                threads, looked = _threads(client), time.monotonic()
            room = AHEAD * threads + LEAST_AHEAD - len(places)
            batch = list(islice(waiting, max(room, 0)))
            if batch:
                columns = zip(*(call for _, call in batch), strict=True)
                futures = client.map(function, *columns, pure=False)
                places |= {f: place for f, (place, _) in zip(futures, batch, strict=True)}
                ending.update(futures)
            if not places:
                return
            for future, result in ending.next_batch():
                yield places.pop(future), _result(client, future, result)
    finally:
        if places and client.status == "running":
            client.cancel(list(places))


def _threads(client: Any) -> int:
    _require_connection(client)
    return sum(client.nthreads().values())


def _require_connection(client: Any) -> None:
    if client.status != "running":
        raise InputError(
            "the connection to the scheduler was lost; what is finished is kept: start the "
            "scheduler, then run the same command again"
        )


def _result(client: Any, future: Any, result: Any) -> Any:
    from distributed import CancelledError, KilledWorker

    if future.status == "finished":
        return result
    if isinstance(result, CancelledError) or future.status in ("cancelled", "lost"):
        _require_connection(client)
        return Lost("its arrays were on workers that died", killed=False)
    _, error, traceback = result
    if isinstance(error, KilledWorker):
        return Lost("the workers that ran it died", killed=True)
    if isinstance(error, CancelledError):
        return Lost("its arrays were on workers that died", killed=False)
    raise error.with_traceback(traceback)
