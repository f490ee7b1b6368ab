"""skglm: groups, several targets, Huber, Poisson and non-negativity."""

import numpy as np
from skglm.datafits import Huber, Poisson, Quadratic, QuadraticGroup, QuadraticMultiTask
from skglm.penalties import L1, L2_1, PositiveConstraint, WeightedGroupL2, WeightedL1GroupL2
from skglm.solvers import AndersonCD, GroupBCD, MultiTaskBCD, ProxNewton
from skglm.utils.data import grp_converter

from measure.further import DELTA, FurtherTask
from measure.solvers.variant import Variant, same
from measure.task import Answer


def variants(task: FurtherTask) -> list[Variant]:
    if task.kind in ("group", "sparse-group"):
        return [_grouped(p0) for p0 in (10, 100)]
    if task.kind == "multitask":
        return [_tasks(p0) for p0 in (10, 100)]
    if task.kind == "huber":
        return [_separable("AndersonCD", p0) for p0 in (10, 100)]
    if task.kind == "poisson":
        return [_separable("ProxNewton", p0) for p0 in (10, 100)]
    return [_separable("AndersonCD", 10)] if task.kind == "nnls" else []


def _grouped(p0: int) -> Variant:
    def run(task: FurtherTask, tol: float) -> Answer:
        indices, ptr = grp_converter(task.numbers["width"], task.n)
        ratio, alpha = task.numbers["ratio"], task.lam / task.m
        groups, columns = np.full(len(ptr) - 1, 1 - ratio), np.full(task.n, ratio)
        penalty = WeightedGroupL2(alpha, groups, ptr, indices)
        if ratio:
            penalty = WeightedL1GroupL2(alpha, groups, columns, ptr, indices)
        strategy = "fixpoint" if ratio else "subdiff"  # its sparse-group penalty has no other
        limits = {"max_iter": 10_000, "max_epochs": 100_000}
        solver = GroupBCD(p0=p0, tol=tol, ws_strategy=strategy, **limits)
        w = solver.solve(task.X, task.y, QuadraticGroup(ptr, indices), penalty, run_checks=False)
        return Answer.one(w[0])

    return Variant("skglm", f"GroupBCD, p0 {p0}", same, run)


def _tasks(p0: int) -> Variant:
    def run(task: FurtherTask, tol: float) -> Answer:
        solver = MultiTaskBCD(10_000, 1_000_000, p0, tol, fit_intercept=False)
        fit, penalty = QuadraticMultiTask(), L2_1(task.lam / task.m)
        return Answer.one(solver.solve(task.X, task.y, fit, penalty, run_checks=False)[0])

    return Variant("skglm", f"MultiTaskBCD, p0 {p0}", same, run)


def _separable(name: str, p0: int) -> Variant:
    def run(task: FurtherTask, tol: float) -> Answer:
        p = min(p0, task.n)
        solver = ProxNewton(p, 1000, tol=tol, fit_intercept=False)
        if name == "AndersonCD":
            solver = AndersonCD(1000, 100_000, p, tol, fit_intercept=False)
        kind = task.kind
        penalty = L1(task.lam / (1 if kind == "poisson" else task.m))
        penalty = PositiveConstraint() if kind == "nnls" else penalty
        fit = {"huber": lambda: Huber(DELTA), "poisson": Poisson, "nnls": Quadratic}[kind]()
        return Answer.one(solver.solve(task.X, task.y, fit, penalty, run_checks=False)[0])

    return Variant("skglm", f"{name}, p0 {p0}", same, run)
