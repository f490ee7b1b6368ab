"""Sparse codes of signals in a dictionary."""

from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from proxlearn import constructors
from proxlearn.errors import InputError
from proxlearn.ksvd import ksvd
from proxlearn.sklearn.design import Array
from proxlearn.sklearn.fitting import certified, require_at_least


class SparseCoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The code u of each row x of X: ``1/2 |x - u D|^2 + transform_alpha |u|_1``, as one batch.

    `dictionary` D is (components, features); without one, `fit` learns `n_components` atoms from X
    by K-SVD, with codes of at most `n_nonzero` non-zeros. `components_` is the dictionary.
    """

    def __init__(
        self,
        dictionary: Any = None,
        *,
        transform_alpha: float = 1.0,
        n_components: int | None = None,
        n_nonzero: int = 1,
        transform_max_iter: int = 10_000,
        tol: float = 1e-6,
        random_state: Any = None,
    ):
        self.dictionary = dictionary
        self.transform_alpha = transform_alpha
        self.n_components = n_components
        self.n_nonzero = n_nonzero
        self.transform_max_iter = transform_max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn the dictionary from X (m, n), or check that the given one fits it."""
        require_at_least(0, strict=True, transform_alpha=self.transform_alpha)
        require_at_least(0, tol=self.tol)
        require_at_least(1, transform_max_iter=self.transform_max_iter, n_nonzero=self.n_nonzero)
        X = validate_data(self, X, dtype=np.float64)
        if self.dictionary is None:
            self.components_ = self._learned(X)
            return self
        self.components_ = check_array(self.dictionary, dtype=np.float64)
        if self.components_.shape[1] != X.shape[1]:
            raise InputError(
                f"dictionary has shape {self.components_.shape} and X has {X.shape[1]} features; "
                f"expected (components, {X.shape[1]})"
            )
        return self

    def transform(self, X: Any) -> Array:
        """The codes of X (m, n), (m, components)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        D = torch.from_numpy(np.ascontiguousarray(self.components_.T))
        problem = constructors.lasso(D, torch.from_numpy(X.copy()), self.transform_alpha)
        codes: Array = certified(problem, self.tol, int(self.transform_max_iter)).x.numpy()
        return codes

    def inverse_transform(self, codes: Any) -> Array:
        """The signals of codes (m, components), (m, n)."""
        check_is_fitted(self)
        codes = check_array(codes, dtype=np.float64)
        signals: Array = codes @ self.components_
        return signals

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def _learned(self, X: Array) -> Array:
        usable = int(np.any(X != 0, axis=1).sum())
        atoms = self.n_components
        atoms = max(1, min(usable, X.shape[1])) if atoms is None else int(atoms)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        sparsity = min(self.n_nonzero, atoms, X.shape[1])
        atoms_: Array = ksvd(torch.from_numpy(X.copy()), atoms, sparsity, seed=seed).atoms.numpy()
        return np.ascontiguousarray(atoms_.T)
