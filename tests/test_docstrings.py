"""What is public has numpydoc sections: parameters, what is returned, an example that runs."""

import ast
import dataclasses
import inspect
import re
from enum import Enum

import pytest

import proxlearn as pl
import proxlearn.imaging
import proxlearn.sklearn

PLACES = (pl, proxlearn.sklearn, proxlearn.imaging, pl.scale)
PUBLIC = {
    f"{place.__name__}.{name}": found
    for place in PLACES
    for name in getattr(place, "__all__", dir(place))
    if name[0] != "_"
    and (inspect.isclass(found := getattr(place, name)) or inspect.isfunction(found))
}


def sections(thing):
    return set(re.findall(r"^(\w+)\n-{3,}$", inspect.getdoc(thing) or "", re.M))


def fields_without_words(cls):
    """The fields of a dataclass that no string follows in its source."""
    (tree,) = ast.parse(inspect.cleandoc(inspect.getsource(cls))).body
    pairs = zip(tree.body, [*tree.body[1:], None], strict=True)
    return [
        node.target.id
        for node, after in pairs
        if isinstance(node, ast.AnnAssign)
        and not (isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant))
    ]


def missing(thing):
    """The sections that the docstring lacks."""
    if inspect.isclass(thing) and (inspect.isabstract(thing) or issubclass(thing, Exception)):
        return set()
    needed = {"Examples"}
    has_parameters = not (inspect.isclass(thing) and issubclass(thing, Enum))
    signature = inspect.signature(thing) if has_parameters else inspect.Signature()
    if signature.parameters:
        needed.add("Parameters")
    if inspect.isfunction(thing) and signature.return_annotation not in (None, "None"):
        needed.add("Returns")
    found = sections(thing)
    if dataclasses.is_dataclass(thing) and "Parameters" not in found:
        needed -= set() if fields_without_words(thing) else {"Parameters"}
    return needed - found


def test_lacking_sections_are_seen():
    def bare(x):
        """It has words, and no sections."""
        return x

    assert missing(bare) == {"Parameters", "Returns", "Examples"}
    assert not fields_without_words(pl.Solution)
    assert len(PUBLIC) > 70


@pytest.mark.parametrize("name", PUBLIC)
def test_the_docstring_has_every_section(name):
    assert not missing(PUBLIC[name])
