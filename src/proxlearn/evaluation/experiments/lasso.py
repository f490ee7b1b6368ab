"""LASSO problems of the training distribution."""

from proxlearn.evaluation.experiments.experiment import Experiment, Scale, Setting
from proxlearn.evaluation.experiments.sources import LASSO, LASSO_BLOCK, TRAINING_NOTE
from proxlearn.evaluation.experiments.trainings import BLACK_BOX, SEEDS

CLASSIC = ("ista", "fista", "fista-restart", "adam", "adamhd")
LEARNED = ("lasso-pa", "lasso", "lasso-l2o-dm", "lasso-rnnprop")
UNROLLED = ("lasso-step-lista", "lasso-ada-lista")
PUBLISHED = (
    *(f"published-lasso-{rule}-{seed}" for rule in ("pa", *BLACK_BOX) for seed in SEEDS),
    "published-adam",
    "published-adamhd",
)
"""The methods of the published preset. For least squares its step is the right one."""
TRAINED = ("published-lasso-step-lista-0", "published-lasso-ada-lista-0")

EXPERIMENT = Experiment(
    name="lasso",
    paper_figure="Fig. 3",
    title="LASSO, trained and tested on the same distribution",
    settings=(Setting("", LASSO, (*LEARNED, *CLASSIC, *UNROLLED, *PUBLISHED, *TRAINED)),),
    quick=Scale(count=16, iterations=150),
    paper=Scale(count=1024, iterations=1000),
    block=LASSO_BLOCK,
    notes=("The unrolled methods end after their last layer.", TRAINING_NOTE),
)
