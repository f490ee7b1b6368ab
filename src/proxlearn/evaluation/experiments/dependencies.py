"""The code that a number depends on: a module, and all that it imports, directly or not.

Imports inside of functions count. Imports for the type checker, comments and docstrings do not. A
name that a package passes on leads to the module that defines it, so that a new rule, say, does
not change what FISTA depends on.
"""

import ast
import hashlib
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import proxlearn
from proxlearn.errors import InputError

ROOT = Path(proxlearn.__file__).parent
REGISTRIES = ("proxlearn.methods.optimizers", "proxlearn.zoo")
"""Packages that find an optimizer by its name. Their imports are not followed, since the key of a
part has the optimizer that was found, with its weights and the code of its class."""
COMPILED = (".pyx", ".pxi", ".h")
"""Sources that stand beside the Python files of the compiled core and its losses."""


@cache
def code_digest(*modules: str) -> str:
    """A hash of the code of these modules and of everything in the package that they import."""
    found = sorted(frozenset().union(*(dependencies(module) for module in modules)))
    code = hashlib.sha256()
    for module in found:
        code.update(f"{module} {_code(_file(module).read_text(encoding='utf-8'))}".encode())
    for folder in sorted({_file(module).parent for module in found if module.startswith("prox")}):
        for file in sorted(f for f in folder.iterdir() if f.suffix in COMPILED):
            code.update(file.read_bytes())
    return code.hexdigest()


@cache
def dependencies(module: str) -> frozenset[str]:
    """A module by its full name, and all modules of the package that it imports."""
    found, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [] if name in REGISTRIES else _imported(name)
    return frozenset(found)


def _imported(module: str) -> list[str]:
    """The modules of the package that a module imports itself."""
    found = []
    for node in _statements(_tree(_file(module))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [_home(node.module, alias.name) for alias in node.names]
    return [name for name in found if name.startswith("proxlearn.")]


@cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes, but for those below `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
            yield node
            yield from _statements(node)


def _home(module: str, name: str) -> str:
    """Where `from module import name` leads: a module, or the one that defines the name."""
    if not module.startswith("proxlearn"):
        return module
    if _path(f"{module}.{name}") is not None:
        return f"{module}.{name}"
    file = _file(module)
    if file.name == "__init__.py":
        for node in _tree(file).body:
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return _home(node.module, alias.name)
    return module


def _file(module: str) -> Path:
    """The file of a module, of the package or of a user."""
    own = _path(module)
    file = sys.modules[module].__file__ if own is None and module in sys.modules else own
    if file is None:
        raise InputError(
            f"the code of the module {module} is in no file, so that its results cannot be kept; "
            "write it to a file and import it from there"
        )
    return Path(file)


def _path(module: str) -> Path | None:
    """The file of a module of the package; None where it has none of that name."""
    first, *rest = module.split(".")
    path = ROOT.joinpath(*rest)
    places = [path.with_suffix(".py"), path / "__init__.py"] if rest else [path / "__init__.py"]
    return next((p for p in places if first == "proxlearn" and p.is_file()), None)


def _code(text: str) -> str:
    """The syntax tree of a file without its docstrings, as text."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [s for s in node.body if not _is_text(s)]
    return ast.dump(tree)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
