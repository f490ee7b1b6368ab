"""The rooms of the package: what may import what, lazy imports included."""

import ast
import re
from collections import Counter
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


SOURCES = sorted(
    file for pattern in ("*.py", "*.pyx", "*.pxi", "*.h") for file in PACKAGE.rglob(pattern)
)
MOST_LINES, MOST_LINES_OF_A_FUNCTION = 350, 60


def long_files(folder, most):
    """The files of the folder with more lines than `most`, and how many they have."""
    found = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in folder}
    return {file.relative_to(PACKAGE).as_posix(): n for file, n in found.items() if n > most}


def functions(text, cython):
    """Name and number of lines of every function, from its first line to its last.

    The docstring of a Python function does not count: parameter lists are long. The grammar of
    Cython is not Python's: there a function ends where a line is indented no more than the line
    that began it.
    """
    if not cython:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = node.body[0]
                said = first if ast.get_docstring(node) else None
                docstring = said.end_lineno - said.lineno + 1 if said else 0
                yield node.name, node.end_lineno - node.lineno + 1 - docstring
        return
    lines = text.splitlines()
    for start, line in enumerate(lines):
        begins = re.match(r"( *)(?:cdef|cpdef|def) .*?(\w+)\(", line)
        if not begins or re.match(r" *cdef (?:class|extern|enum|struct) ", line):
            continue
        inside = len(begins[1])
        header = start
        while header < len(lines) and not re.search(r":\s*(?:#.*)?$", lines[header]):
            header += 1
        if line.startswith(" " * inside + "cdef ") and header > start + 20:
            continue  # a declaration of a variable whose type has brackets
        last = header
        for place in range(header + 1, len(lines)):
            text_of = lines[place]
            if text_of.strip() and len(text_of) - len(text_of.lstrip()) <= inside:
                break
            last = place if text_of.strip() else last
        yield begins[2], last - start + 1


def test_the_count_of_lines_sees_python_and_cython():
    python = "def f(\n    a,\n):\n    'It says.'\n    return a\n\n\n"
    python += "class C:\n    def g(self):\n        pass\n"
    assert sorted(functions(python, False)) == [("f", 4), ("g", 2)]
    cython = (
        "cdef double f(double a,\n              double b) noexcept nogil:\n    return a\n\n\n"
        "cdef class C:\n    cdef double value(self):\n        # why\n        return 1\n\n"
        "    def g(self):\n        pass\n"
    )
    assert sorted(functions(cython, True)) == [("f", 3), ("g", 2), ("value", 3)]
    assert long_files([MODULES["checks",]], 10)
    assert {file.suffix for file in SOURCES} == {".py", ".pyx", ".pxi", ".h"}


def test_no_file_has_more_than_350_lines():
    assert not long_files(SOURCES, MOST_LINES)


def test_no_function_has_more_than_60_lines():
    long = {
        f"{file.relative_to(PACKAGE).as_posix()}: {name}": count
        for file in SOURCES
        if file.suffix != ".h"
        for name, count in functions(file.read_text(encoding="utf-8"), file.suffix != ".py")
        if count > MOST_LINES_OF_A_FUNCTION
    }
    assert not long


def test_no_two_modules_share_a_name():
    """A file is found by its name; packages count as well."""
    names = Counter(module[-1] for module in MODULES if module and module[-1] != "__main__")
    assert not [name for name, count in names.items() if count > 1]


def test_no_two_included_files_of_the_core_share_a_name():
    names = Counter(file.stem for file in SOURCES if file.suffix == ".pxi")
    assert not [name for name, count in names.items() if count > 1]
