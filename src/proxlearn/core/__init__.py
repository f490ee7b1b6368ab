"""The compiled solver, built for several instruction sets; the best for this processor is loaded.

``kernel`` is the solver's extension module in use; ``load("network")`` imports the one of learned
rules. The environment variable ``PROXLEARN_ISA`` (``v4``,
``v3``, ``v2`` or ``base``) chooses one by name, for tests and measurements.
"""

import os
from importlib import import_module
from types import ModuleType

from proxlearn.core.heap import keep_freed_memory
from proxlearn.core.processor import supported


def load(module: str = "kernel") -> ModuleType:
    """Import the best build of a module that runs here, or the one that PROXLEARN_ISA names."""
    builds, wanted = supported(), os.environ.get("PROXLEARN_ISA", "")
    if wanted:
        if wanted not in builds:
            raise ImportError(
                f"PROXLEARN_ISA is {wanted!r}, which this processor cannot run; "
                f"choose one of {', '.join(builds)}, or unset it"
            )
        builds = [wanted]
    for build in builds:
        name = f"{__name__}._{module}_{build}"
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
    raise ImportError(
        f"the compiled core of proxlearn is not built for {' or '.join(builds)}; "
        "in a checkout run 'make build', elsewhere install proxlearn again"
    )


kernel = load()
keep_freed_memory()
