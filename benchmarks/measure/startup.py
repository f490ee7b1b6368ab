"""A fresh process that imports, fits one LASSO and exits, in alternating runs."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

DATA = """
import numpy as np
draw = np.random.default_rng(0)
A = draw.standard_normal((200, 1000)); b = A[:, :5].sum(1) + draw.standard_normal(200)
"""
SCRIPTS = {
    "proxlearn.solve": DATA + "import proxlearn as pl\npl.solve(pl.lasso(A, b, 40.0))",
    "proxlearn.sklearn.Lasso": DATA
    + "from proxlearn.sklearn import Lasso\nLasso(alpha=0.2).fit(A, b)",
    "scikit-learn Lasso": DATA
    + "from sklearn.linear_model import Lasso\nLasso(alpha=0.2).fit(A, b)",
    "NumPy alone": DATA,
}
BASE = "scikit-learn Lasso"
RUNS, QUICK_RUNS = 15, 3


def commands(folder: Path) -> dict[str, list[str]]:
    draw = np.random.default_rng(0)
    A = draw.standard_normal((50, 100))
    np.save(folder / "A.npy", A)
    np.save(folder / "b.npy", A[:, 0] + draw.standard_normal(50))
    found = {name: [sys.executable, "-c", script] for name, script in SCRIPTS.items()}
    solve = ["-m", "proxlearn", "solve", "lasso", str(folder / "A.npy"), str(folder / "b.npy")]
    found["proxlearn solve A.npy b.npy"] = [sys.executable, *solve, "--lam", "5"]
    return found


def main(options, report) -> int:
    seconds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        todo = commands(Path(folder))
        for _ in range(1 + (QUICK_RUNS if options.quick else RUNS)):
            for name, command in todo.items():
                report.say(name)
                began = time.perf_counter()
                subprocess.run(command, check=True, capture_output=True, env=os.environ)
                seconds.setdefault(name, []).append(time.perf_counter() - began)
    times = {name: spent[1:] for name, spent in seconds.items()}  # the first fills the disk cache
    base = float(np.median(times[BASE]))
    lines = [
        [name, f"{1e3 * np.median(t):.0f}", f"{1e3 * min(t):.0f}", f"{np.median(t) / base:.2f}"]
        for name, t in times.items()
    ]
    head = ["a fresh process", "median ms", "fastest ms", "over scikit-learn"]
    report.finish("startup", "Import, fit, exit", head, lines, [{"seconds": times}])
    return 0
