"""LASSO problems a hundred times larger than those of the training."""

from proxlearn.evaluation.experiments.experiment import Experiment, Scale, Setting
from proxlearn.evaluation.experiments.lasso import CLASSIC, LEARNED, PUBLISHED
from proxlearn.evaluation.experiments.sources import LARGE_LASSO, LARGER_LASSO, TRAINING_NOTE

EXPERIMENT = Experiment(
    name="lasso-large",
    paper_figure="Fig. 8",
    title="LASSO, trained at 250x500, tested at 2500x5000",
    settings=(Setting("", LARGE_LASSO, (*LEARNED, *CLASSIC, *PUBLISHED), quick=LARGER_LASSO),),
    quick=Scale(count=4, iterations=150),
    paper=Scale(count=256, iterations=300),
    notes=("The quick scale has problems of 1000x2000.", TRAINING_NOTE),
    block=1,  # 50 MB, and 100 MB in float64; the states of learned rules stay in the cache
)
