"""The solvers of further kinds of problems, one file for each package."""

from measure.further import FurtherTask
from measure.solvers.further import adelie, celer, scikit, scipy_nnls, skglm
from measure.solvers.variant import Variant

PEERS = {
    "SciPy": scipy_nnls,
    "celer": celer,
    "skglm": skglm,
    "adelie": adelie,
    "scikit-learn": scikit,
}
"""Those that are most often fastest come first."""


def variants(task: FurtherTask, names: tuple[str, ...] = tuple(PEERS)) -> list[Variant]:
    """Every setting of these peers that fits the task."""
    return [v for name in PEERS if name in names for v in PEERS[name].variants(task)]
