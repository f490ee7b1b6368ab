"""Time an iteration, iterations, and time to a gap."""

from proxlearn.evaluation.experiments.experiment import Experiment, Scale, Setting
from proxlearn.evaluation.experiments.sources import LASSO, LASSO_BLOCK, SPAMBASE
from proxlearn.evaluation.experiments.trainings import SEEDS

EXPERIMENT = Experiment(
    name="runtime",
    paper_figure="Table 2",
    title="Run time",
    settings=(
        Setting(
            "LASSO",
            LASSO,
            (
                "lasso-pa",
                "lasso",
                "adamhd",
                "fista-restart",
                "published-adamhd",
                *(f"published-lasso-pa-{seed}" for seed in SEEDS),
            ),
        ),
        Setting(
            "Spambase",
            SPAMBASE,
            (
                "logistic-pa",
                "logistic",
                "adamhd",
                "fista-restart",
                "published-adamhd",
                *(f"published-logistic-pa-{seed}" for seed in SEEDS),
            ),
        ),
    ),
    quick=Scale(count=16, iterations=600),
    paper=Scale(count=1024, iterations=1000),
    block=LASSO_BLOCK,
    timed=True,
    notes=(
        "Times are of this run, on the CPU; the paper's are of four GPUs. They include what else "
        "the machine does: in the committed run, on one core, that was other work much of the "
        "time. Compare the methods with each other, in time an iteration.",
    ),
)
