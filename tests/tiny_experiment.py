"""An experiment of seconds, for the tests of what runs experiments."""

from dataclasses import replace

from proxlearn.evaluation.experiments.experiment import Experiment, FromFamily, Scale, Setting
from proxlearn.training import families

LASSO = FromFamily(families.GaussianLasso(m=10, n=20, nonzeros=2), "tiny LASSO")
LOGISTIC = FromFamily(families.GaussianLogistic(m=30, n=6, nonzeros=3), "tiny logistic")


def tiny(**changes):
    """Five instances in blocks of two, three optimizers: twelve parts with the optima."""
    made = Experiment(
        name="tiny",
        paper_figure="Fig. 0",
        title="Tiny",
        settings=(Setting("", LASSO, ("ista", "fista", "fista-restart")),),
        quick=Scale(count=5, iterations=30),
        paper=Scale(count=8, iterations=40),
        block=2,
    )
    return replace(made, **changes)
