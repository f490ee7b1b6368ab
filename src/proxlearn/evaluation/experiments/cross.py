"""Rules that were trained on LASSO, tested on logistic regression."""

from proxlearn.evaluation.experiments.experiment import Experiment, Scale
from proxlearn.evaluation.experiments.logistic import STEP_NOTE
from proxlearn.evaluation.experiments.sources import LOGISTIC, TRAINING_NOTE
from proxlearn.evaluation.experiments.steps import both_steps
from proxlearn.evaluation.experiments.trainings import BLACK_BOX, SEEDS

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
    *(f"published-lasso-pa-{seed}" for seed in SEEDS),
    *(f"published-logistic-{rule}-{seed}" for rule in ("pa", *BLACK_BOX) for seed in SEEDS),
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
        **{
            f"published-lasso-pa-{s}": f"L2O-PA, trained on LASSO, published, seed {s}"
            for s in SEEDS
        },
    },
    notes=(STEP_NOTE, TRAINING_NOTE),
)
