"""Sparse codes of signals in a dictionary."""

from dataclasses import field
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted

from proxlearn.core.glm import Limits, describe, solve_glm
from proxlearn.errors import InputError, unknown
from proxlearn.sklearn.declaration import estimator
from proxlearn.sklearn.fitting import (
    FLOATS,
    Array,
    Estimator,
    aim,
    checked,
    require_at_least,
    thread_count,
    warn_unless_solved,
    writable,
)

ALGORITHMS = ("lasso_cd", "lasso_lars", "threshold", "omp", "lars")
"""The values of `transform_algorithm`, which are scikit-learn's."""


@estimator
class SparseCoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):  # type: ignore[misc]
    """Sparse codes of signals in a dictionary.

    The code u of each row x of X minimises::

        1/2 |x - u D|^2 + transform_alpha |u|_1

    Every code is certified, or a `ConvergenceWarning` says that one is not. The algorithms "omp"
    and "lars" are scikit-learn's own.

    Parameters
    ----------
    dictionary : array (components, n)
        The dictionary D. Without one, `fit` learns it from X by K-SVD, which needs PyTorch.
    transform_alpha : float
        Weight of the penalty.
    transform_algorithm : {"lasso_cd", "lasso_lars", "threshold", "omp", "lars"}
        The first two, of which "lasso_cd" is the default, minimise the objective above.
        "threshold" moves the products x D^T towards 0 by `transform_alpha`; "omp" and "lars" choose
        `transform_n_nonzero_coefs` atoms one by one.
    transform_n_nonzero_coefs : int
        Number of non-zeros of a code of "omp" and "lars"; a tenth of the columns by default.
    split_sign : bool
        Whether a code is split into its positive part and, after it, its negative part.
    n_components : int
        Number of atoms that `fit` learns; by default as many as X has columns, or non-zero rows.
    n_nonzero : int
        Largest number of non-zeros in a code while the dictionary is learned.
    transform_max_iter : int
        Largest number of working sets for a code.
    tol : float
        Largest duality gap of a code, relative to its objective.
    random_state : int or RandomState
        Chooses the signals from which K-SVD starts.
    positive_code : bool
        Whether the codes are constrained to be >= 0.
    n_jobs : int
        Number of threads that share the signals; 1 by default, -1 for all processors.

    Attributes
    ----------
    components_ : array (components, n)
        The dictionary.

    Examples
    --------
    >>> import numpy as np
    >>> from proxlearn.sklearn import SparseCoder
    >>> coder = SparseCoder(np.eye(3), transform_alpha=1.0)
    >>> coder.fit_transform([[3.0, 0.5, -2.0]]).tolist()
    [[2.0, 0.0, -1.0]]
    """

    dictionary: Any = field(default=None, kw_only=False)
    transform_algorithm: str = "lasso_cd"
    transform_n_nonzero_coefs: int | None = None
    transform_alpha: float | None = 1.0
    split_sign: bool = False
    n_components: int | None = None
    n_nonzero: int = 1
    transform_max_iter: int = 10_000
    tol: float = 1e-6
    random_state: Any = None
    positive_code: bool = False
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn the dictionary, or check that the given one fits the signals.

        Parameters
        ----------
        X : array or sparse matrix (m, n)
            A signal in each row; sparse ones are made dense.
        y : None
            Without effect.

        Returns
        -------
        self
        """
        require_at_least(0, strict=True, transform_alpha=self._alpha())
        if self.transform_algorithm not in ALGORITHMS:
            raise unknown("transform_algorithm", self.transform_algorithm, ALGORITHMS)
        require_at_least(0, tol=self.tol)
        require_at_least(1, transform_max_iter=self.transform_max_iter, n_nonzero=self.n_nonzero)
        X = _dense(checked(self, X, accept_sparse="csr"))
        if self.dictionary is None:
            self.components_ = self._learned(X)
            return self
        self.components_ = check_array(self.dictionary, dtype=FLOATS)
        if self.components_.shape[1] != X.shape[1]:
            raise InputError(
                f"dictionary has shape {self.components_.shape} and X has {X.shape[1]} features; "
                f"expected (components, {X.shape[1]})"
            )
        return self

    def transform(self, X: Any) -> Array:
        """Code signals.

        Parameters
        ----------
        X : array or sparse matrix (m, n)
            A signal in each row; sparse ones are made dense.

        Returns
        -------
        array (m, components)
            The codes, in the precision of X.
        """
        check_is_fitted(self)
        X = _dense(checked(self, X, accept_sparse="csr", reset=False))
        codes = self._codes(X).astype(X.dtype, copy=False)
        if self.split_sign:
            codes = np.hstack([np.maximum(codes, 0), np.maximum(-codes, 0)])
        made: Array = codes
        return made

    def _alpha(self) -> float:
        return 1.0 if self.transform_alpha is None else self.transform_alpha

    def _codes(self, X: Any) -> Any:
        """Codes (m, components) by the chosen algorithm."""
        if self.transform_algorithm in ("omp", "lars"):
            from sklearn.decomposition import sparse_encode

            return sparse_encode(
                X, self.components_.astype(X.dtype), algorithm=self.transform_algorithm,
                n_nonzero_coefs=self.transform_n_nonzero_coefs, alpha=self.transform_alpha,
                n_jobs=self.n_jobs, positive=self.positive_code,
            )  # fmt: skip
        if self.transform_algorithm == "threshold":
            products = X @ self.components_.T
            size = np.maximum((products if self.positive_code else np.abs(products)), 0.0)
            return np.sign(products) * np.maximum(size - self._alpha(), 0.0)
        limits = Limits(tol=aim(float(self.tol)), max_iter=int(self.transform_max_iter))
        glm = describe(
            self.components_.T, writable(X), "squares", l1=self._alpha(),
            lower=0.0 if self.positive_code else -np.inf,
        )  # fmt: skip
        answer = solve_glm(glm, limits=limits, threads=thread_count(self.n_jobs))
        warn_unless_solved(answer, self.tol)
        return answer.x

    def inverse_transform(self, codes: Any) -> Array:
        """Signals of codes.

        Parameters
        ----------
        codes : array (m, components)

        Returns
        -------
        array (m, n)
            codes D.
        """
        check_is_fitted(self)
        codes = check_array(codes, dtype=FLOATS)
        if self.split_sign:
            half = codes.shape[1] // 2
            codes = codes[:, :half] - codes[:, half:]
        signals: Array = codes @ self.components_
        return signals

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0]) * (2 if self.split_sign else 1)

    def _learned(self, X: Array) -> Array:
        """A dictionary (components, n) that K-SVD learns from the signals."""
        import torch

        from proxlearn.problems.ksvd import ksvd

        usable = int(np.any(X != 0, axis=1).sum())
        atoms = self.n_components
        atoms = max(1, min(usable, X.shape[1])) if atoms is None else int(atoms)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        sparsity = min(self.n_nonzero, atoms, X.shape[1])
        learned = ksvd(torch.from_numpy(X.copy()), atoms, sparsity, seed=seed).atoms.numpy()
        return np.ascontiguousarray(learned.T)


def _dense(X: Any) -> Any:
    return X.toarray() if scipy.sparse.issparse(X) else X
