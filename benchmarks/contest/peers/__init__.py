"""Who takes part in a contest."""

from contest.peers import celer, ours, scikit, skglm, spams
from contest.task import Task
from contest.variant import Peer

NAMES = ("sklearn", "celer", "skglm", "spams")


def peers(
    task: Task, optimizer: str, threads: int, engine: str | None = None, names=NAMES
) -> list[Peer]:
    """proxlearn as it is called and with each start, and the others."""
    others = {
        "sklearn": lambda: scikit.peer(task),
        "celer": lambda: celer.peer(task),
        "skglm": lambda: skglm.peer(task),
        "spams": lambda: spams.peer(task, threads),
    }
    return [
        *ours.entrants(optimizer, task, engine),
        *(others[name]() for name in NAMES if name in names),
    ]
