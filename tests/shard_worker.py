"""One process of ``proxlearn solve-batch``, for tests that kill it or run several at once.

Usage: python shard_worker.py LOG [--die solve|write --at N] [--hang] [--delay S] [--together N]
           -- ARGUMENTS

LOG gets a line for each shard that is written. The process dies by SIGKILL in its Nth solve, or in
the middle of its Nth write; it hangs in its first solve; it waits for N processes before it starts.
"""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

from proxlearn import cli
from proxlearn.shards import summary, work


def log(folder, kind, text):
    with (folder / f"{kind}-{os.getpid()}").open("a") as stream:
        stream.write(f"{text}\n")


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def disturbed(options):
    """The worker's solve and its write, with what shall happen in them."""
    solves, writes = [], []

    def solve(*arguments, **settings):
        solves.append(1)
        if options.die == "solve" and len(solves) == options.at:
            die()
        if options.hang:
            log(options.log, "hanging", "")
            time.sleep(600)
        time.sleep(options.delay)
        return solve.original(*arguments, **settings)

    def write(path, arrays):
        writes.append(1)
        if options.die == "write" and len(writes) == options.at:
            summary.np.savez = lambda stream, **_: (stream.write(b"half"), stream.flush(), die())
        write.original(path, arrays)
        log(options.log, "wrote", f"{path.parent.name}/{path.name}")

    solve.original, write.original = work.solve, work.write_result
    work.solve, work.write_result = solve, write


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("log", type=Path)
    parser.add_argument("--die", choices=["solve", "write"])
    parser.add_argument("--at", type=int, default=1)
    parser.add_argument("--hang", action="store_true")
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--together", type=int, default=1)
    parser.add_argument("arguments", nargs="+")
    options = parser.parse_args()
    disturbed(options)
    log(options.log, "ready", "")
    while len(list(options.log.glob("ready-*"))) < options.together:
        time.sleep(0.01)
    sys.exit(cli.main(["solve-batch", *options.arguments]))
