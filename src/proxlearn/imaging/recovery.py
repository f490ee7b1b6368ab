"""`sparse_recovery`: a picture or signal behind an operator, sparse in a basis."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.imaging.basis import Basis
from proxlearn.imaging.cosine import Cosine
from proxlearn.imaging.products import as_operator
from proxlearn.imaging.wavelets import Wavelet
from proxlearn.names import WAVELETS
from proxlearn.problems.arrays import is_tensor, to_array, to_numpy
from proxlearn.problems.operators import Operator
from proxlearn.problems.penalties import L1, ElasticNet, NonNegativeElasticNet, Penalty
from proxlearn.problems.problem import Problem
from proxlearn.problems.smooth import LeastSquares
from proxlearn.problems.tensors import as_tensor
from proxlearn.problems.transform import Grid, size, to_grid
from proxlearn.problems.vectors import to_positive

BASES = (*WAVELETS, "dct")
"""Names of bases: wavelets, and the cosine transform."""


class Recovery(Problem):
    """The problem that `sparse_recovery` makes: it knows how coefficients become pictures.

    Parameters
    ----------
    f : LeastSquares
        The misfit of the measurements.
    r : Penalty
        The penalty of the coefficients.
    single : bool
        True where one vector of measurements was given.
    numpy : bool
        True where NumPy arrays were given.
    basis : Basis, optional
        Whose coefficients x holds; None where x holds the pixels.
    grid : tuple of int, optional
        Height and width of a picture.

    Examples
    --------
    >>> import torch, proxlearn as pl
    >>> from proxlearn.imaging import Mask, sparse_recovery
    >>> problem = sparse_recovery(Mask(torch.ones(2, 2)), torch.ones(4), 0.5)
    >>> problem.image(pl.solve(problem).x)
    tensor([0.5000, 0.5000, 0.5000, 0.5000])
    """

    def __init__(
        self,
        f: LeastSquares,
        r: Penalty,
        single: bool,
        numpy: bool,
        basis: Basis | None,
        grid: Grid | None,
    ):
        super().__init__(f, r, single, numpy)
        self.basis, self.grid = basis, grid

    def image(self, x: Any) -> Any:
        """The pictures (B, *grid), or one (*grid), with these coefficients; flat without a grid."""
        rows = as_tensor(x)
        flat = rows.reshape(-1, rows.shape[-1])
        pictures = flat if self.basis is None else self.basis.convert(flat.dtype).adjoint(flat)
        shape: tuple[int, ...] = tuple(rows.shape)
        if self.grid is not None:
            copies = self.n // size(self.grid)
            shape = (*shape[:-1], *((copies,) if copies > 1 else ()), *self.grid)
        pictures = pictures.reshape(shape)
        return to_numpy(pictures) if self.numpy else pictures


def sparse_recovery(
    operator: Any,
    b: Any,
    lam: Any,
    *,
    basis: str | Basis | None = None,
    shape: int | Sequence[int] | None = None,
    weights: Any = None,
    lam2: Any = None,
    non_negative: bool = False,
) -> Problem:
    """``1/2 ||A W^T x - b||^2 + lam sum_i w_i |x_i|`` for coefficients x in a basis W.

    The picture is W^T x; after a solve it is `Solution.image`. The gap is certified for one more
    product with the adjoint, as for any LASSO.

    Parameters
    ----------
    operator : Operator, or an object with matvec, rmatvec and shape
        A: what was measured of a picture (`proxlearn.imaging`). An object whose products take
        batches of tensors, (B, n) to (B, m), can be trained through; one that takes NumPy vectors
        can be solved with.
    b : array (m,) or (B, m)
        The measurements; pictures (h, w) or (B, h, w) are flattened, and complex numbers become
        pairs of reals.
    lam : float or array (B,)
        The weight of the penalty.
    basis : str or Basis, optional
        W: "haar", "db2" to "db8", "dct", or an object such as ``Wavelet((64, 64), "db4")``. Without
        one the picture itself is sparse.
    shape : (height, width) or (length,), optional
        The size of the pictures, where the operator does not say it.
    weights : array, optional
        w > 0: one for each scale of the basis, the coarsest averages first, or one for each
        coefficient.
    lam2 : float or array (B,), optional
        Adds ``lam2/2 sum_i w_i x_i^2``: an elastic net.
    non_negative : bool
        Whether x >= 0 is required; only without a basis, where x is the picture.

    Returns
    -------
    Problem
        For `solve`. Its answers are NumPy arrays where b is one, and tensors elsewhere.

    Examples
    --------
    >>> import torch, proxlearn as pl
    >>> from proxlearn.imaging import Mask
    >>> picture = torch.zeros(16, 16, dtype=torch.float64)
    >>> picture[4:12, 4:12] = 1.0
    >>> seen = torch.rand(16, 16, generator=torch.Generator().manual_seed(0)) < 0.7
    >>> problem = pl.sparse_recovery(Mask(seen), seen * picture, 0.01, basis="haar", shape=(16, 16))
    >>> solution = pl.solve(problem, tol=1e-4)
    >>> solution.solved, bool((solution.image - picture).abs().max() < 0.2)
    (True, True)
    """
    A = as_operator("operator", operator)
    grid = grid_of(A, basis, shape)
    chosen = _basis(A, basis, grid)
    targets, single = targets_of(A, b, grid)
    whole = A if chosen is None else A @ chosen.T
    values = as_tensor(to_positive("lam", lam, A))
    w = _weights(A, weights, chosen)
    if chosen is not None and non_negative:
        raise InputError(
            "non_negative=True was given with a basis; expected it without one, where the unknowns "
            "are the pixels: coefficients of non-negative pictures have both signs"
        )
    if non_negative:
        second = values.new_zeros(1) if lam2 is None else as_tensor(to_positive("lam2", lam2, A))
        r: Penalty = NonNegativeElasticNet(values, second, w)
    elif lam2 is not None:
        r = ElasticNet(values, as_tensor(to_positive("lam2", lam2, A)), w)
    else:
        r = L1(values, w)
    f = LeastSquares(whole, targets)
    one = single and max(f.batch, r.batch) == 1
    return Recovery(f, r, one, not is_tensor(b), chosen, grid)


def grid_of(A: Operator, basis: Any, shape: Any) -> Grid | None:
    """The size of the pictures: as given, or as the basis or the operator knows it."""
    known = basis.grid if isinstance(basis, Basis) else A.grid
    grid = known if shape is None else to_grid(shape)
    if grid is not None and A.shape[1] % size(grid):
        raise InputError(
            f"pictures of {' x '.join(map(str, grid))} pixels do not fit an operator of shape "
            f"{A.shape}; expected {A.shape[1]} pixels"
        )
    return grid


def _basis(A: Operator, basis: Any, grid: Grid | None) -> Basis | None:
    """The basis as an object, in the precision and on the device of A; None without one."""
    if basis is None:
        return None
    if isinstance(basis, Basis):
        if basis.shape[0] != A.shape[1]:
            raise InputError(
                f"basis is of vectors of {basis.shape[0]} numbers; expected {A.shape[1]}, as the "
                f"operator of shape {A.shape} has columns: copies=2 is for complex pictures"
            )
        return basis.convert(A.dtype, A.device)
    if not isinstance(basis, str) or basis not in BASES:
        known = ", ".join(BASES)
        raise InputError(
            f"unknown basis {basis!r}; known are {known}, or an object such as Wavelet"
        )
    if grid is None:
        raise InputError(
            f"basis is {basis!r} and the size of the pictures is not known; give shape=(height, "
            "width), or a basis such as Wavelet((height, width))"
        )
    copies = A.shape[1] // size(grid)
    if basis == "dct":
        return Cosine(grid, copies, A.dtype, A.device)
    return Wavelet(grid, basis, None, copies, A.dtype, A.device)


def targets_of(A: Operator, b: Any, grid: Grid | None) -> tuple[Tensor, bool]:
    """b as rows (B, m), and whether it belongs to a single problem."""
    m = A.shape[0]
    values = b if is_tensor(b) else torch.as_tensor(to_numpy(_complex_or_real(b)))
    if values.is_complex():
        where = -1 if grid is None else -len(grid)
        values = torch.stack([values.real, values.imag], where - 1)
    values = as_tensor(to_array("b", values))
    if values.numel() == m and (values.ndim == 0 or len(values) != 1 or m == 1 or values.ndim == 1):
        rows, single = values.reshape(1, m), True
    elif values.ndim >= 2 and values.numel() == len(values) * m and len(values):
        rows, single = values.reshape(len(values), m), False
    else:
        raise InputError(
            f"b has shape {tuple(values.shape)}, {values.numel()} numbers; expected {m}, as the "
            f"operator of shape {A.shape} has rows, or B times as many for a batch"
        )
    return rows.to(dtype=A.dtype, device=A.device), single


def _complex_or_real(b: Any) -> Any:
    array = np.asarray(b)
    return array if array.dtype.kind == "c" else to_array("b", b)


def _weights(A: Operator, weights: Any, basis: Basis | None) -> Tensor | None:
    """Weights (B or 1, n) from one weight for each scale, or one for each coefficient."""
    if weights is None:
        return None
    w = as_tensor(to_array("weights", weights)).to(dtype=A.dtype, device=A.device)
    if basis is not None and w.ndim == 1 and len(w) != A.shape[1]:
        w = basis.by_scale(w)
    w = w[None] if w.ndim == 1 else w
    if w.ndim != 2 or w.shape[1] != A.shape[1] or not bool((w > 0).all()):
        raise InputError(
            f"weights has shape {tuple(w.shape)} and smallest entry {float(w.min()):g}; expected "
            f"numbers > 0, ({A.shape[1]},) or one a scale: a small number such as 0.01 hardly "
            "penalises"
        )
    return w
