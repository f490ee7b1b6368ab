"""Which compiled loops are there: Numba keeps them on disk, and making one takes half a minute.

So that nobody waits for it, a loop that is missing is made by a process in the background, once on
a machine, while PyTorch does the work. ``python -m proxlearn.compiled`` makes them all at once.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import llvmlite.binding
import numba

from proxlearn import attempts, newton, polish, safeguard
from proxlearn.files import replacing
from proxlearn.rules import compact
from proxlearn.shards.claims import claimed

SOURCES = (
    *("data.py", "homotopy.py", "kernel.py", "lanczos.py", "losses.py", "maths.py", "network.py"),
    *("newton.py", "polish.py", "rule.py"),
)
CONSTANTS = (
    *(attempts.FIRST_WAIT, attempts.FREE, attempts.OVERDRAFT, attempts.SETTLED, attempts.SHARE),
    *(newton.DROPS, newton.HALVINGS, newton.STEPS, polish.ROUNDS),
    *(safeguard.GROWTH, safeguard.RATE, safeguard.SLOWEST, safeguard.STRETCH, safeguard.WINDOW),
    *(compact.COORDINATE, compact.INSTANCE, compact.LEAST_LOG_P),
)
"""Numbers of the reference that the loop has in it."""
VARIANTS = ("dense-float32", "dense-float64", "gram", "sparse")
STALE = 60.0
"""Seconds after which a process that makes a loop and gives no sign is taken for dead."""
QUIET = "PROXLEARN_COMPILE"
"""Set to 'never': nothing is compiled in the background."""


def _digest() -> str:
    """What the compiled code depends on: sources, constants, compiler, processor."""
    processor = llvmlite.binding.get_host_cpu_name()
    found = hashlib.sha256(f"{numba.__version__} {processor} {CONSTANTS}".encode())
    for name in SOURCES:
        found.update(Path(__file__).with_name(name).read_bytes())
    return found.hexdigest()[:16]


DIGEST = _digest()
_begun: set[str] = set()
_loaded: set[str] = set()


def _stamp(variant: str) -> Path:
    from proxlearn.compiled.engine import solve_some

    return Path(solve_some.stats.cache_path) / f"{DIGEST}-{variant}.ready"


def ready(variant: str) -> bool:
    """True where a loop is loaded, or on disk."""
    return variant in _loaded or _stamp(variant).exists()


def loaded(variant: str) -> bool:
    """True where this process has used a loop before."""
    return variant in _loaded


def used(variant: str) -> None:
    """Remember that a loop is there."""
    if variant not in _loaded:
        _loaded.add(variant)
        try:
            with replacing(_stamp(variant)) as temporary:
                temporary.touch()
        except OSError:
            return  # nowhere to keep it: every process makes its own


def make_in_background(variant: str) -> None:
    """Start a process that makes a loop, unless one was started or that was forbidden."""
    if variant in _begun or os.environ.get(QUIET) == "never":
        return
    _begun.add(variant)
    subprocess.Popen(
        [sys.executable, "-m", "proxlearn.compiled", variant],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", QUIET: "never"},
    )


def make(variant: str) -> bool:
    """Make a loop by solving a small problem; False where another process is at it."""
    import scipy.sparse
    import torch

    import proxlearn as pl

    generator = torch.Generator().manual_seed(0)
    dtype = torch.float32 if variant == "dense-float32" else torch.float64
    A = torch.randn(3, 6, 8, generator=generator, dtype=dtype)
    b = torch.randn(3, 6, generator=generator, dtype=dtype)
    matrix = {"gram": A[0], "sparse": scipy.sparse.csr_array(A[0].double())}.get(variant, A)
    stamp = _stamp(variant)
    with claimed(stamp.with_suffix(".claim"), STALE) as mine:
        if mine and not stamp.exists():
            pl.solve(pl.lasso(matrix, b, 0.1), "fista-restart", engine="compiled")
        return mine
