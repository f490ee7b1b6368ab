"""Small problems in files, for the tests of many problems."""

import numpy as np


def lasso_arrays(count, seed):
    """Problems with matrices of their own."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((count, 8, 16)) / 8**0.5
    return {"A": A, "b": A[:, :, 0] + 0.1 * rng.standard_normal((count, 8))}


def content(folder):
    """Every file with its bytes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
