"""Sparse coding of image patches by rules that were trained on synthetic LASSO problems."""

from proxlearn.evaluation.experiments.experiment import Experiment, Scale, Setting
from proxlearn.evaluation.experiments.lasso import CLASSIC, LEARNED, PUBLISHED
from proxlearn.evaluation.experiments.sources import PATCHES, SCALED_PATCHES, TRAINING_NOTE

SCALED = "in the units of the training"
"""L of the patches is 26 and lambda 0.5, where L2O-PA was trained with 5.8 and 0.1."""

EXPERIMENT = Experiment(
    name="lasso-bsds",
    paper_figure="Fig. 4",
    title="LASSO, trained on synthetic data, tested on patches of photographs",
    settings=(
        Setting("", PATCHES, (*LEARNED, *CLASSIC, *PUBLISHED)),
        Setting(SCALED, SCALED_PATCHES, ("lasso-pa", "fista-restart")),
    ),
    quick=Scale(count=64, iterations=300),
    paper=Scale(count=1000, iterations=1000),
    facts={"patches": "stretched to [0, 1], mean removed", "K-SVD": "6 non-zeros, 10 rounds"},
    notes=(TRAINING_NOTE,),
    block=1000,
)
