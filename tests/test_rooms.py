"""The rooms of the package: what may import what, lazy imports included."""

import ast
from pathlib import Path

import pytest

import proxlearn

PACKAGE = Path(proxlearn.__file__).parent
ROOMS = (
    "foundation",  # errors, names, checks, files, watch, and the list of shipped weights
    "core",
    "problems",
    "methods",
    "solving",
    "sklearn",
    "imaging",
    "scale",
    "training",
    "evaluation",
    "zoo",
    "cli",
)
"""A room may import itself and the rooms before it."""
NOT_EACH_OTHER = {("scale", "sklearn"), ("scale", "imaging"), ("imaging", "sklearn")}


def room(module):
    """The room of a module, given by its path of names below proxlearn."""
    if module == ("zoo",) or module[0] not in ROOMS:
        return "cli" if module == ("__main__",) else "foundation"
    return module[0]


def module_of(file):
    names = file.relative_to(PACKAGE).with_suffix("").parts
    return names[:-1] if names[-1] == "__init__" else names


MODULES = {module_of(file): file for file in PACKAGE.rglob("*.py")}


def imported(file):
    """The modules of the package that a file imports, except those for the type checker alone."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for_types = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for child in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            first, *rest = name.split(".")
            if first != "proxlearn":
                continue
            found = tuple(rest)
            yield found if found in MODULES else found[:-1]


def test_the_graph_sees_eager_lazy_and_package_imports():
    assert ("methods", "optimizers") in set(imported(MODULES["methods", "checkpoint"]))
    assert ("methods", "checkpoint") in set(imported(MODULES["methods", "optimizers"]))
    assert {room(module) for module in MODULES if module} == set(ROOMS)


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_imports_only_itself_and_the_rooms_before_it(name):
    allowed = {other for other in ROOMS[: ROOMS.index(name) + 1]}
    allowed -= {other for this, other in NOT_EACH_OTHER if this == name}
    wrong = [
        f"{'.'.join(module)} imports {'.'.join(target)}"
        for module, file in MODULES.items()
        if module and room(module) == name
        for target in imported(file)
        if target and room(target) not in allowed
    ]
    assert not wrong
