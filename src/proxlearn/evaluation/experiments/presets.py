"""The conventions of the paper's authors in one object, and the corrected ones beside them.

`PUBLISHED` trains and runs the methods as the authors' public code does, also where that code
differs from the paper or from what is right. `CORRECTED` has the right step and the settings that we advise.
The experiments use both; nothing else in the package uses either. `CONVENTIONS` says of every
convention what it is, why we take it over, and where the authors' code (xhchrn/MS4L2O on GitHub)
has it.
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
class Convention:
    """One way in which the authors' code does something that could be done otherwise."""

    what: str
    published: str
    corrected: str
    why: str
    """Why the published preset takes it over."""
    where: str
    """File of the authors' code."""


CONVENTIONS = (
    Convention(
        "unit of p, and the step of ISTA and FISTA, for logistic and softmax losses",
        "1/‖A‖",
        "1/L, that is 4m/‖A‖² and 2m/‖A‖²",
        "The learned p lies in a fixed range of its unit, so the unit decides how far a rule can "
        "step on data of another size; and FISTA is measured with it.",
        "optimizees/logistic_l1.py, grad_lipschitz",
    ),
    Convention(
        "b1 and b2 of the ablation",
        "2 sigmoid(·), added inside the prox",
        "no activation, subtracted as in the paper",
        "An activation that can decay to 0 lets the biases vanish, and without that the variants "
        "stall.",
        "optimizers/coord_math_lstm.py, forward (b_norm is applied to B1 and B2)",
    ),
    Convention(
        "inputs of the LSTM in training",
        "constants",
        "part of the graph",
        "The gradient of the training does not flow through the inputs, which is another training.",
        "optimizers/coord_math_lstm.py, detach_grad=True",
    ),
    Convention(
        "initial state of the LSTM",
        "a standard normal draw for every coordinate of every run (RNNprop on LASSO: times 0.01)",
        "zero",
        "A rule is trained to forget a random state. Ours is drawn from a seed and the instance's "
        "data, so that a run can be repeated.",
        "optimizers/coord_math_lstm.py and rnnprop.py, reset_state",
    ),
    Convention(
        "learning rate",
        "constant; 1e-2 for LASSO, 3e-3 for logistic regression and for RNNprop",
        "half a cosine from 1e-2",
        "It decides where a training of 500 minibatches ends.",
        "configs/1_lasso_training.yaml, logistic_training.yaml; scripts/2_lasso_in_distribution.sh",
    ),
    Convention(
        "norm of the gradient in training",
        "not limited",
        "clipped at 1",
        "As above.",
        "main.py",
    ),
    Convention(
        "loss of the training",
        "mean of F(y_k)",
        "mean of F(y_k)",
        "The paper says so; the answer of a method is x all the same, and we report F(x).",
        "main.py; the variable X of optimizees/lasso.py is the paper's y",
    ),
    Convention(
        "weights kept",
        "smallest mean of F(y_k) over 100 iterations of the validation problems",
        "smallest mean of log10 of the gap at x_k",
        "The mean of F looks at the first iterations, where F is large.",
        "main.py",
    ),
    Convention(
        "real data",
        "every feature has mean 0 and variance 1; a picture is divided by its norm",
        "the same",
        "The paper says 'normalized'; the script standardises. Of CIFAR-10 the paper says that "
        "each image was normalized, and no script has it.",
        "optimizees/logistic_real_data.py, normalize_data",
    ),
    Convention(
        "L2O-DM",
        "reads the gradient and x as they are; writes 0.1 ELU(·)",
        "reads log|g| and sign g, as Andrychowicz et al. do; writes 0.1 (·)",
        "It is the competitor that the paper measured.",
        "optimizers/coord_blackbox_lstm.py",
    ),
    Convention(
        "RNNprop",
        "a linear layer with ELU before the LSTM",
        "the same",
        "Lv et al. have it.",
        "optimizers/rnnprop.py",
    ),
    Convention(
        "Adam and AdamHD",
        "alpha 0.01, beta 0.1 and 0.1; alpha 0.1, beta 0.001 and 0.1, hyper 32 times 1e-7 (one dot "
        "product for a batch of 32), alpha >= 1e-8",
        "tuned over a grid that contains these values",
        "They are the baselines that the paper measured.",
        "scripts/2_lasso_in_distribution.sh; optimizers/adam_hd.py",
    ),
)
"""Left out, since no method has a size of a batch: the black-box methods get the gradient of the
batch's mean, and all instances of a batch share AdamHD's alpha. Left out, since they change nothing
that can be measured: the factor 0.9999 of every step, the second bias of PyTorch's LSTM, and a
validation set of 1024 problems (ours has 128)."""


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
