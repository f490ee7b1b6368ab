"""Who takes part in a contest."""

from contest.peers import celer, ours, scikit, skglm, spams
from contest.task import Task
from contest.variant import OURS, Peer

NAMES = ("sklearn", "celer", "skglm", "spams")


def peers(
    task: Task, optimizer: str, threads: int, engine: str | None = None, names=NAMES
) -> list[Peer]:
    """proxlearn with the learned rule, with restarted FISTA in its place, and the others."""
    others = {
        "sklearn": lambda: scikit.peer(task),
        "celer": lambda: celer.peer(task),
        "skglm": lambda: skglm.peer(task),
        "spams": lambda: spams.peer(task, threads),
    }
    return [
        ours.peer(OURS[0], optimizer, task, engine),
        ours.peer(OURS[1], "fista-restart", task, engine),
        *(others[name]() for name in NAMES if name in names),
    ]
