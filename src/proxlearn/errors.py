"""The one exception that means "your input", as opposed to a defect of ours."""


class InputError(ValueError):
    """Bad input. The message says what was given, what was expected and what to do, in one line."""


def unknown(kind: str, name: object, known: object) -> InputError:
    """An `InputError` for a name that is not in a registry, listing the names that are."""
    names = ", ".join(sorted(str(k) for k in known))  # type: ignore[attr-defined]
    return InputError(f"unknown {kind} {name!r}; known are: {names}")
