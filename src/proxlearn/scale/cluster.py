"""Dask clusters: one of our own on this machine, a client of another, and tasks on either."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any

from proxlearn.errors import InputError
from proxlearn.solving.exact import workers as processors

AHEAD, LEAST_AHEAD = 4, 32
"""The scheduler is given `AHEAD` tasks for each thread, and `LEAST_AHEAD` more: it is never without
work, and never holds the tasks of a billion problems at once."""

HEAVY_AHEAD = 2
"""Tasks for each thread that are given ahead where tasks carry arrays: the scheduler holds these
arrays until a worker takes them."""

PACE = 0.2
"""Seconds in which the results of tasks are collected before they are fetched."""

PATIENCE = 10
"""Seconds after which a scheduler that does not answer counts as lost."""

LOOK = 2.0
"""Seconds between two looks at how many threads the cluster has."""

LOOPBACK = "127.0.0.1"


SETTINGS = {
    # A chunk that waits on a worker would be blamed too when the chunk before it kills the worker.
    "distributed.scheduler.worker-saturation": 1.0,
    # Without Dask's MALLOC_TRIM_THRESHOLD_, with which the C library returns every array to the
    # system and gets it back page by page: chunks of a second took 12% longer.
    "distributed.nanny.pre-spawn-environ": {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
    # What Dask measures of itself took 7% of a core with two idle workers, and now takes 1%.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.memory.monitor-interval": "1s",
}
"""Settings of Dask for a cluster of our own (measured in 2026-11 on two cores)."""


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
        logging.getLogger(name).setLevel(logging.CRITICAL)  # this module reports lost schedulers
    try:
        asyncio.run(_reach(address))
        return Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        said = " ".join(str(error).split())[:200]
        raise InputError(
            f"no scheduler of Dask answers at {address} ({said}); expected an address such as "
            "tcp://host:8786, or tls://host:8786 with Dask's TLS settings"
        ) from None


async def _reach(address: str) -> None:
    """Connect once; a client that cannot connect would take 20 seconds and print a traceback."""
    from distributed.comm.core import connect
    from distributed.security import Security

    settings = Security().get_connection_args("client")
    comm = await connect(address, timeout=PATIENCE, **settings)
    await comm.close()


@dataclass(frozen=True)
class Lost:
    """Takes the place of the result of a task that did not end, and says why it did not."""

    reason: str
    killed: bool
    """True where the workers that ran the task died one after the other."""


def run_each(
    client: Any,
    function: Callable[..., Any],
    calls: Iterable[tuple[Any, ...]],
    heavy: bool = False,
) -> Iterator[tuple[int, Any]]:
    """Run ``function(*call)`` on the cluster for every call; yields places and results as they end.

    An exception of the function is raised here. Tasks that are left are cancelled when the
    generator is closed. Tasks are sent and results fetched many at a time, since each message
    costs the scheduler about as much as a task; `heavy` ones carry arrays, and fewer are sent.
    """
    waiting = enumerate(calls)
    places: dict[Any, int] = {}
    ended: SimpleQueue[Any] = SimpleQueue()
    threads, looked = 0, -LOOK
    try:
        while True:
            if time.monotonic() - looked > LOOK:
                threads, looked = _threads(client), time.monotonic()
            most = HEAVY_AHEAD * threads + 1 if heavy else AHEAD * threads + LEAST_AHEAD
            if len(places) <= most / 2:
                batch = list(islice(waiting, most - len(places)))
                for future, place in _sent(client, function, batch):
                    places[future] = place
                    future.add_done_callback(ended.put)
            if not places:
                return
            done = {places.pop(future): future for future in _collected(ended, len(places))}
            found = _fetched(client, done)
            for place, future in done.items():
                yield place, _result(client, future, found[place])
    finally:
        if places and client.status == "running":
            client.cancel(list(places))


def _sent(
    client: Any, function: Callable[..., Any], batch: list[tuple[int, tuple[Any, ...]]]
) -> Iterable[tuple[Any, int]]:
    """Give calls to the scheduler, all in one message; their futures with their places."""
    from dask import config

    if not batch:
        return ()
    columns = zip(*(call for _, call in batch), strict=True)
    with config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
        futures = client.map(function, *columns, pure=False)
    return [(future, place) for future, (place, _) in zip(futures, batch, strict=True)]


def _collected(ended: "SimpleQueue[Any]", count: int) -> list[Any]:
    """Some of `count` tasks, which have ended: one at least, half at most where it is quick."""
    found = [ended.get()]
    deadline = time.monotonic() + PACE
    with suppress(Empty):
        while len(found) < count / 2:
            found.append(ended.get(timeout=max(deadline - time.monotonic(), 0.0)))
    return found


def _fetched(client: Any, futures: dict[int, Any]) -> dict[int, Any]:
    """The results of tasks by their places; None for those that have failed."""
    with _connection(client):
        found: dict[int, Any] = client.gather(futures, errors="skip")
        return found


def _threads(client: Any) -> int:
    with _connection(client):
        return sum(client.nthreads().values())


@contextmanager
def _connection(client: Any) -> Iterator[None]:
    """Raise an error where the scheduler is lost."""
    lost = InputError(
        "the connection to the scheduler was lost; what is finished is kept: start the "
        "scheduler, then run the same command again"
    )
    if client.status != "running":
        raise lost
    try:
        yield
    except OSError:  # the errors of Dask are among them
        raise lost from None


def _result(client: Any, future: Any, result: Any) -> Any:
    """The result of a task that ended, or why there is none; raises its error."""
    from distributed import CancelledError, KilledWorker

    if future.status == "finished":
        return result
    error = None if future.status in ("cancelled", "lost") else future.exception()
    if error is None or isinstance(error, CancelledError):
        with _connection(client):
            return Lost("its arrays were on workers that died", killed=False)
    if isinstance(error, KilledWorker):
        return Lost("the workers that ran it died", killed=True)
    raise error.with_traceback(future.traceback())
