"""The step of the paper's published baselines, for comparison with the right one.

The paper's code takes ||A||_2 for the Lipschitz constant of the mean logistic loss, whose gradient
has ||A||^2/(4m). Its ISTA and FISTA then step by 1/||A||, tens of times too short, and its learned
rules choose p in units of 1/||A||. This exists for the experiments alone; optimizers that do not
step by a multiple of 1/L are not run with it.
"""

from dataclasses import dataclass, fields

from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.evaluation.experiments.experiment import Problems, Setting
from proxlearn.evaluation.report.verdicts import PUBLISHED, RIGHT
from proxlearn.names import RESCALED
from proxlearn.problems.problem import Problem
from proxlearn.problems.smooth import Logistic, Softmax

STEPPED = ("ista", "fista", "fista-restart")
"""Optimizers whose step the convention changes."""


def stepped(name: str) -> bool:
    """Whether the step changes an optimizer: ISTA, FISTA, and a rule that was trained on LASSO.

    For least squares the paper's unit of p is 1/L, so that such a rule can be run with either step.
    One that was trained on logistic problems with p in units of 1/L takes steps a hundred times
    too short in units of 1/||A||; `compared_methods` has it with rescaled units.
    """
    return name in (*STEPPED, "lasso-pa")


def published(name: str) -> bool:
    """Whether an optimizer belongs to the published preset, and is run with its step alone."""
    return name.startswith("published-") or name.endswith(RESCALED)


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
    """All optimizers with the right step, and those that the step changes with the published one.

    Methods of the published preset are run with the published step alone.
    """
    ours = tuple(name for name in optimizers if not published(name))
    theirs = tuple(name for name in optimizers if stepped(name) or published(name))
    return (
        Setting(RIGHT, problems, ours, quick=quick),
        Setting(PUBLISHED, problems, theirs, step="published", quick=quick),
    )
