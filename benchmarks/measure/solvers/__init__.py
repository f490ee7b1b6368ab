"""The solvers that take part, one file each."""

from measure.solvers import celer, scikit, skglm, spams
from measure.solvers.variant import Variant
from measure.task import Task

PEERS = {module.NAME: module for module in (celer, skglm, scikit, spams)}
"""Those that are most often fastest come first: what is far slower than they are is given up."""


def variants(task: Task, names=tuple(PEERS)) -> list[Variant]:
    """Every setting of these peers that fits the task."""
    order = [name for name in PEERS if name in names]
    if len(task.lams) > 1 and task.loss == "squares":  # there LARS is fastest by far
        order.sort(key=lambda name: name != scikit.NAME)
    return [v for name in order for v in PEERS[name].variants(task)]
