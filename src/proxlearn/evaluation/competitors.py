"""The methods of a comparison by name: tuned where a record says how, and L-BFGS."""

from collections.abc import Sequence
from dataclasses import replace

from proxlearn.evaluation import tuning
from proxlearn.evaluation.comparison import Comparison, compare, optimum
from proxlearn.evaluation.lbfgs import lbfgs
from proxlearn.methods import optimizers
from proxlearn.methods.checkpoint import Learned
from proxlearn.methods.optimizers import Optimizer
from proxlearn.names import LBFGS
from proxlearn.problems.problem import Problem
from proxlearn.training import families
from proxlearn.watch import Watch, portion


def named(names: Sequence[str], family: str) -> dict[str, Optimizer]:
    """Optimizers by name, Adam and AdamHD with the values tuned for this family, if any were."""
    return {
        name: tuning.tuned(name, family) if tuning.record(name, family) else optimizers.get(name)
        for name in names
    }


def compare_named(
    problem: Problem, names: Sequence[str], family: str, max_iter: int, watch: Watch | None = None
) -> Comparison:
    """`compare` on problems of a family; 'lbfgs' counts gradients in place of iterations."""
    methods = named([name for name in names if name != LBFGS], family)
    parts = 1 + len(names)
    others = portion(watch, 0, 1 + len(methods), parts)
    if methods or LBFGS not in names:
        result = compare(problem, methods, max_iter, watch=others)
    else:
        result = Comparison(optimum(problem, watch=others), {})
    if LBFGS in names:
        if watch is not None:
            watch(LBFGS, 1 + len(methods), parts)
        result = result.with_run(LBFGS, lbfgs(problem, max_iter))
    return replace(result, runs={name: result.runs[name] for name in names})


def notes(names: Sequence[str], family: str) -> list[str]:
    """A line for each optimizer that is learned, or not run with its default values."""
    lines = []
    for name in names:
        if found := tuning.record(name, family):
            values = ", ".join(f"{key} {value:g}" for key, value in found["chosen"].items())
            how = f"{found['count']} other problems of {family}, {found['iterations']} iterations"
            lines.append(f"{name}: {values}, tuned on {how}")
        elif name == LBFGS:
            lines.append(f"{name}: SciPy, float64; each gradient counts as an iteration")
        elif isinstance(optimizer := optimizers.get(name), Learned):
            count = sum(weight.numel() for weight in optimizer.rule.parameters())
            home = families.name_of(optimizer.card.get("family", {}).get("name", ""))
            place = f", trained on {home or 'a family of its own'}"
            lines.append(f"{name}: a learned rule with {count:,} weights{place}")
    return lines
