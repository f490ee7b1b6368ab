"""Learned optimizers for composite convex problems, each answer with a certificate.

The names below are imported when they are first used, so that importing proxlearn is quick. No
package has the name of a function (`solve` lives in `solving`): the two would hide each other.
"""

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proxlearn import imaging as imaging
    from proxlearn import scale as scale
    from proxlearn.errors import InputError as InputError
    from proxlearn.evaluation.comparison import Comparison as Comparison
    from proxlearn.evaluation.comparison import compare as compare
    from proxlearn.evaluation.comparison import optimum as optimum
    from proxlearn.imaging import sparse_recovery as sparse_recovery
    from proxlearn.methods import optimizers as optimizers
    from proxlearn.methods import rules as rules
    from proxlearn.methods.checkpoint import Learned as Learned
    from proxlearn.methods.checkpoint import load as load
    from proxlearn.methods.scheme import Coefficients as Coefficients
    from proxlearn.methods.scheme import Scheme as Scheme
    from proxlearn.problems import operators as operators
    from proxlearn.problems import penalties as penalties
    from proxlearn.problems import smooth as smooth
    from proxlearn.problems.constructors import elastic_net as elastic_net
    from proxlearn.problems.constructors import group_lasso as group_lasso
    from proxlearn.problems.constructors import huber as huber
    from proxlearn.problems.constructors import lasso as lasso
    from proxlearn.problems.constructors import logistic as logistic
    from proxlearn.problems.constructors import multitask_lasso as multitask_lasso
    from proxlearn.problems.constructors import nnls as nnls
    from proxlearn.problems.constructors import poisson as poisson
    from proxlearn.problems.constructors import prepare as prepare
    from proxlearn.problems.constructors import simplex_ls as simplex_ls
    from proxlearn.problems.constructors import softmax as softmax
    from proxlearn.problems.constructors import sparse_group_lasso as sparse_group_lasso
    from proxlearn.problems.problem import Problem as Problem
    from proxlearn.solving.paths import path as path
    from proxlearn.solving.solution import Solution as Solution
    from proxlearn.solving.solution import SolutionPath as SolutionPath
    from proxlearn.solving.solution import Status as Status
    from proxlearn.solving.solver import solve as solve
    from proxlearn.training import TrainConfig as TrainConfig
    from proxlearn.training import families as families
    from proxlearn.training import train as train

__version__ = "0.1.0"

_CONSTRUCTORS = (
    "elastic_net",
    "group_lasso",
    "huber",
    "lasso",
    "logistic",
    "multitask_lasso",
    "nnls",
    "poisson",
    "prepare",
    "simplex_ls",
    "softmax",
    "sparse_group_lasso",
)
_HOME = {
    **dict.fromkeys(_CONSTRUCTORS, "problems.constructors"),
    "InputError": "errors",
    "Problem": "problems.problem",
    "Comparison": "evaluation.comparison",
    "compare": "evaluation.comparison",
    "optimum": "evaluation.comparison",
    "Coefficients": "methods.scheme",
    "Scheme": "methods.scheme",
    "SolutionPath": "solving.solution",
    "path": "solving.paths",
    "Solution": "solving.solution",
    "Status": "solving.solution",
    "solve": "solving.solver",
    "Learned": "methods.checkpoint",
    "load": "methods.checkpoint",
    "TrainConfig": "training",
    "train": "training",
    "sparse_recovery": "imaging",
}
_MODULES = {
    "datasets": "problems.datasets",
    "families": "training.families",
    "imaging": "imaging",
    "operators": "problems.operators",
    "optimizers": "methods.optimizers",
    "penalties": "problems.penalties",
    "rules": "methods.rules",
    "scale": "scale",
    "smooth": "problems.smooth",
    "zoo": "zoo",
}

__all__ = sorted([*_HOME, *_MODULES])


def __getattr__(name: str) -> Any:
    if name not in _MODULES and name not in _HOME:
        raise AttributeError(f"module 'proxlearn' has no attribute {name!r}")
    from proxlearn.errors import needing_torch

    with needing_torch(f"proxlearn.{name}"):
        if name in _MODULES:
            return import_module(f"proxlearn.{_MODULES[name]}")
        value = getattr(import_module(f"proxlearn.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def _one_thread_after_fork() -> None:
    """Lets PyTorch compute with one thread in a forked process that inherits this package.

    Only the forking thread lives on in the child. PyTorch's pool of OpenMP threads is gone, and the
    first parallel operation would wait for it for ever.
    """
    torch = sys.modules.get("torch")
    if torch is not None and "proxlearn.problems.problem" in sys.modules:
        torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_one_thread_after_fork)


def __dir__() -> list[str]:
    return __all__
