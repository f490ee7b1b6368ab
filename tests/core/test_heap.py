"""Solves after the first ask the system for no memory."""

import os
import platform
import subprocess
import sys

import pytest

FITS = """
import resource
import numpy as np
from proxlearn.sklearn import Lasso
rng = np.random.default_rng(0)
X = np.asfortranarray(rng.standard_normal((600, 250)))
y = X[:, :100] @ rng.standard_normal(100) + 10 * rng.standard_normal(600)
model = Lasso(alpha=0.1 * np.abs(X.T @ (y - y.mean())).max() / 600).fit(X, y)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    model.fit(X, y)
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 20)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's rule")
def test_memory_of_a_solve_is_kept_for_the_next():
    pytest.importorskip("sklearn")
    variables = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    command = [sys.executable, "-c", FITS]
    ran = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    assert float(ran.stdout) < 50, ran.stdout  # pages for each solve; 400 without the module
