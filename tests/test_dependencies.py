"""The key of a part of an experiment has all the code that its numbers depend on."""

import sys
from pathlib import Path

import pytest
import torch

import proxlearn as pl
from proxlearn.errors import InputError
from proxlearn.evaluation.comparison import optimum
from proxlearn.evaluation.experiments import dependencies as code
from proxlearn.evaluation.experiments.cache import RUN
from proxlearn.evaluation.experiments.record import record_gap
from proxlearn.methods.optimizers.optimizer import rule_of
from proxlearn.training.families import GaussianLasso

PACKAGE = Path(pl.__file__).parent


def files_of(modules):
    """The files of everything that these modules depend on."""
    found = set().union(*(code.dependencies(module) for module in modules))
    return {code._file(module) for module in found}


@pytest.mark.parametrize("name", ["fista-restart", "adam", "lasso", "lasso-pa", "optimum"])
def test_every_function_that_a_part_calls_is_in_a_file_of_its_key(name):
    """Functions that run are seen by a profiler. The key has the optimizer by its weights."""
    family = GaussianLasso(m=10, n=20, nonzeros=2)
    optimizer = None if name == "optimum" else pl.optimizers.get(name)
    modules = [*RUN, type(family).__module__]
    modules += [] if optimizer is None else [type(rule_of(optimizer)).__module__]
    called = set()

    def profile(frame, event, argument):
        file = Path(frame.f_code.co_filename)
        if event == "call" and PACKAGE in file.parents and frame.f_code.co_name != "<module>":
            called.add(file)

    sys.setprofile(profile)
    try:
        problem = family.build(*(t[None] for t in family.draw(torch.Generator().manual_seed(0))))
        optimum(problem, 1e-10, 5000) if optimizer is None else record_gap(problem, optimizer, 5)
    finally:
        sys.setprofile(None)
    called.discard(PACKAGE / "__init__.py")  # it only loads public names when they are used
    assert PACKAGE / "problems" / "problem.py" in called
    assert called <= files_of(modules)


def test_a_rule_is_in_the_key_of_its_own_runs_only():
    recurrent = "proxlearn.methods.rules.recurrent"
    assert recurrent not in set().union(*map(code.dependencies, RUN))
    assert "proxlearn.methods.rules.lstm" in code.dependencies(recurrent)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A small package in place of ours: `a` reaches `b` by a lazy import, `b` reaches `c`."""
    monkeypatch.setattr(code, "ROOT", tmp_path)
    texts = {
        "a.py": "def f():\n    from proxlearn.room import g\n    return g()\n",
        "room/__init__.py": "from proxlearn.room.b import g\nfrom proxlearn.room.other import h\n",
        "room/b.py": "import proxlearn.c\ng = proxlearn.c.value\n",
        "room/other.py": "def h():\n    return 1\n",
        "room/kernel.pyx": "cdef int one = 1\n",
        "c.py": "def value():\n    return 1\n",
        "__init__.py": "",
    }
    (tmp_path / "room").mkdir()
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    yield tmp_path
    forget()


def forget():
    for function in (code.code_digest, code.dependencies, code._tree):
        function.cache_clear()


def digest():
    forget()
    return code.code_digest("proxlearn.a")


def test_imports_are_followed_into_functions_and_through_packages(package):
    forget()
    names = {"proxlearn.a", "proxlearn.room.b", "proxlearn.c"}
    assert code.dependencies("proxlearn.a") == names


@pytest.mark.parametrize(
    ("file", "text", "changes"),
    [
        ("c.py", "def value():\n    return 2\n", True),
        ("c.py", 'def value():\n    """Says."""\n    return 1  # one\n', False),
        ("room/kernel.pyx", "cdef int one = 2\n", True),
        ("room/other.py", "def h():\n    return 2\n", False),
    ],
)
def test_what_changes_the_key(package, file, text, changes):
    before = digest()
    (package / file).write_text(text, encoding="utf-8")
    assert (digest() != before) is changes


def test_code_without_a_file_has_no_key():
    module = type(sys)("typed_in")
    sys.modules["typed_in"] = module
    module.__file__ = None
    try:
        with pytest.raises(InputError, match="the code of the module typed_in is in no file"):
            code.code_digest("typed_in")
    finally:
        del sys.modules["typed_in"]
