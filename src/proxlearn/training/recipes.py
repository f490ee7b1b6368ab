"""How every shipped model was trained: a family and a configuration under its name."""

from dataclasses import replace

from proxlearn.training import TrainConfig
from proxlearn.training.families import (
    Family,
    GaussianLasso,
    GaussianLogistic,
    General,
    Imaging,
    Invertible,
    WideLogistic,
)

PAPER = TrainConfig.paper(schedule="cosine")
"""The paper's settings: 500 minibatches of 64, horizon 100 in segments of 20, Adam from 1e-2 on."""
LOGISTIC = replace(PAPER, settings={"activation": "softplus"})
ABLATION = replace(PAPER, steps=100)
"""A fifth of the paper's minibatches, on problems of 100x200: for the ablation's comparisons."""
LOW_LAMBDA = GaussianLogistic(lam=1e-4)
"""What the paper trains on for CIFAR-10, where a lambda of 0.1 would leave nothing but zeros."""
SMALL_LASSO = GaussianLasso(m=100, n=200, nonzeros=20)

BLACK_BOX = replace(PAPER, steps=150, batch=16)
"""For the black-box competitors: fewer problems a minibatch, of the size they are tested on."""
UNROLLED = TrainConfig.paper(schedule="cosine", steps=150, batch=32, horizon=20)
"""For the unrolled competitors: all 20 layers in one segment."""

WIDE = TrainConfig(
    loss="log-gap",
    steps=400,
    batch=32,
    horizon=300,
    warmup=150,
    lr=5e-3,
    reference=500,
    validation=16,
    validation_batches=12,
    settings={"hidden": 24},
)
"""For families whose batches differ in kind and size."""

SPLITTING = TrainConfig.pictures(
    rule="splitting",
    loss="log-certified-gap",
    floor=3e-4,
    steps=260,
    batch=4,
    horizon=100,
    unroll=100,
    warmup=0,
    lr=1e-2,
    score="certified-gap",
    validation_batches=6,
    validate_every=26,
    stop_after=2,
)
"""For Douglas-Rachford: its steps are never expansive, so that backpropagation goes through all
iterations at once. With segments of 20 the rule learned what pays off within 20 iterations, and the
validation worsened from -2.41 to -2.00 in 45 minibatches (2026-11-18)."""

RECIPES: dict[str, tuple[Family, TrainConfig]] = {
    "lasso-pa": (GaussianLasso(), PAPER),
    "logistic-pa": (GaussianLogistic(), LOGISTIC),
    "lowlambda-pa": (LOW_LAMBDA, LOGISTIC),
    **{
        f"lasso-{rule}": (SMALL_LASSO, replace(ABLATION, rule=rule))
        for rule in ("p", "a", "pba", "pba1", "pba2", "pba12")
    },
    **{
        f"lasso-{rule}": (GaussianLasso(), replace(BLACK_BOX, rule=rule))
        for rule in ("l2o-dm", "rnnprop")
    },
    **{
        f"{kind}-{rule}": (family, replace(BLACK_BOX, rule=rule))
        for kind, family in (("logistic", GaussianLogistic()), ("lowlambda", LOW_LAMBDA))
        for rule in ("l2o-dm", "rnnprop")
    },
    "lasso-step-lista": (GaussianLasso(), replace(UNROLLED, rule="step-lista")),
    "lasso-ada-lista": (GaussianLasso(), replace(UNROLLED, rule="ada-lista", lr=2e-3)),
    "lasso": (
        GaussianLasso(),
        TrainConfig(steps=800, floor=1e-7, settings={"hidden": 24}),
    ),
    # Where margins are large, the logistic loss is flatter than its bound L, so p may exceed 1/L.
    "logistic": (
        WideLogistic(
            smallest=15, columns=120, fewest=150, rows=1500, entries=60_000, lam_low=0.001
        ),
        replace(WIDE, settings={"hidden": 24, "largest_log_p": 3.0}),
    ),
    "general": (General(), replace(WIDE, steps=240, warmup=100)),
    "imaging": (Imaging(folder="bsds500"), TrainConfig.pictures()),
    "imaging-splitting": (Invertible(folder="bsds500"), SPLITTING),
}
