"""The data sets: two of scikit-learn, ten simulated, two of UCI, five wide or sparse."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes

from measure import sparse_designs

FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "data"
"""Where the files are unless `--data` names another folder."""


@dataclass(frozen=True)
class Data:
    """X (m, n), standardised if dense, in Fortran order or CSC; a target and labels -1, 1."""

    name: str
    X: np.ndarray | sp.csc_array
    target: np.ndarray
    labels: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape

    @property
    def sparse(self) -> bool:
        return sp.issparse(self.X)


def _standardised(X: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and variance 1; constant columns are left out."""
    X = np.asarray(X, dtype=np.float64)
    X = X - X.mean(0)
    spread = X.std(0)
    keep = spread > 1e-12
    return np.asfortranarray(X[:, keep] / spread[keep])


def _data(name: str, X, target: np.ndarray) -> Data:
    """Samples in a random order, because files are sorted by class and folds are contiguous."""
    order = np.random.default_rng(0).permutation(len(target))
    target = np.asarray(target, dtype=np.float64)[order]
    if sp.issparse(X):
        X = X.tocsr()[order].astype(np.float64).tocsc()
        X.sort_indices()
    else:
        X = _standardised(X[order])
    two = len(np.unique(target)) == 2
    above = target == target.max() if two else target > np.median(target)
    return Data(name, X, target, np.where(above, 1.0, -1.0))


def simulated(name: str, m: int, n: int, correlation: float = 0.0, seed: int = 0) -> Data:
    """Gaussian columns, correlated as `correlation ** |i - j|`, and min(m, n)/10 non-zeros."""
    draw = np.random.default_rng(seed)
    X = draw.standard_normal((m, n))
    for j in range(1, n if correlation else 0):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
    w = np.zeros(n)
    support = draw.choice(n, max(1, min(m, n) // 10), replace=False)
    w[support] = draw.standard_normal(len(support))
    signal = X @ w
    noise = draw.standard_normal(m)
    noise *= np.linalg.norm(signal) / (3 * np.linalg.norm(noise))  # signal to noise ratio 3
    return _data(name, X, signal + noise)


def _csv(folder: Path, name: str, positive: str) -> Data:
    table = np.genfromtxt(folder / f"{name}.csv", delimiter=",", dtype=str)
    return _data(name, table[:, :-1].astype(np.float64), (table[:, -1] == positive).astype(float))


def _dense(folder: Path, name: str) -> Data:
    held = np.load(folder / "wide" / f"{name}.npz")
    y = held["y"]
    return _data(name, held["X"], (y == y.max()).astype(float))


def _sparse(folder: Path, name: str) -> Data:
    y = np.load(folder / "wide" / f"{name}_y.npy")
    return _data(name, sp.load_npz(folder / "wide" / f"{name}_X.npz"), (y == y.max()).astype(float))


LEVELS = (2, 7, 30, 150, 600, 2000)
"""Of the variables of `categories20000`."""


def _random(m: int, n: int, share: float) -> sp.csc_array:
    return sparse_designs.entries(m, n, share)


def _designed(name: str, X: sp.csc_array, nonzeros: int) -> Data:
    data = _data(name, X, sparse_designs.target(X, nonzeros))
    parts = data.X.data, data.X.indices.astype(np.int32), data.X.indptr.astype(np.int32)
    return replace(data, X=sp.csc_array(parts, shape=X.shape))


def _filled(data: Data) -> Data:
    """The same as a dense matrix, which is not standardised."""
    return replace(data, X=np.asfortranarray(data.X.toarray()))


LOADERS: dict[str, Callable[[Path], Data]] = {
    "diabetes": lambda folder: _data("diabetes", *load_diabetes(return_X_y=True)),
    "breast": lambda folder: _data("breast", *load_breast_cancer(return_X_y=True)),
    "200x1000": lambda folder: simulated("200x1000", 200, 1000),
    "500x300": lambda folder: simulated("500x300", 500, 300),
    "500x600": lambda folder: simulated("500x600", 500, 600, 0.6),
    "100x10000": lambda folder: simulated("100x10000", 100, 10_000),
    "10000x100": lambda folder: simulated("10000x100", 10_000, 100),
    "spambase": lambda folder: _csv(folder, "spambase", "1"),
    "ionosphere": lambda folder: _csv(folder, "ionosphere", "g"),
    "gravier": lambda folder: _dense(folder, "gravier"),
    "shipp": lambda folder: _dense(folder, "shipp"),
    "khan": lambda folder: _dense(folder, "khan"),
    "random4000x3000": lambda folder: _designed("random4000x3000", _random(4000, 3000, 0.01), 300),
    "random20000x5000": lambda folder: _designed(
        "random20000x5000", _random(20_000, 5000, 0.002), 1000
    ),
    "words5000x8000": lambda folder: _designed(
        "words5000x8000", sparse_designs.words(5000, 8000, 70), 500
    ),
    "categories20000": lambda folder: _designed(
        "categories20000", sparse_designs.categories(20_000, LEVELS), 300
    ),
    "rare2000x300": lambda folder: _filled(
        _designed("rare2000x300", sparse_designs.rare(2000, 300, 0.04), 60)
    ),
    "relathe": lambda folder: _sparse(folder, "relathe"),
    "w8a": lambda folder: _sparse(folder, "w8a"),
}


@cache
def load(name: str, folder: Path = FOLDER) -> Data:
    """The data set of this name."""
    return LOADERS[name](folder)
