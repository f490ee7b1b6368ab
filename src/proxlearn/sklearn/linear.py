"""Least squares with a penalty: Lasso, ElasticNet, NonNegativeLeastSquares."""

from abc import abstractmethod
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import validate_data

from proxlearn import constructors
from proxlearn.penalties import NonNegative, NonNegativeElasticNet, Zero
from proxlearn.problem import Problem
from proxlearn.sklearn.design import Array, Design, prepare, sample_weights
from proxlearn.sklearn.fitting import (
    certified,
    linear_prediction,
    require_at_least,
    require_ratio,
)
from proxlearn.smooth import LeastSquares


class LeastSquaresRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Fit and predict; a subclass says with which penalty. Several targets are one batch."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit X (m, n), dense or sparse, to y (m,) or (m, T)."""
        require_at_least(0, tol=self.tol)
        require_at_least(1, max_iter=self.max_iter)
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=True, multi_output=True
        )
        y = y.astype(np.float64)
        w = sample_weights(sample_weight, X.shape[0])
        root = np.sqrt(w / w.sum())
        design = prepare(X, root, centre=self.fit_intercept, standardise=self._standardise())
        middle = np.square(root) @ y if self.fit_intercept else np.zeros(y.shape[1:])
        targets = np.atleast_2d((y - middle).T * root)
        problem = self._problem(design, torch.from_numpy(targets))
        solution = certified(
            problem, self.tol, int(self.max_iter), self._start(design), self._polish(X)
        )
        coef, shift = design.coefficients(solution.x.reshape(problem.batch, -1).numpy())
        one = y.ndim == 1
        self.coef_ = coef[0] if one else coef
        self.intercept_ = (shift[0] if one else shift) + middle if self.fit_intercept else 0.0
        self.dual_gap_ = float(solution.gap[0]) if one else solution.gap.numpy()
        self.n_iter_ = int(solution.iterations[0]) if one else solution.iterations.tolist()
        return self

    def predict(self, X: Any) -> Any:
        """X coef_ + intercept_, (m,) or (m, T)."""
        return linear_prediction(self, X)

    def _start(self, design: Design) -> Array | None:
        if not getattr(self, "warm_start", False) or not hasattr(self, "coef_"):
            return None
        return design.solution(np.atleast_2d(self.coef_), np.zeros(1))

    def _polish(self, X: Any) -> bool:
        return True

    @abstractmethod
    def _standardise(self) -> bool:
        """Whether columns may be scaled: where the penalty has a weight for each coordinate."""

    @abstractmethod
    def _problem(self, design: Design, targets: torch.Tensor) -> Problem:
        """The problem of a design and its targets (T, m)."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class ElasticNet(LeastSquaresRegressor):
    """``1/2 mean (y - X w - c)^2 + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2)``.

    With `positive`, subject to w >= 0. `tol` bounds the certified duality gap relative to the
    objective; `dual_gap_` is the gap.
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        max_iter: int = 10_000,
        tol: float = 1e-6,
        warm_start: bool = False,
        positive: bool = False,
    ):
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.positive = positive

    def _ratio(self) -> float:
        require_at_least(0, alpha=self.alpha)
        require_ratio(l1_ratio=self.l1_ratio)
        return self.l1_ratio

    def _standardise(self) -> bool:
        return self._ratio() in (0, 1)

    def _problem(self, design: Design, targets: torch.Tensor) -> Problem:
        lam, lam2 = self.alpha * self._ratio(), self.alpha * (1 - self._ratio())
        f = LeastSquares(design.A, targets)
        if self.alpha == 0:
            return Problem(f, NonNegative() if self.positive else Zero())
        if self.positive:
            r = NonNegativeElasticNet(
                targets.new_tensor([lam]),
                targets.new_tensor([lam2]),
                torch.from_numpy(design.penalty_weights(1 if lam2 == 0 else 2))[None],
            )
            return Problem(f, r)
        if lam2 == 0:
            return constructors.lasso(design.A, targets, lam, design.penalty_weights(1))
        return constructors.elastic_net(design.A, targets, lam, lam2, design.penalty_weights(2))


class Lasso(ElasticNet):
    """``1/2 mean (y - X w - c)^2 + alpha |w|_1``.

    With `positive`, subject to w >= 0. `tol` bounds the certified duality gap relative to the
    objective; `dual_gap_` is the gap.
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        max_iter: int = 10_000,
        tol: float = 1e-6,
        warm_start: bool = False,
        positive: bool = False,
    ):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.positive = positive

    def _ratio(self) -> float:
        require_at_least(0, alpha=self.alpha)
        return 1.0


class NonNegativeLeastSquares(LeastSquaresRegressor):
    """``1/2 mean (y - X w - c)^2`` subject to w >= 0.

    No duality gap is known: `tol` bounds the prox-gradient map relative to the gradient at 0, and
    `dual_gap_` is infinite.
    """

    def __init__(self, *, fit_intercept: bool = True, max_iter: int = 10_000, tol: float = 1e-8):
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol

    def _standardise(self) -> bool:
        return True

    def _polish(self, X: Any) -> bool:
        # Wide data have many solutions. The one that iterations from 0 lead to depends on X^T X
        # and X^T y alone; which one a polish finds is a matter of rounding.
        return bool(X.shape[0] > X.shape[1])

    def _problem(self, design: Design, targets: torch.Tensor) -> Problem:
        return constructors.nnls(design.A, targets)
