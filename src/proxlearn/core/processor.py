"""Which builds of the compiled core a processor can run.

The build reads this file too, before the package exists, to build for this machine only.
"""

from importlib import import_module

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
