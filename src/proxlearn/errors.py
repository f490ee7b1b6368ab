"""The one exception that means "your input", as opposed to a defect of ours."""

from collections.abc import Iterator
from contextlib import contextmanager


class InputError(ValueError):
    """Bad input. The message says what was given, what was expected and what to do, in one line."""

    def __init__(self, message: object) -> None:
        # What was given may be an array or a file name, whose text has several lines.
        super().__init__(" ".join(line.strip() for line in str(message).splitlines()))


def unknown(kind: str, name: object, known: object) -> InputError:
    """An `InputError` for a name that is not in a registry, listing the names that are."""
    names = ", ".join(sorted(str(k) for k in known))  # type: ignore[attr-defined]
    return InputError(f"unknown {kind} {name!r}; known are: {names}")


TORCH_MISSING = (
    "{} needs PyTorch, which is not installed; install the extra 'learn', in a checkout with: "
    "pip install '.[learn]'"
)


@contextmanager
def needing_torch(what: str) -> Iterator[None]:
    """Imports that need PyTorch: where it is not installed, one line says how to get it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise InputError(TORCH_MISSING.format(what)) from None


@contextmanager
def needing_dask(what: str) -> Iterator[None]:
    """Imports that need the extra `scale`: where it is not installed, one line says so."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("dask", "distributed", "zarr", "threadpoolctl"):
            raise
        raise InputError(
            f"{what} needs {error.name}, which is not installed; install the extra 'scale' (Python "
            "3.11 or newer), in a checkout with: pip install '.[scale]'"
        ) from None
