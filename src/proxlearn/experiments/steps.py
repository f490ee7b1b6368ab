"""The step of the paper's published baselines, for comparison with the right one.

The paper's code takes ||A||_2 for the Lipschitz constant of the mean logistic loss, whose gradient
has ||A||^2/(4m). Its ISTA and FISTA then step by 1/||A||, tens of times too short. This exists for
the experiments alone; optimizers that do not step by 1/L, or were trained with the right L, are
not run with it.
"""

from dataclasses import dataclass, fields

from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.experiments.base import Problems, Setting
from proxlearn.problem import Problem
from proxlearn.smooth import Logistic, Softmax

STEPPED = ("ista", "fista", "fista-restart")
"""Optimizers whose step the convention changes."""
RIGHT, PUBLISHED = "right step", "published step"


@dataclass(frozen=True)
class PublishedLogistic(Logistic):
    """The logistic loss with ||A|| in place of its Lipschitz constant."""

    def lipschitz(self) -> Tensor:
        return self.A.norm()


@dataclass(frozen=True)
class PublishedSoftmax(Softmax):
    """The softmax loss with ||A|| in place of its Lipschitz constant."""

    def lipschitz(self) -> Tensor:
        return self.A.norm()


_PUBLISHED: dict[type, type] = {Logistic: PublishedLogistic, Softmax: PublishedSoftmax}


def published_step(problem: Problem) -> Problem:
    """The same problem, for which 1/L is 1/||A||."""
    f = problem.f
    if type(f) not in _PUBLISHED:
        raise InputError(f"the published step is that of a logistic loss; f is {type(f).__name__}")
    values = {entry.name: getattr(f, entry.name) for entry in fields(f)}  # type: ignore[arg-type]
    return problem.replaced(f=_PUBLISHED[type(f)](**values))


def both_steps(
    problems: Problems, optimizers: tuple[str, ...], quick: Problems | None = None
) -> tuple[Setting, ...]:
    """All optimizers with the right step, and those that step by 1/L with the published one."""
    stepped = tuple(name for name in optimizers if name in STEPPED)
    return (
        Setting(RIGHT, problems, optimizers, quick=quick),
        Setting(PUBLISHED, problems, stepped, step="published", quick=quick),
    )
