"""How every shipped model was trained: a family and a configuration under its name."""

from dataclasses import replace

from proxlearn.families import Family, GaussianLasso, GaussianLogistic, General, WideLogistic
from proxlearn.training import TrainConfig

PAPER = TrainConfig(schedule="cosine")
"""The paper's setting (500 minibatches of 64, horizon 100 in segments of 20, Adam from 1e-2)."""
ABLATION = replace(PAPER, steps=100)
"""A fifth of the paper's minibatches, on problems of 100x200: for the ablation's comparisons."""
SMALL_LASSO = GaussianLasso(m=100, n=200, nonzeros=20)

BLACK_BOX = replace(PAPER, steps=300, batch=16)
"""For the black-box competitors: fewer problems a minibatch, of the size they are tested on."""
UNROLLED = TrainConfig(schedule="cosine", steps=300, horizon=20)
"""For the unrolled competitors: all 20 layers in one segment."""

WIDE = TrainConfig.compact(
    steps=200,
    batch=32,
    horizon=200,
    warmup=60,
    reference=1000,
    validation=16,
    validation_batches=12,
    settings={"hidden": 24},
)
"""For families whose batches differ in kind and size."""

RECIPES: dict[str, tuple[Family, TrainConfig]] = {
    "lasso-pa": (GaussianLasso(), PAPER),
    "logistic-pa": (GaussianLogistic(), replace(PAPER, settings={"activation": "softplus"})),
    **{
        f"lasso-{rule}": (SMALL_LASSO, replace(ABLATION, rule=rule))
        for rule in ("p", "a", "pba", "pba1", "pba2", "pba12")
    },
    **{
        f"lasso-{rule}": (GaussianLasso(), replace(BLACK_BOX, rule=rule))
        for rule in ("l2o-dm", "rnnprop")
    },
    **{
        f"logistic-{rule}": (GaussianLogistic(), replace(BLACK_BOX, rule=rule))
        for rule in ("l2o-dm", "rnnprop")
    },
    **{
        f"lasso-{rule}": (GaussianLasso(), replace(UNROLLED, rule=rule))
        for rule in ("step-lista", "ada-lista")
    },
    "lasso": (
        GaussianLasso(),
        TrainConfig.compact(
            steps=800, horizon=40, loss="log-mean-gap", floor=1e-7, settings={"hidden": 24}
        ),
    ),
    # The logistic loss is flatter than its bound L where margins are large: p may be larger.
    "logistic": (
        WideLogistic(lam_low=0.001),
        replace(WIDE, settings={"hidden": 24, "largest_log_p": 3.0}),
    ),
    "general": (General(), WIDE),
}
