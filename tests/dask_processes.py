"""Processes of ``solve-batch`` and of Dask, for the tests that kill or encrypt them."""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}


def start(problems, out, *options, **settings):
    """A process that runs ``solve-batch``."""
    arguments = ["solve-batch", str(problems), str(out), *options]
    command = [sys.executable, "-m", "proxlearn", *arguments]
    settings = {"env": ENVIRONMENT, **settings}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **settings)


def end(process):
    """Its exit code and what it said."""
    out, err = process.communicate(timeout=120)
    return process.returncode, out.decode(), err.decode()


def until(condition, seconds=90):
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "waited in vain"
        time.sleep(0.005)


@contextmanager
def dask_cluster(folder, options=(), worker_options=("--no-nanny",), workers=2, settings=None):
    """A scheduler and workers as processes of their own, on the loopback interface.

    `options` of the command line are for all of them, `settings` are environment variables.
    """
    file = folder / "scheduler.json"
    place = ["--host", "127.0.0.1", "--no-dashboard", *options]
    commands = [["scheduler", *place, "--port", "0", "--scheduler-file", str(file)]]
    worker = ["worker", *place, "--nthreads", "1", "--scheduler-file", str(file)]
    commands += [[*worker, *worker_options]] * workers
    processes = []
    try:
        for command in commands:
            processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", "dask", *command],
                    env={**ENVIRONMENT, **(settings or {})}, cwd=folder,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                )
            )  # fmt: skip
            until(file.exists)
        yield json.loads(file.read_text())["address"], processes
    finally:
        for process in reversed(processes):
            process.terminate()  # so that a nanny takes its worker along
        for process in processes:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
