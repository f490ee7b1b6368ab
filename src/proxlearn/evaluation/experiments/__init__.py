"""Every figure and table of the paper that reports numbers, one small file each."""

from importlib import import_module

from proxlearn.errors import unknown
from proxlearn.evaluation.experiments.experiment import Experiment
from proxlearn.names import EXPERIMENTS

NAMES = EXPERIMENTS
"""In the paper's order. The file has the name with `_` for `-`."""


def get(name: str) -> Experiment:
    """The experiment of that name."""
    if name not in NAMES:
        raise unknown("experiment", name, NAMES)
    module = import_module(f"proxlearn.evaluation.experiments.{name.replace('-', '_')}")
    found: Experiment = module.EXPERIMENT
    return found


__all__ = ["NAMES", "Experiment", "get"]
