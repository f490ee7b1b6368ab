"""celer: groups and several targets."""

import numpy as np
from celer.homotopy import celer_path, mtl_path

from measure.further import FurtherTask
from measure.solvers.variant import Variant, same
from measure.task import Answer

LIMITS = {"max_iter": 10_000, "max_epochs": 1_000_000}


def variants(task: FurtherTask) -> list[Variant]:
    if task.kind == "group":
        return [_group(p0, prune) for p0, prune in ((10, True), (100, True), (10, False))]
    if task.kind == "multitask":
        return [_tasks(p0) for p0 in (10, 100)]
    return []


def _group(p0: int, prune: bool) -> Variant:
    def run(task: FurtherTask, tol: float) -> Answer:
        alphas = np.array([task.lam / task.m])
        groups = task.numbers["width"]
        options = {"alphas": alphas, "groups": groups, "p0": p0, "prune": prune, "tol": tol}
        found = celer_path(task.X, task.y, "grouplasso", **options, **LIMITS)
        return Answer.one(found[1][:, 0])

    return Variant("celer", f"celer_path, p0 {p0}, prune {prune}", same, run)


def _tasks(p0: int) -> Variant:
    def run(task: FurtherTask, tol: float) -> Answer:
        # Its estimator does not run with newer releases of scikit-learn.
        alphas = np.array([task.lam / task.m])
        Y = np.asfortranarray(task.y)
        found = mtl_path(task.X, Y, alphas=alphas, tol=tol, p0=p0, **LIMITS)
        return Answer.one(found[1][:, :, 0].T)

    return Variant("celer", f"mtl_path, p0 {p0}", same, run)
