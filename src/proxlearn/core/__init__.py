"""The compiled solver, built for several instruction sets; the best for this processor is loaded.

``kernel`` is the extension module in use. The environment variable ``PROXLEARN_ISA`` (``v4``,
``v3``, ``v2`` or ``base``) chooses one by name, for tests and measurements.
"""

import os
from importlib import import_module
from types import ModuleType

NEEDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "v4": (("X86_V4",), ("AVX512_SKX",)),
    "v3": (("X86_V3",), ("AVX2", "FMA3", "F16C")),
    "v2": (("X86_V2",), ("SSSE3", "SSE41", "SSE42", "POPCNT")),
    "base": ((),),
}
"""For each build, best first: the processor features that it needs, in NumPy's names. NumPy 2.4 and
newer have one name for each level of x86-64, which older releases list feature by feature."""


def processor_features() -> dict[str, bool]:
    """NumPy's table of the features that this processor has."""
    try:
        module = import_module("numpy._core._multiarray_umath")
    except ModuleNotFoundError:  # NumPy 1.26
        module = import_module("numpy.core._multiarray_umath")
    features: dict[str, bool] = module.__cpu_features__
    return features


def supported() -> list[str]:
    """The builds that this processor can run, best first."""
    have = processor_features()
    return [
        build
        for build, choices in NEEDS.items()
        if any(all(have.get(name, False) for name in choice) for choice in choices)
    ]


def load() -> ModuleType:
    """Import the best module that is built and runs here, or the one that PROXLEARN_ISA names."""
    builds, wanted = supported(), os.environ.get("PROXLEARN_ISA", "")
    if wanted:
        if wanted not in builds:
            raise ImportError(
                f"PROXLEARN_ISA is {wanted!r}, which this processor cannot run; "
                f"choose one of {', '.join(builds)}, or unset it"
            )
        builds = [wanted]
    for build in builds:
        name = f"{__name__}._kernel_{build}"
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
