"""How to train."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from proxlearn.checks import check_choice, check_seed
from proxlearn.errors import InputError
from proxlearn.methods.checkpoint import build
from proxlearn.methods.optimizers import KINDS
from proxlearn.methods.rules import Learnable
from proxlearn.methods.rules.recurrent import VARIANTS
from proxlearn.names import LOSSES, SCHEDULES, SCORES


@dataclass(frozen=True)
class TrainConfig:
    """How to train.

    The defaults are what we advise for a rule of one's own: the compact rule, with the settings
    that served it best on LASSO (docs/compact.md has the trials). `paper` has the paper's settings.

    Examples
    --------
    >>> config = TrainConfig(steps=300)
    >>> config.rule, config.loss, config.schedule, config.horizon
    ('compact', 'log-mean-gap', 'cosine', 40)
    """

    rule: str = "compact"
    """'compact'; what the paper's LSTM learns (p, a, pa, pba, ...); 'banded' or 'splitting', for
    pictures behind operators; or a competitor: 'l2o-dm', 'rnnprop', 'step-lista', 'ada-lista'."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Further settings of the rule, such as ``{"activation": "softplus"}``."""
    steps: int = 500
    """Minibatches."""
    batch: int = 64
    """Problems in a minibatch, on each rank."""
    horizon: int = 40
    """Iterations on each minibatch: as many as will be wanted of the rule."""
    unroll: int = 20
    """Iterations in a segment: backpropagation and an Adam step after each."""
    lr: float = 1e-2
    """Learning rate of Adam."""
    schedule: str = "cosine"
    """'constant', or 'cosine' from lr to 0 over the steps."""
    loss: str = "log-mean-gap"
    """'objective': the mean of F(y_k), the paper's. 'log-gap': the mean of
    log((F(y_k) - F*)/F* + floor), which weighs every decade of accuracy alike.
    'log-mean-gap': the logarithm after the mean over the problems, so that the slowest count.
    'log-both-gaps': the mean of 'log-gap' and of the same with the certified gap, which is what
    stops a solve; it lags behind where there are many coordinates and no columns to pick.
    'log-certified-gap': the mean of log of the certified gap at x_k, for methods that evaluate f
    elsewhere. It needs no F*.
    'distance': |x_K - x*|^2 / |x*|^2 at the last iteration K of the segment, a supervised loss for
    the unrolled methods, with x* from `reference` iterations of FISTA with restart."""
    floor: float = 1e-6
    """Relative accuracy below which the log-gap loss sees no difference."""
    reference: int = 400
    """Iterations of FISTA with restart that the losses with a gap take F* from."""
    warmup: int = 10
    """Steps over which the horizon grows from one segment to its full length."""
    layerwise: bool = False
    """True: one segment a step, whose length grows from one iteration to the horizon over the
    first three quarters of the steps. For the unrolled methods, whose deeper layers learn nothing
    while the first ones do not work."""
    clip: float | None = 1.0
    """Largest norm of the gradient; None for no limit."""
    validation: int = 64
    """Problems in a batch of the fixed validation set."""
    validation_batches: int = 1
    """Batches in that set: several for a family whose batches differ in kind or size."""
    score: str = "gap"
    """What decides which weights are best: 'gap', the mean over the iterations of log10 of the
    relative gap at x. 'last-gap': the same at the last iteration alone, for the unrolled methods.
    'certified-gap': the same as 'gap' with the largest lower bound so far in place of F*, which is
    what stops a solve. 'objective': as in the paper's code, the mean of F at y."""
    validate_every: int = 10
    """Steps between validations; the best weights are kept."""
    stop_after: int = 0
    """Validations in a row without a better score after which the training ends; 0: none."""
    seed: int = 0
    """Seed of the initial weights and of all problems."""

    def __post_init__(self) -> None:
        for name in (
            "steps",
            "batch",
            "horizon",
            "unroll",
            "validation",
            "validate_every",
            "validation_batches",
        ):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise InputError(f"{name} is {value!r}; expected a whole number, at least 1")
        check_seed(self.seed)
        if type(self.stop_after) is not int or self.stop_after < 0:
            raise InputError(
                f"stop_after is {self.stop_after!r}; expected a whole number, at least 0"
            )
        if self.horizon % self.unroll:
            raise InputError(
                f"horizon {self.horizon} is not a multiple of unroll {self.unroll}; make it one"
            )
        for name, known in [("loss", LOSSES), ("schedule", SCHEDULES), ("score", SCORES)]:
            check_choice(name, getattr(self, name), known)
        if self.layerwise and self.unroll != self.horizon:
            raise InputError(
                f"a layerwise training has one segment, and unroll {self.unroll} is not horizon "
                f"{self.horizon}; make them equal"
            )
        for name in ("lr", "floor"):
            value = getattr(self, name)
            if isinstance(value, str) or not 0 < value < float("inf"):
                raise InputError(f"{name} is {value!r}; expected a number > 0")
        rules = [*VARIANTS, *(kind for kind in KINDS if kind != "recurrent")]
        check_choice("rule", self.rule, rules)

    @classmethod
    def paper(cls, **changes: Any) -> "TrainConfig":
        """The paper's settings, with these changes.

        >>> config = TrainConfig.paper(rule="pba")
        >>> config.rule, config.loss, config.schedule, config.horizon
        ('pba', 'objective', 'constant', 100)
        """
        preset = {"rule": "pa", "loss": "objective", "schedule": "constant"}
        return cls(**{**preset, "horizon": 100, "warmup": 0, **changes})

    @classmethod
    def pictures(cls, **changes: Any) -> "TrainConfig":
        """The settings for pictures behind operators, with these changes.

        A minibatch has few problems, as each has thousands of coordinates; the loss counts the
        certified gap as much as the objective.

        >>> config = TrainConfig.pictures(steps=100)
        >>> config.rule, config.loss, config.horizon
        ('banded', 'log-both-gaps', 100)
        """
        preset: dict[str, Any] = {
            "rule": "banded",
            "loss": "log-both-gaps",
            "steps": 180,
            "batch": 5,
            "horizon": 100,
            "warmup": 80,
            "lr": 5e-3,
            "reference": 120,
            "floor": 1e-5,
            "validation": 4,
            "validation_batches": 4,
            "validate_every": 30,
        }
        return cls(**{**preset, **changes})

    def new_rule(self) -> Learnable:
        """The rule with fresh weights drawn from the seed."""
        if self.rule in VARIANTS:
            settings = {"learns": self.rule, **self.settings}
            description = {"kind": "recurrent", "settings": settings}
        else:
            description = {"kind": self.rule, "settings": self.settings}
        return build(description, torch.Generator().manual_seed(self.seed))
