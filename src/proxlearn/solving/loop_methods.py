"""Which method the loop in PyTorch runs, whether it is learned, and how many iterations it has."""

from typing import TypeGuard

from proxlearn import zoo
from proxlearn.errors import InputError
from proxlearn.methods.optimizers import Optimizer
from proxlearn.methods.optimizers.optimizer import most_iterations, rule_of
from proxlearn.methods.rules import Learnable
from proxlearn.methods.rules.banded import bands_differ
from proxlearn.methods.scheme import Stepwise
from proxlearn.problems.problem import Problem


def automatic_name(problem: Problem) -> str:
    """The name of the method that "auto" stands for.

    Learned rules are chosen for losses of A x with a penalty like l1, which they were trained for.
    """
    if problem.f.gradients_are_free:
        return "ppa"
    f = problem.f.as_glm()
    if f is None or problem.r.level() is None:
        return "fista-restart"
    A = f.A
    if f.has_proximal and zoo.has("imaging-splitting"):
        return "imaging-splitting"
    if A.explicit or A.shape[1] != problem.n or not zoo.has("imaging"):
        return "general"
    return "imaging" if bands_differ(problem) else "fista-restart"


def check_layers(method: Optimizer, max_iter: int) -> None:
    """Refuse more iterations than an unrolled method has layers."""
    layers = most_iterations(method)
    if layers is not None and max_iter > layers:
        raise InputError(
            f"this optimizer has {layers} layers and max_iter is {max_iter}; "
            f"set max_iter to at most {layers}"
        )


def is_learned(method: Optimizer) -> TypeGuard[Stepwise]:
    """True where a method has weights: it may be wrong on problems that it was not trained for."""
    return isinstance(method, Stepwise) and isinstance(rule_of(method), Learnable)
