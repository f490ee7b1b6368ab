"""The conventions of the paper's authors in one object, and the corrected ones beside them.

`PUBLISHED` trains and runs the methods as the authors' public code does, also where that code
differs from the paper or from what is right. `CORRECTED` has the right step and the settings that
we advise. The experiments use both; nothing else in the package uses either. docs/paper.md says of
every convention what it is, why we take it over, and where the authors' code has it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from proxlearn.errors import unknown
from proxlearn.evaluation import tuning
from proxlearn.methods.rules.recurrent import VARIANTS
from proxlearn.training import TrainConfig
from proxlearn.training.families import Family, GaussianLasso, GaussianLogistic

PROBLEMS: Mapping[str, Family] = MappingProxyType(
    {
        "lasso": GaussianLasso(),
        "small-lasso": GaussianLasso(m=100, n=200, nonzeros=20),
        "logistic": GaussianLogistic(),
        "lowlambda": GaussianLogistic(lam=1e-4),
    }
)
"""What the methods are trained on. 'small-lasso' serves for the spread of the ablation alone, and
'lowlambda' is what the paper trains on for CIFAR-10."""


@dataclass(frozen=True)
class Preset:
    """A set of conventions: how the methods are trained, and with which step they are run."""

    name: str
    step: str
    """The step of ISTA and FISTA: 'published' (1/||A|| for logistic and softmax) or 'right'."""
    rule: Mapping[str, Any]
    """Settings of the paper's rule and its variants."""
    black_box: Mapping[str, Mapping[str, Any]]
    """Settings of L2O-DM and RNNprop."""
    training: Mapping[str, Any]
    """Fields of `TrainConfig` for the paper's rule, L2O-DM and RNNprop."""
    rates: Mapping[str, float]
    """Learning rates by problem; 'rnnprop' has its own."""
    adam: Mapping[str, Mapping[str, float]]
    """Values of Adam and AdamHD; empty where they are tuned."""

    def settings(self, problem: str, rule: str) -> dict[str, Any]:
        """The settings of a learned method for problems of a kind."""
        logistic = problem in ("logistic", "lowlambda")
        if rule in VARIANTS:
            return {"activation": "softplus" if logistic else "sigmoid", **self.rule}
        if rule in UNROLLED:
            family = PROBLEMS[problem]
            assert isinstance(family, GaussianLasso)
            return {"layers": LAYERS, "rows": family.m, "columns": family.n}
        found = dict(self.black_box[rule])
        if found.get("start") == "fresh":
            found["start_scale"] = 0.01 if rule == "rnnprop" and not logistic else 1.0
        return found

    def config(self, problem: str, rule: str, seed: int = 0) -> TrainConfig:
        """How a method is trained for problems of a kind.

        >>> config = PUBLISHED.config("logistic", "pa")
        >>> config.lr, config.schedule, config.clip, config.settings["unit"]
        (0.003, 'constant', None, 'norm')
        """
        if problem not in PROBLEMS:
            raise unknown("kind of problems", problem, PROBLEMS)
        if rule in UNROLLED:
            fields = {**UNROLLED_TRAINING, "lr": UNROLLED[rule]}
        else:
            often = problem in ("logistic", "lowlambda") or rule == "rnnprop"
            rate = self.rates["rnnprop" if rule == "rnnprop" else problem]
            fields = {**self.training, "lr": rate, "validate_every": 5 if often else 20}
        settings = self.settings(problem, rule)
        return TrainConfig.paper(**{**fields, "rule": rule, "settings": settings, "seed": seed})


LAYERS = 10
"""Layers of the unrolled methods, as in the scripts of the authors' code."""
UNROLLED = MappingProxyType({"step-lista": 1e-2, "ada-lista": 2e-3})
"""The unrolled methods and their learning rates: a multiplier moves further than a matrix."""
UNROLLED_TRAINING = MappingProxyType(
    {
        "loss": "distance",
        "layerwise": True,
        "schedule": "cosine",
        "score": "last-gap",
        "clip": None,
        "steps": 2000,
        "batch": 32,
        "horizon": LAYERS,
        "unroll": LAYERS,
        "reference": 200,
        "validation": 128,
        "validate_every": 20,
    }
)
"""Supervised on x*, layer after layer, as the authors' code trains Ada-LISTA, on fresh problems in
place of 32,000 that are used again and again, and for a fixed number of steps, in which every
parameter can move by more than one (2,000 steps of 2e-3)."""

PUBLISHED = Preset(
    name="published",
    step="published",
    rule=MappingProxyType(
        {"unit": "norm", "bias_activation": "sigmoid", "detach_inputs": True, "start": "fresh"}
    ),
    black_box=MappingProxyType(
        {
            "l2o-dm": {"inputs": "plain", "output": "elu", "start": "fresh"},
            "rnnprop": {"input_layer": "elu", "start": "fresh"},
        }
    ),
    training=MappingProxyType(
        {"schedule": "constant", "clip": None, "score": "objective", "validation": 128}
    ),
    rates=MappingProxyType(
        {"lasso": 1e-2, "small-lasso": 1e-2, "logistic": 3e-3, "lowlambda": 3e-3, "rnnprop": 3e-3}
    ),
    adam=MappingProxyType(tuning.PUBLISHED),
)
"""The conventions of the authors' code."""

CORRECTED = Preset(
    name="corrected",
    step="right",
    rule=MappingProxyType({}),
    black_box=MappingProxyType({"l2o-dm": {}, "rnnprop": {"input_layer": "elu"}}),
    training=MappingProxyType({"schedule": "cosine", "validation": 128}),
    rates=MappingProxyType(dict.fromkeys([*PROBLEMS, "rnnprop"], 1e-2)),
    adam=MappingProxyType({}),
)
"""The right step, and the settings that we advise."""
