"""scikit-learn's own test modules, with proxlearn's classes in place of scikit-learn's.

A test module of the installed scikit-learn is executed a second time under another name. While it
is executed, the names below stand for proxlearn's classes in scikit-learn's packages, so that its
imports and its `parametrize` decorators take those.
"""

import importlib.util
import sys
from collections.abc import Collection
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest
import sklearn.linear_model

import proxlearn.sklearn as ours

NAMES = tuple(name for name in ours.__all__ if hasattr(sklearn.linear_model, name))
"""What scikit-learn's `linear_model` and `proxlearn.sklearn` both have."""


@contextmanager
def proxlearn_in_place():
    """While this is entered, `sklearn.linear_model` holds proxlearn's classes."""
    kept = {name: getattr(sklearn.linear_model, name) for name in NAMES}
    try:
        for name in NAMES:
            setattr(sklearn.linear_model, name, getattr(ours, name))
        yield
    finally:
        for name, value in kept.items():
            setattr(sklearn.linear_model, name, value)


def load(name: str) -> ModuleType:
    """The module `sklearn.linear_model.tests.NAME` as a copy that tests proxlearn."""
    spec = importlib.util.find_spec(f"sklearn.linear_model.tests.{name}")
    if spec is None or spec.origin is None:
        pytest.skip(f"this scikit-learn has no {name}", allow_module_level=True)
    own_name = f"dropin_copy_of_{name}"
    copy = importlib.util.spec_from_file_location(own_name, spec.origin)
    module = importlib.util.module_from_spec(copy)
    sys.modules[own_name] = module  # joblib's workers and pickle look for it here
    with proxlearn_in_place():
        copy.loader.exec_module(module)
    return module


def collected(module: ModuleType) -> dict[str, Any]:
    """The tests of a copy and its marks, to be put into the module that pytest collects."""
    held = {name: value for name, value in vars(module).items() if name.startswith("test_")}
    for test in held.values():
        for mark in getattr(test, "pytestmark", []):
            list_values(mark)
    marks = getattr(module, "pytestmark", [])
    held["pytestmark"] = list(marks) if isinstance(marks, list) else [marks]
    return held


def list_values(mark: pytest.Mark) -> None:
    """Turn the generator that a `parametrize` was given into a list, which pytest asks for."""
    if mark.name == "parametrize" and not isinstance(mark.args[1], Collection):
        names, values, *rest = mark.args
        object.__setattr__(mark, "args", (names, list(values), *rest))
