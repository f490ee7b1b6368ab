"""Ionosphere: logistic regression on real data by rules that were trained on synthetic problems."""

from proxlearn.evaluation.experiments.experiment import Experiment, Scale
from proxlearn.evaluation.experiments.logistic import OPTIMIZERS, STEP_NOTE
from proxlearn.evaluation.experiments.sources import IONOSPHERE, TRAINING_NOTE
from proxlearn.evaluation.experiments.steps import both_steps

EXPERIMENT = Experiment(
    name="ionosphere",
    paper_figure="Fig. 6",
    title="Ionosphere, logistic regression with rules trained on synthetic data",
    settings=both_steps(IONOSPHERE, OPTIMIZERS),
    quick=Scale(count=1, iterations=1000),
    paper=Scale(count=1, iterations=5000),
    notes=(STEP_NOTE, TRAINING_NOTE),
)
