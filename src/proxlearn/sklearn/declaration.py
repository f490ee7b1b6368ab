"""The decorator `estimator`: parameters are declared and documented once, and inherited.

scikit-learn reads the parameters of an estimator from the signature of `__init__`. Here that
follows from the annotated attributes of a class and of its bases, as for a dataclass. In its
docstring a class documents only what it adds or changes: an entry "tol : float" without the
default value. The decorator inserts the entries of the bases and the default values, so that
`help` and the built documentation show all of them. It completes the docstrings of methods from
those of the same name in the bases.
"""

import inspect
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        """Tell type checkers what they need to know; Python 3.10 does not have it."""
        return lambda decorator: decorator


Class = TypeVar("Class")
Entries = dict[str, str]

TITLE = re.compile(r"^(\w+)\n-{3,}\n", re.M)
DEFAULT = re.compile(r", (?:optional|default=.*)$")


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def estimator(cls: type[Class]) -> type[Class]:
    """Make `__init__` from the annotated attributes of a class, and complete its docstrings."""
    made: Any = dataclass(eq=False, repr=False, kw_only=True)(cls)
    bases = inspect.getmro(made)
    made.__doc__ = _completed([base.__doc__ for base in bases], made.__init__)
    for name, method in vars(made).items():
        if inspect.isfunction(method) and not name.startswith("_"):
            inherited = [getattr(vars(base).get(name), "__doc__", None) for base in bases]
            method.__doc__ = _completed(inherited, method)
    return made  # type: ignore[no-any-return]


def _completed(texts: list[str | None], call: Any) -> str:
    """The first docstring, with the entries that only the later ones have.

    `call` is the function whose parameters they describe; those that may be given by position come
    first.
    """
    found = [_sections(text or "") for text in texts]
    own, known = found[0], inspect.signature(call).parameters
    parameters = {name: "" for name, one in known.items() if one.kind is not one.KEYWORD_ONLY}
    attributes: Entries = {}
    for sections in found:
        for name, entry in _entries(sections.get("Parameters", "")).items():
            if name in known and not parameters.get(name):
                parameters[name] = _with_default(entry, known[name].default)
        for name, entry in _entries(sections.get("Attributes", "")).items():
            attributes.setdefault(name, entry)
    parts = [own.pop("", "")]
    own = {
        "Parameters": "\n".join(filter(None, parameters.values())),
        "Attributes": "\n".join(attributes.values()),
    } | {title: body for title, body in own.items() if title not in ("Parameters", "Attributes")}
    parts += [f"{title}\n{'-' * len(title)}\n{body}" for title, body in own.items() if body]
    return "\n\n".join(parts) + "\n"


def _sections(text: str) -> Entries:
    """The body of each section of a docstring by its title; the text before has the title ''."""
    first, *rest = TITLE.split(inspect.cleandoc(text))
    bodies = {"": first.strip()}
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        bodies[title] = body.strip()
    return bodies


def _entries(body: str) -> Entries:
    """The entries of a section, such as "tol : float" and the indented lines below, by name."""
    parts = re.split(r"\n(?=\S)", body) if body else []
    return {part.partition(" : ")[0].partition("\n")[0].lstrip("*"): part for part in parts}


def _with_default(entry: str, default: Any) -> str:
    """The entry with the default value in its first line."""
    first, newline, rest = entry.partition("\n")
    first = DEFAULT.sub("", first)
    if default is None:
        first += ", optional"
    elif default is not inspect.Parameter.empty:
        first += f', default="{default}"' if isinstance(default, str) else f", default={default!r}"
    return first + newline + rest
