"""Rules that were trained on LASSO, tested on logistic regression."""

from proxlearn.experiments.base import Experiment, Scale
from proxlearn.experiments.logistic import STEP_NOTE
from proxlearn.experiments.sources import LOGISTIC, TRAINING_NOTE
from proxlearn.experiments.steps import both_steps

OPTIMIZERS = (
    "lasso-pa",
    "lasso",
    "logistic-pa",
    "logistic",
    "logistic-l2o-dm",
    "logistic-rnnprop",
    "ista",
    "fista",
    "fista-restart",
)

EXPERIMENT = Experiment(
    name="cross",
    paper_figure="Fig. 10",
    title="Trained on LASSO, tested on logistic regression",
    settings=both_steps(LOGISTIC, OPTIMIZERS),
    quick=Scale(count=16, iterations=600),
    paper=Scale(count=1024, iterations=1000),
    labels={
        "lasso-pa": "L2O-PA, trained on LASSO",
        "lasso": "compact rule, trained on LASSO",
    },
    notes=(STEP_NOTE, TRAINING_NOTE),
)
