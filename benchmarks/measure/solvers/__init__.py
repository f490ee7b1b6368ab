"""The solvers that take part, one file each."""

from measure.further import FurtherTask
from measure.solvers import celer, further, scikit, skglm, spams
from measure.solvers.variant import Variant
from measure.task import Task

PEERS = {module.NAME: module for module in (celer, skglm, scikit, spams)}
"""Those that are most often fastest come first: what is far slower than they are is given up."""

PACKAGES = {name: module.PACKAGE for name, module in PEERS.items()}
PACKAGES |= {"adelie": "adelie", "SciPy": "scipy"}
"""The package of each peer; the last two take part in further kinds of problems only."""


def variants(task: Task, names=tuple(PACKAGES)) -> list[Variant]:
    """Every setting of these peers that fits the task."""
    if isinstance(task, FurtherTask):
        return further.variants(task, names)
    order = [name for name in PEERS if name in names]
    if len(task.lams) > 1 and task.loss == "squares":  # there LARS is fastest by far
        order.sort(key=lambda name: name != scikit.NAME)
    return [v for name in order for v in PEERS[name].variants(task)]
