"""The names that the command line knows, in a module that does not import PyTorch.

A typing error is found here, before anything heavy is imported. The tests hold each tuple equal to
the registry that has the objects: `tests/test_startup.py`.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A kind of problem by name: its constructor's own options, needed and possible."""

    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()


KINDS = {
    "lasso": Kind(needs=("lam",), takes=("weights",)),
    "elastic-net": Kind(needs=("lam", "lam2"), takes=("weights",)),
    "nnls": Kind(),
    "simplex-ls": Kind(takes=("radius",)),
    "group-lasso": Kind(needs=("lam", "groups"), takes=("weights",)),
    "multitask-lasso": Kind(needs=("lam",), takes=("weights",)),
    "sparse-group-lasso": Kind(
        needs=("lam", "groups"), takes=("l1_ratio", "weights", "l1_weights")
    ),
    "huber": Kind(needs=("lam", "delta"), takes=("weights",)),
    "logistic": Kind(needs=("lam",), takes=("weights",)),
    "poisson": Kind(needs=("lam",), takes=("weights",)),
    "softmax": Kind(needs=("lam",), takes=("classes", "weights")),
}
"""Kinds of problems: `proxlearn.problems.constructors` has a function for each."""

FILES = frozenset({"weights", "groups", "l1_weights"})
"""Options of the kinds that are arrays, which the command line reads from files."""

DTYPES = ("float32", "float64")

DEVICES = ("cpu", "cuda", "mps", "xpu", "hpu", "mtia", "xla")
"""Types of devices that PyTorch may be able to compute on; whether it can is tried later."""

PICTURES = ("deblur", "mri", "inpaint", "tomography", "imaging", "invertible")
"""Families of pictures, which can be read from a folder."""

FAMILIES = (
    "gaussian-lasso",
    "gaussian-elastic-net",
    "gaussian-group-lasso",
    "gaussian-nnls",
    "gaussian-box",
    "gaussian-simplex",
    "gaussian-logistic",
    "gaussian-softmax",
    "gaussian-least-squares",
    "gaussian-ridge-logistic",
    "weighted-median",
    "wide-lasso",
    "wide-logistic",
    "wide-softmax",
    "general",
    *PICTURES,
)
"""Families of problems: "gaussian-lasso" is the class `GaussianLasso` in `training.families`."""

WAVELETS = ("haar", *(f"db{p}" for p in range(1, 9)))
"""Haar, which is db1, and Daubechies' wavelets: `proxlearn.imaging.filters`."""

PICTURE_ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")
"""Kinds of files that are taken for pictures."""

OPTIMIZERS = (
    "ista",
    "fista",
    "fista-restart",
    "nesterov",
    "pgd",
    "ppa",
    "subgradient",
    "adam",
    "adamhd",
)
"""Methods without weights: `proxlearn.methods.optimizers.NAMES`. The zoo has those with weights."""

AUTO = "auto"
"""`solve` chooses the optimizer."""

ENGINES = (AUTO, "core", "torch")
"""What can solve: the compiled core, the loop in PyTorch, or the first that covers a problem."""

LBFGS = "lbfgs"
"""SciPy's method, which takes part in comparisons and is no optimizer of the package."""

TUNABLE = ("adam", "adamhd")
"""Optimizers whose hyper-parameters can be tuned: `proxlearn.evaluation.tuning.GRIDS`."""

RULES = (
    "p",
    "a",
    "pa",
    "pb1",
    "pba",
    "pba1",
    "pba2",
    "pba12",
    "compact",
    "banded",
    "splitting",
    "step-lista",
    "ada-lista",
    "l2o-dm",
    "rnnprop",
)
"""Rules that can be trained: the variants of the paper's LSTM, and the kinds of other rules."""

LOSSES = ("objective", "log-gap", "log-mean-gap", "log-both-gaps", "log-certified-gap", "distance")
"""Losses of the training."""

SCORES = ("gap", "last-gap", "certified-gap", "objective")
"""What the validation of a training looks at."""

SCHEDULES = ("constant", "cosine")
"""Learning rates over the training."""

EXPERIMENTS = (
    "ablation",
    "bias-norms",
    "lasso",
    "lasso-bsds",
    "logistic",
    "ionosphere",
    "spambase",
    "runtime",
    "lasso-large",
    "cifar10",
    "cross",
    "photographs",
)
"""Experiments in the paper's order, then one that is not in it; each has a file of
`proxlearn.evaluation.experiments`."""

TRAINED = ("published-", "corrected-")
"""How the names of methods begin that only the experiments know, which check the rest of them."""
RESCALED = "-rescaled"
"""Ends the names of rules with p in units of 1/||A|| that were trained in units of 1/L."""
SCALES = ("quick", "paper")
"""Sizes at which an experiment can be run."""
