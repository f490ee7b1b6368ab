"""Which coefficients are worth learning: the paper's variants of the scheme on its LASSO."""

from proxlearn.evaluation.experiments.experiment import Experiment, Scale, Setting
from proxlearn.evaluation.experiments.sources import LASSO, LASSO_BLOCK, SMALL_LASSO
from proxlearn.evaluation.experiments.trainings import SEEDS

VARIANTS = ("p", "a", "pa", "pba", "pba1", "pba2", "pba12")
PUBLISHED = tuple(f"published-lasso-{v}-0" for v in VARIANTS)
SMALL = tuple(f"published-small-lasso-{v}-{seed}" for v in VARIANTS for seed in SEEDS[1:])
"""For the spread: two seeds of every variant, trained and tested on small problems."""

EXPERIMENT = Experiment(
    name="ablation",
    paper_figure="Fig. 1",
    title="Ablation on LASSO: which coefficients are learned",
    settings=(
        Setting("", LASSO, (*(f"lasso-{v}" for v in VARIANTS), "fista-restart", *PUBLISHED)),
        Setting("100x200", SMALL_LASSO, (*SMALL, "fista-restart")),
    ),
    quick=Scale(count=16, iterations=100),
    paper=Scale(count=1024, iterations=1000),
    block=LASSO_BLOCK,
    labels={
        **{f"lasso-{v}": v.upper() for v in VARIANTS},
        **{
            f"{kind}-{v}-{seed}": f"{v.upper()}, published, seed {seed}"
            for kind in ("published-lasso", "published-small-lasso")
            for v in VARIANTS
            for seed in SEEDS
        },
    },
    notes=(
        "PA was trained as in the paper (500 minibatches of 250x500), the other variants on 100 "
        "minibatches of 100x200.",
    ),
)
