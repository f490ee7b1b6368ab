"""The norms of the learned biases b1 and b2 in each iteration."""

from proxlearn.evaluation.experiments.experiment import Experiment, Scale, Setting
from proxlearn.evaluation.experiments.sources import LASSO, LASSO_BLOCK

EXPERIMENT = Experiment(
    name="bias-norms",
    paper_figure="Fig. 2",
    title="Size of the learned biases of PBA12",
    settings=(Setting("", LASSO, ("lasso-pba12",)),),
    quick=Scale(count=16, iterations=100),
    paper=Scale(count=1024, iterations=1000),
    block=LASSO_BLOCK,
    measure="bias",
    y="mean norm of b1 and b2",
    notes=("A minimiser is a fixed point only where both vanish.",),
)
