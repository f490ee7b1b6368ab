"""Softmax regression on pictures, over many more iterations than in training."""

from proxlearn.experiments.base import Experiment, Scale
from proxlearn.experiments.sources import FEWER_PICTURES, PICTURES, TRAINING_NOTE
from proxlearn.experiments.steps import both_steps

OPTIMIZERS = (
    "logistic-pa",
    "logistic",
    "general",
    "logistic-l2o-dm",
    "logistic-rnnprop",
    "ista",
    "fista",
    "fista-restart",
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
        "||A||^2/(2m). It changes ISTA and FISTA only.",
        "The learned rules are those of the other experiments, trained with lambda 0.1; the paper "
        "trained its own with lambda 1e-4.",
        TRAINING_NOTE,
        "The quick scale has 500 pictures.",
    ),
    certified=False,
    optimum_iterations={"quick": 750, "paper": 1_500},
)
