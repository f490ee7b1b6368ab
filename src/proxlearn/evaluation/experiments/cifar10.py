"""Softmax regression on pictures, over many more iterations than in training."""

from proxlearn.evaluation.experiments.experiment import Experiment, Scale
from proxlearn.evaluation.experiments.sources import FEWER_PICTURES, PICTURES, TRAINING_NOTE
from proxlearn.evaluation.experiments.steps import both_steps
from proxlearn.evaluation.experiments.trainings import BLACK_BOX, SEEDS

OPTIMIZERS = (
    "lowlambda-pa",
    "logistic",
    "general",
    "lowlambda-l2o-dm",
    "lowlambda-rnnprop",
    "ista",
    "fista",
    "fista-restart",
    *(f"published-lowlambda-{rule}-{seed}" for rule in ("pa", *BLACK_BOX) for seed in SEEDS),
    "lowlambda-pa-rescaled",
)

EXPERIMENT = Experiment(
    name="cifar10",
    paper_figure="Fig. 9",
    title="CIFAR-10, softmax regression over a long horizon",
    settings=both_steps(PICTURES, OPTIMIZERS, quick=FEWER_PICTURES),
    quick=Scale(count=1, iterations=250),
    paper=Scale(count=1, iterations=10_000),
    notes=(
        "The published step takes the norm of A for the Lipschitz constant; the right one is "
        "||A||^2/(2m). It changes ISTA and FISTA.",
        "L2O-PA, L2O-DM and RNNprop were trained on synthetic problems with lambda 1e-4, as in the "
        "paper; the compact rules are those of the other experiments.",
        TRAINING_NOTE,
        "'Each image was normalized', says the paper: here each is divided by its norm, which "
        "makes ||A|| about as large as on the problems of the training. The authors' code does not "
        "have this experiment.",
        "The quick scale has 500 pictures.",
    ),
    levels=(1e-1, 1e-2),  # L2O-PA gets no further
)
