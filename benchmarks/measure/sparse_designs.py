"""Simulated sparse matrices: random entries, words of texts, categories, rare binary columns."""

import numpy as np
import scipy.sparse as sp


def entries(m: int, n: int, share: float, seed: int = 0) -> sp.csc_array:
    """Gaussian numbers in random places, of which there are `share` m n."""
    draw = np.random.default_rng(seed)
    return _matrix(
        draw.integers(m, size=int(share * m * n)), draw.integers(n, size=int(share * m * n)),
        draw.standard_normal(int(share * m * n)), (m, n),
    )  # fmt: skip


def words(m: int, n: int, length: float, seed: int = 0) -> sp.csc_array:
    """Texts of about `length` words, whose frequencies follow Zipf's law.

    An entry is 1 + log(count) times the logarithm of m over the texts with that word, and rows
    have length 1, as is usual.
    """
    draw = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(1, n + 1)
    frequency = draw.permutation(frequency / frequency.sum())
    lengths = 1 + draw.poisson(draw.gamma(2.0, length / 2.0, size=m))
    rows = np.repeat(np.arange(m), lengths)
    counts = _matrix(rows, draw.choice(n, size=len(rows), p=frequency), np.ones(len(rows)), (m, n))
    counts.data = 1.0 + np.log(counts.data)
    texts = np.diff(counts.indptr)
    counts = counts @ sp.diags_array(np.log(m / np.maximum(texts, 1)) + 1.0)
    sizes = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
    return sp.csc_array(sp.diags_array(1.0 / np.maximum(sizes, 1e-300)) @ counts)


def categories(m: int, levels: tuple[int, ...], seed: int = 0) -> sp.csc_array:
    """Indicators of variables with so many levels each, of unequal frequency."""
    draw = np.random.default_rng(seed)
    columns, first = [], 0
    for count in levels:
        frequency = draw.dirichlet(np.full(count, 0.5))
        columns.append(first + draw.choice(count, size=m, p=frequency))
        first += count
    rows = np.tile(np.arange(m), len(levels))
    return _matrix(rows, np.concatenate(columns), np.ones(len(rows)), (m, first))


def rare(m: int, n: int, share: float, seed: int = 0) -> sp.csc_array:
    """Zeros and ones, the latter `share` of them on average and of unequal frequency."""
    draw = np.random.default_rng(seed)
    frequency = np.minimum(share * draw.gamma(1.0, 1.0, size=n), 0.9)
    return sp.csc_array((draw.random((m, n)) < frequency).astype(np.float64))


def target(X, nonzeros: int, seed: int = 0) -> np.ndarray:
    """X w with so many Gaussian coefficients, and noise with a third of its length.

    They belong to columns with entries, each with a chance that grows with their number.
    """
    draw = np.random.default_rng(seed)
    filled = np.sqrt(np.diff(sp.csc_array(X).indptr))
    w = np.zeros(X.shape[1])
    support = draw.choice(X.shape[1], nonzeros, replace=False, p=filled / filled.sum())
    w[support] = draw.standard_normal(nonzeros)
    signal = X @ w
    signal = signal - signal.mean()
    noise = draw.standard_normal(X.shape[0])
    return signal + noise * np.linalg.norm(signal) / (3 * np.linalg.norm(noise))


def _matrix(rows, columns, values, shape) -> sp.csc_array:
    X = sp.coo_array((values, (rows, columns)), shape=shape).tocsc()
    X.sum_duplicates()
    return X
