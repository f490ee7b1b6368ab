"""A forked process computes, whatever threads its parent has used."""

import os
import subprocess
import sys

import pytest

POOL = """
import multiprocessing, torch
import proxlearn as pl

torch.set_num_threads(2)
family = pl.families.GaussianLasso(m=100, n=800, nonzeros=20)

def work(seed):
    return pl.solve(family.sample(8, seed), "fista-restart", max_iter=20).objective.tolist()

expected = [work(seed) for seed in (1, 2)]
with multiprocessing.get_context("fork").Pool(2) as pool:
    found = pool.map_async(work, [1, 2]).get(30)
assert torch.get_num_threads() == 2, "the parent keeps its threads"
assert torch.allclose(torch.tensor(found), torch.tensor(expected), rtol=1e-6)
print("done")
"""

CORE = """
import multiprocessing
import joblib, numpy as np
import proxlearn as pl

rng = np.random.default_rng(0)
A, b = rng.normal(size=(40, 60)), rng.normal(size=(8, 40))

def work(lam):
    solution = pl.solve(pl.lasso(A[None], b, lam))
    assert solution.engine == "core" and solution.solved
    return solution.objective

expected = [work(lam) for lam in (0.5, 1.0)]
with multiprocessing.get_context("fork").Pool(2) as pool:
    np.testing.assert_array_equal(pool.map_async(work, [0.5, 1.0]).get(30), expected)
for backend in ("multiprocessing", "threading"):
    calls = (joblib.delayed(work)(lam) for lam in (0.5, 1.0))
    found = joblib.Parallel(2, backend=backend, timeout=30)(calls)
    np.testing.assert_array_equal(found, expected)
print("done")
"""

THREADS = """
import os, torch

def threads_of_a_child():
    if os.fork() == 0:
        os._exit(torch.get_num_threads())
    return os.waitstatus_to_exitcode(os.wait()[1])

torch.set_num_threads(2)
print(threads_of_a_child())
import proxlearn
print(threads_of_a_child())
proxlearn.Problem
print(threads_of_a_child())
"""


def run(code):
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")


@pytest.mark.slow
def test_a_pool_of_forked_processes_does_not_hang_after_two_threads():
    assert run(POOL) == "done"


def test_the_core_runs_in_forked_processes_and_threads_of_joblib_after_two_threads():
    assert run(CORE) == "done"


@pytest.mark.slow
def test_only_a_process_that_has_used_the_package_is_changed():
    assert run(THREADS).split() == ["2", "2", "1"]
