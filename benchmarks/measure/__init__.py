"""The pieces of `benchmarks/everyday.py`: single problems, paths and cross-validations.

Importing it asks the numerical libraries for one thread, which they read when they are loaded, and
keeps compiled functions of Numba out of the folders of the files that are raced.
"""

import os
import sys
import tempfile

for _name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA"):
    os.environ.setdefault(f"{_name}_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_CACHE_DIR", os.path.join(tempfile.gettempdir(), "everyday-numba"))
if "numba" in sys.modules:  # it has read its settings already
    sys.modules["numba"].config.reload_config()
