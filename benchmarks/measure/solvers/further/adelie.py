"""adelie: group elastic nets in C++, for squares, several targets and Poisson; bounded squares."""

import numpy as np

from measure.further import FurtherTask
from measure.solvers.variant import Variant, same
from measure.task import Answer

try:
    import adelie as ad
except ImportError:
    ad = None

POINTS = 10
"""Values of lambda of the path that ends at the one that is asked for."""


def variants(task: FurtherTask) -> list[Variant]:
    if ad is None or task.kind not in ("group", "multitask", "poisson", "nnls"):
        return []
    return [_bounded()] if task.kind == "nnls" else [_net(1), _net(POINTS)]


def _net(points: int) -> Variant:
    def run(task: FurtherTask, tol: float) -> Answer:
        width = task.numbers.get("width", 1)
        groups = np.arange(0, task.n, width)
        family = {"group": "gaussian", "multitask": "multigaussian", "poisson": "poisson"}
        glm = getattr(ad.glm, family[task.kind])(np.ascontiguousarray(task.y))
        # Its losses are means over the samples, and over the targets.
        lam = task.lam / (1 if task.kind == "poisson" else task.y.size)
        path = (
            lam * np.geomspace(1 / task.numbers["value"], 1, points)
            if points > 1
            else np.array([lam])
        )
        state = ad.grpnet(
            task.X, glm, groups=groups, penalty=np.ones(len(groups)), lmda_path=path,
            intercept=False, tol=tol, irls_tol=tol, early_exit=False, progress_bar=False,
        )  # fmt: skip
        return Answer.one(state.betas[-1].toarray())

    name = "one lambda" if points == 1 else f"path of {points}"
    return Variant("adelie", f"grpnet, {name}", same, run)


def _bounded() -> Variant:
    def run(task: FurtherTask, tol: float) -> Answer:
        zero, far = np.zeros(task.n), np.full(task.n, 1e100)
        return Answer.one(ad.bvls(task.X, task.y, zero, far, tol=tol).beta)

    return Variant("adelie", "bvls", same, run)
