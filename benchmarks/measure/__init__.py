"""The pieces of `benchmarks/everyday.py`: single problems, paths and cross-validations.

Importing it asks the numerical libraries for one thread, which they read when they are loaded.
"""

import os

for _name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA"):
    os.environ.setdefault(f"{_name}_NUM_THREADS", "1")
