"""Learned optimizers for composite convex problems, each answer with a certificate.

The names below are imported when they are first used, so that importing proxlearn is quick. No
module has the name of a function (`solve` lives in `solver`): the two would hide each other.
"""

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proxlearn import families as families
    from proxlearn import imaging as imaging
    from proxlearn import operators as operators
    from proxlearn import optimizers as optimizers
    from proxlearn import penalties as penalties
    from proxlearn import rules as rules
    from proxlearn import scale as scale
    from proxlearn import smooth as smooth
    from proxlearn.checkpoint import Learned as Learned
    from proxlearn.checkpoint import load as load
    from proxlearn.comparison import Comparison as Comparison
    from proxlearn.comparison import compare as compare
    from proxlearn.comparison import optimum as optimum
    from proxlearn.constructors import elastic_net as elastic_net
    from proxlearn.constructors import group_lasso as group_lasso
    from proxlearn.constructors import huber as huber
    from proxlearn.constructors import lasso as lasso
    from proxlearn.constructors import logistic as logistic
    from proxlearn.constructors import multitask_lasso as multitask_lasso
    from proxlearn.constructors import nnls as nnls
    from proxlearn.constructors import poisson as poisson
    from proxlearn.constructors import prepare as prepare
    from proxlearn.constructors import simplex_ls as simplex_ls
    from proxlearn.constructors import softmax as softmax
    from proxlearn.constructors import sparse_group_lasso as sparse_group_lasso
    from proxlearn.errors import InputError as InputError
    from proxlearn.imaging import sparse_recovery as sparse_recovery
    from proxlearn.paths import path as path
    from proxlearn.problem import Problem as Problem
    from proxlearn.scheme import Coefficients as Coefficients
    from proxlearn.scheme import Scheme as Scheme
    from proxlearn.solution import Solution as Solution
    from proxlearn.solution import SolutionPath as SolutionPath
    from proxlearn.solution import Status as Status
    from proxlearn.solver import solve as solve
    from proxlearn.training import TrainConfig as TrainConfig
    from proxlearn.training import train as train

__version__ = "0.1.0"

_HOME = {
    "InputError": "errors",
    "Problem": "problem",
    "Comparison": "comparison",
    "compare": "comparison",
    "optimum": "comparison",
    "Coefficients": "scheme",
    "Scheme": "scheme",
    "SolutionPath": "solution",
    "path": "paths",
    "Solution": "solution",
    "Status": "solution",
    "solve": "solver",
    "Learned": "checkpoint",
    "load": "checkpoint",
    "TrainConfig": "training",
    "train": "training",
    "sparse_recovery": "imaging",
    **dict.fromkeys(["lasso", "elastic_net", "nnls", "simplex_ls", "huber"], "constructors"),
    **dict.fromkeys(["group_lasso", "sparse_group_lasso", "multitask_lasso"], "constructors"),
    **dict.fromkeys(["logistic", "poisson", "softmax", "prepare"], "constructors"),
}
_MODULES = {
    "datasets",
    "families",
    "imaging",
    "operators",
    "optimizers",
    "penalties",
    "rules",
    "scale",
    "smooth",
    "zoo",
}

__all__ = sorted([*_HOME, *_MODULES])


def __getattr__(name: str) -> Any:
    if name not in _MODULES and name not in _HOME:
        raise AttributeError(f"module 'proxlearn' has no attribute {name!r}")
    from proxlearn.errors import needing_torch

    with needing_torch(f"proxlearn.{name}"):
        if name in _MODULES:
            return import_module(f"proxlearn.{name}")
        value = getattr(import_module(f"proxlearn.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def _one_thread_after_fork() -> None:
    """Lets PyTorch compute with one thread in a forked process that inherits this package.

    Only the forking thread lives on in the child. PyTorch's pool of OpenMP threads is gone, and the
    first parallel operation would wait for it for ever.
    """
    torch = sys.modules.get("torch")
    if torch is not None and "proxlearn.problem" in sys.modules:
        torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_one_thread_after_fork)


def __dir__() -> list[str]:
    return __all__
