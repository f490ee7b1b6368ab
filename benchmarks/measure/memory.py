"""Peak memory beyond A: one LASSO in a process of its own, for dense float32 and for sparse A.

The kernel's high-water mark of the process is reset before the solver is called. What the solver's
package takes to import is not counted, and neither is A, which the process makes itself.
"""

import json
import subprocess
import sys

LIMIT = 900
"""Seconds for one solver."""
SCRIPT = """
import json, sys, time, warnings
warnings.filterwarnings("ignore")
import numpy as np, scipy.sparse as sp

def status(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name + ":"))

def dense(m, n, order):
    draw, A = np.random.default_rng(0), np.empty((m, n), np.float32, order=order)
    rows = A if order == "C" else A.T
    for row in rows:
        draw.standard_normal(dtype=np.float32, out=row)
    return A

def sparse(m, n, each):
    # Each column has one entry in each of `each` blocks of rows, so that indices are sorted.
    draw, block = np.random.default_rng(0), m // each
    indices = np.empty((n, each), np.int32)
    for j in range(n):
        indices[j] = draw.integers(0, block, each, dtype=np.int32) + np.arange(each) * block
    data = draw.standard_normal(n * each)
    return sp.csc_matrix((data, indices.ravel(), np.arange(0, n * each + 1, each)), (m, n))

kind, solver, sizes = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
A = sparse(*sizes) if kind == "sparse" else dense(*sizes, kind)
size = A.data.nbytes + A.indices.nbytes + A.indptr.nbytes if kind == "sparse" else A.nbytes
draw = np.random.default_rng(1)
b = (A[:, :20] @ draw.standard_normal(20) + draw.standard_normal(A.shape[0])).astype(A.dtype)
lam = 0.1 * float(np.abs(A.T @ b).max())
alpha = lam / len(b)
if solver == "proxlearn":
    import proxlearn as pl
    fit = lambda A, b: pl.solve(pl.lasso(A, b, lam))
elif solver == "scikit-learn":
    from sklearn.linear_model import Lasso
    fit = Lasso(alpha=alpha, fit_intercept=False, copy_X=False, tol=1e-6).fit
elif solver == "celer":
    from celer import Lasso
    fit = Lasso(alpha=alpha, fit_intercept=False, tol=1e-6).fit
else:
    from skglm import Lasso
    fit = Lasso(alpha=alpha, fit_intercept=False, tol=1e-6).fit
small = (slice(0, 40), slice(0, 30))  # imports and compiles what is loaded when first used
fit(A[small].copy(order="F") if kind != "sparse" else A[small].tocsc(), b[:40])
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before, began = status("VmRSS"), time.perf_counter()
fit(A, b)
seconds, peak = time.perf_counter() - began, status("VmHWM")
print(json.dumps({"A": size, "beyond": peak - before, "seconds": seconds}))
"""
DENSE, SPARSE = (2000, 100_000), (200_000, 50_000, 200)
CASES = {
    "dense, Fortran order": ("F", DENSE),
    "dense, C order": ("C", DENSE),
    "sparse": ("sparse", SPARSE),
}
SOLVERS = ("proxlearn", "scikit-learn", "celer", "skglm")
SHRINK = 10
"""With --quick, rows and columns are fewer by this factor and its square root."""


def measured(kind: str, sizes: tuple, solver: str) -> dict:
    command = [sys.executable, "-c", SCRIPT, kind, solver, json.dumps(sizes)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return {"note": f"over {LIMIT} s"}
    if done.returncode:
        return {"note": done.stderr.strip().rpartition("\n")[2][:60] or f"ended {done.returncode}"}
    return json.loads(done.stdout.strip().rpartition("\n")[2])


def main(options, report) -> int:
    lines, results = [], []
    for title, (kind, sizes) in CASES.items():
        if options.quick:
            sizes = (sizes[0] // SHRINK, sizes[1] // SHRINK, *sizes[2:])
        for solver in SOLVERS:
            report.say(f"{title}: {solver}")
            found = measured(kind, sizes, solver)
            results.append({"case": title, "solver": solver, "sizes": sizes} | found)
            lines.append([f"{title} {sizes[0]}x{sizes[1]}", solver, *_cells(found)])
    head = ["A", "solver", "A MB", "beyond MB", "share of A", "seconds"]
    report.finish("memory", "Peak memory beyond A", head, lines, results, left=2)
    return 0


def _cells(found: dict) -> list[str]:
    if "note" in found:
        return ["-", "-", "-", found["note"]]
    share = found["beyond"] / found["A"]
    return [f"{found['A'] / 1e6:.0f}", f"{found['beyond'] / 1e6:.1f}", f"{share:.3f}",
            f"{found['seconds']:.2f}"]  # fmt: skip
