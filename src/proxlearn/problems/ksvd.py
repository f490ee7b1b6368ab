"""K-SVD: a dictionary in which signals are sparse (Aharon, Elad and Bruckstein, 2006)."""

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from proxlearn.errors import InputError

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Dictionary:
    """Atoms, the code of the signals in them, and how the fit went."""

    atoms: Tensor
    """(d, K), columns of length 1; the A of a sparse coding problem."""
    codes: Tensor
    """(N, K), at most `sparsity` non-zeros in a row."""
    errors: tuple[float, ...]
    """Root mean square of signals - codes @ atoms^T after each round; never rises."""


def ksvd(signals: Tensor, atoms: int, sparsity: int, rounds: int = 20, seed: int = 0) -> Dictionary:
    """Fit ``signals (N, d) ~ codes (N, atoms) @ D^T`` with at most `sparsity` non-zeros a row.

    A round codes every signal by orthogonal matching pursuit (scikit-learn's), where that is
    better than its old code, then replaces each atom and its coefficients by the best rank-one
    approximation of what the other atoms leave of the signals that use it. The start is a random
    choice of signals; an atom that none uses becomes the signal that is represented worst.

    >>> Y = torch.eye(4, dtype=torch.float64).repeat(3, 1)
    >>> ksvd(Y, atoms=4, sparsity=1, rounds=3).errors[-1] < 1e-12
    True
    """
    Y = _checked(signals, atoms, sparsity, rounds)
    random = np.random.default_rng(seed)
    lengths = np.linalg.norm(Y, axis=1)
    usable = np.flatnonzero(lengths > 0)
    if len(usable) < atoms:
        raise InputError(
            f"{len(usable)} signals are not zero; expected at least {atoms}, an atom each"
        )
    chosen = random.choice(usable, atoms, replace=False)
    D = (Y[chosen] / lengths[chosen, None]).T
    X = np.zeros((len(Y), atoms))
    errors = []
    for _ in range(rounds):
        X = _better(Y, D, X, _pursuit(Y, D, sparsity))
        D, X = _replaced(Y, D, X, sparsity)
        R = Y - X @ D.T
        for k in random.permutation(atoms):
            _update(D, X, R, k)
        errors.append(float(np.sqrt(np.square(Y - X @ D.T).mean())))
    return Dictionary(torch.from_numpy(D), torch.from_numpy(X), tuple(errors))


def _checked(signals: Tensor, atoms: int, sparsity: int, rounds: int) -> Array:
    """The signals as an array; refuses arguments that do not fit them."""
    if signals.ndim != 2 or not bool(signals.isfinite().all()):
        raise InputError(f"signals have shape {tuple(signals.shape)}; expected finite (N, d)")
    if not 1 <= sparsity <= min(atoms, signals.shape[1]):
        raise InputError(
            f"sparsity is {sparsity}; expected 1 to {min(atoms, signals.shape[1])}, the smaller "
            "of the number of atoms and the length of a signal"
        )
    if rounds < 1:
        raise InputError(f"rounds is {rounds}; expected at least 1")
    return signals.double().cpu().numpy()


def _pursuit(Y: Array, D: Array, sparsity: int) -> Array:
    """Codes (N, K) by orthogonal matching pursuit."""
    try:
        from sklearn.decomposition import sparse_encode
    except ImportError:
        raise InputError(
            "K-SVD needs scikit-learn, which is not installed; pip install scikit-learn"
        ) from None
    with warnings.catch_warnings():  # said where fewer atoms represent a signal exactly
        warnings.filterwarnings("ignore", message="Orthogonal matching pursuit ended prematurely")
        codes: Array = sparse_encode(Y, D.T, algorithm="omp", n_nonzero_coefs=sparsity)
    return codes


def _better(Y: Array, D: Array, old: Array, new: Array) -> Array:
    """The code of each signal that leaves less of it: pursuit is greedy, and may do worse."""
    left_old, left_new = (np.square(Y - X @ D.T).sum(1) for X in (old, new))
    return np.where((left_new < left_old)[:, None], new, old)


def _replaced(Y: Array, D: Array, X: Array, sparsity: int) -> tuple[Array, Array]:
    """One of the two most similar atoms becomes what is left of the worst signal.

    Only if the error falls by that. It leads out of local minima with two atoms for one.
    """
    R = Y - X @ D.T
    worst = R[np.square(R).sum(1).argmax()]
    length = np.linalg.norm(worst)
    if length == 0:
        return D, X
    similar = np.abs(D.T @ D) - np.eye(D.shape[1])
    pair = list(np.unravel_index(similar.argmax(), similar.shape))
    weaker = pair[int(np.square(X[:, pair]).sum(0).argmin())]
    D_new = D.copy()
    D_new[:, weaker] = worst / length
    X_new = _pursuit(Y, D_new, sparsity)
    lower = np.square(Y - X_new @ D_new.T).sum() < np.square(R).sum()
    return (D_new, X_new) if lower else (D, X)


def _update(D: Array, X: Array, R: Array, k: int) -> None:
    """Update atom k, its coefficients and R = Y - X D^T in place."""
    users = np.flatnonzero(X[:, k])
    if not len(users):
        worst = R[np.square(R).sum(1).argmax()]
        length = np.linalg.norm(worst)
        if length > 0:
            D[:, k] = worst / length
        return
    E = R[users] + np.outer(X[users, k], D[:, k])
    V = np.linalg.svd(E, full_matrices=False)[2]
    D[:, k] = V[0]
    X[users, k] = E @ V[0]
    R[users] = E - np.outer(X[users, k], D[:, k])
