"""Logistic regression problems of the training distribution."""

from proxlearn.evaluation.experiments.experiment import Experiment, Scale
from proxlearn.evaluation.experiments.sources import LOGISTIC, TRAINING_NOTE
from proxlearn.evaluation.experiments.steps import both_steps
from proxlearn.evaluation.experiments.trainings import BLACK_BOX, SEEDS

OPTIMIZERS = (
    "logistic-pa",
    "logistic",
    "logistic-l2o-dm",
    "logistic-rnnprop",
    "ista",
    "fista",
    "fista-restart",
    "adam",
    "adamhd",
    *(f"published-logistic-{rule}-{seed}" for rule in ("pa", *BLACK_BOX) for seed in SEEDS),
    "published-adam",
    "published-adamhd",
    "logistic-pa-rescaled",
)
STEP_NOTE = (
    "The published step takes the norm of A for the Lipschitz constant of the gradient; the right "
    "one is ||A||^2/(4m). It changes ISTA, FISTA and L2O-PA trained on LASSO. Methods of the "
    "published preset are run with the published step, the others with the right one. L2O-PA in "
    "units of 1/||A|| is the rule of the corrected preset, trained with p in units of 1/L, with p "
    "in the published unit times a factor that leaves it as it is on the problems of its training."
)

EXPERIMENT = Experiment(
    name="logistic",
    paper_figure="Fig. 5",
    title="Logistic regression, trained and tested on the same distribution",
    settings=both_steps(LOGISTIC, OPTIMIZERS),
    quick=Scale(count=16, iterations=600),
    paper=Scale(count=1024, iterations=1000),
    notes=(STEP_NOTE, TRAINING_NOTE),
)
