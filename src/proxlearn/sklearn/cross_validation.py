"""LassoCV and LogisticRegressionCV: the weight of the penalty chosen on held-out folds."""

import numbers
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import get_scorer
from sklearn.model_selection import check_cv
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import validate_data

from proxlearn.errors import InputError
from proxlearn.sklearn.design import Array, Design, prepare, sample_weights
from proxlearn.sklearn.fitting import (
    certified,
    linear_prediction,
    require_at_least,
    require_ratio,
)
from proxlearn.sklearn.linear import Lasso
from proxlearn.sklearn.logistic import LinearClassifier, LogisticRegression, Model, labelled


class LassoCV(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """`Lasso` with the alpha whose squared error on held-out folds is smallest.

    `alphas` is a number of values from the smallest alpha without non-zeros down to `eps` times
    that, or the values themselves. `mse_path_` is (alphas, folds). With `positive`, coefficients
    are >= 0.
    """

    def __init__(
        self,
        *,
        eps: float = 1e-3,
        alphas: Any = 100,
        fit_intercept: bool = True,
        max_iter: int = 10_000,
        tol: float = 1e-6,
        cv: Any = None,
        positive: bool = False,
    ):
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.cv = cv
        self.positive = positive

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit X (m, n), dense or sparse, to y (m,)."""
        require_at_least(0, tol=self.tol)
        require_at_least(0, strict=True, eps=self.eps)
        require_at_least(1, max_iter=self.max_iter)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=True)
        y = y.astype(np.float64)
        w = sample_weights(sample_weight, X.shape[0])
        self.alphas_ = self._grid(X, y, w)
        folds = list(check_cv(self.cv).split(X, y))
        self.mse_path_ = np.column_stack([self._errors(X, y, w, *fold) for fold in folds])
        self.alpha_ = float(self.alphas_[self.mse_path_.mean(1).argmin()])
        chosen = self._lasso(self.alpha_).fit(X, y, w)
        self.coef_, self.intercept_ = chosen.coef_, chosen.intercept_
        self.dual_gap_, self.n_iter_ = chosen.dual_gap_, chosen.n_iter_
        return self

    def predict(self, X: Any) -> Any:
        """X coef_ + intercept_, (m,)."""
        return linear_prediction(self, X)

    def _grid(self, X: Any, y: Array, w: Array) -> Array:
        """The values of alpha, largest first."""
        if not isinstance(self.alphas, numbers.Integral):
            alphas = np.sort(np.asarray(self.alphas, dtype=np.float64))[::-1]
            if alphas.ndim != 1 or not len(alphas) or not (alphas > 0).all():
                raise InputError(f"alphas is {self.alphas!r}; expected a number of values, or some")
            return alphas
        require_at_least(1, alphas=self.alphas)
        design, target, _ = self._fold(X, y, w)
        push = design.A.adjoint(target)[0].numpy() / design.penalty_weights(1)
        top = float((push if self.positive else np.abs(push)).max())
        top = max(top, np.finfo(float).resolution)
        return np.geomspace(top, top * self.eps, int(self.alphas))

    def _lasso(self, alpha: float) -> Lasso:
        return Lasso(
            alpha,
            fit_intercept=self.fit_intercept,
            max_iter=self.max_iter,
            tol=self.tol,
            positive=self.positive,
        )

    def _fold(self, X: Any, y: Array, w: Array) -> tuple[Design, torch.Tensor, float]:
        """The design of some samples, its target (1, m), and the mean of y."""
        root = np.sqrt(w / w.sum())
        design = prepare(X, root, centre=self.fit_intercept, standardise=True)
        middle = float(np.square(root) @ y) if self.fit_intercept else 0.0
        return design, torch.from_numpy((y - middle) * root)[None], middle

    def _errors(self, X: Any, y: Array, w: Array, train: Array, test: Array) -> Array:
        """Mean squared errors on `test` of fits to `train`, one for each alpha."""
        if not w[train].any() or not w[test].any():
            raise InputError("all samples of a fold have weight 0; use other folds")
        design, target, middle = self._fold(X[train], y[train], w[train])
        x, errors = None, []
        for alpha in self.alphas_:
            problem = self._lasso(float(alpha))._problem(design, target)
            x = certified(problem, self.tol, int(self.max_iter), x).x.numpy()
            coef, shift = design.coefficients(x[0])
            missed = y[test] - middle - shift - safe_sparse_dot(X[test], coef)
            errors.append(np.average(missed**2, weights=w[test]))
        return np.array(errors)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class LogisticRegressionCV(LinearClassifier):
    """`LogisticRegression` with the C and the l1_ratio that score best on held-out folds.

    `Cs` is a number of values from 1e-4 to 1e4, or the values themselves. `scores_` is
    (folds, l1_ratios, Cs); `scoring` is accuracy by default.
    """

    def __init__(
        self,
        *,
        Cs: Any = 10,
        l1_ratios: Any = (0.0,),
        fit_intercept: bool = True,
        cv: Any = None,
        scoring: Any = None,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        class_weight: Any = None,
    ):
        self.Cs = Cs
        self.l1_ratios = l1_ratios
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.scoring = scoring
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit X (m, n), dense or sparse, to labels y (m,)."""
        require_at_least(0, tol=self.tol)
        require_at_least(1, max_iter=self.max_iter)
        for ratio in np.atleast_1d(self.l1_ratios):
            require_ratio(l1_ratios=ratio)
        X, numbers_, self.classes_, w = labelled(self, X, y, sample_weight)
        data = X, numbers_, w, sample_weight
        self.Cs_, self.l1_ratios_ = self._grid(), np.atleast_1d(self.l1_ratios).astype(float)
        folds = list(check_cv(self.cv, numbers_, classifier=True).split(X, numbers_))
        self.scores_ = np.array(
            [[self._scores(data, fold, ratio) for ratio in self.l1_ratios_] for fold in folds]
        )
        best = np.unravel_index(self.scores_.mean(0).argmax(), self.scores_.shape[1:])
        self.l1_ratio_, self.C_ = float(self.l1_ratios_[best[0]]), float(self.Cs_[best[1]])
        model = Model(X, numbers_, len(self.classes_), w, self.l1_ratio_, self.fit_intercept)
        solution = model.fit(self.C_, self.tol, self.max_iter)
        self.coef_, self.intercept_ = model.coefficients(solution)
        self.dual_gap_ = float(solution.gap[0])
        self.n_iter_ = solution.iterations.numpy().astype(np.int32)
        return self

    def _grid(self) -> Array:
        """The values of C, smallest first."""
        if isinstance(self.Cs, numbers.Integral):
            require_at_least(1, Cs=self.Cs)
            return np.logspace(-4, 4, int(self.Cs))
        Cs = np.sort(np.asarray(self.Cs, dtype=np.float64))
        if Cs.ndim != 1 or not len(Cs) or not (Cs > 0).all():
            raise InputError(f"Cs is {self.Cs!r}; expected a number of values, or some > 0")
        return Cs

    def _scores(
        self, data: tuple[Any, Any, Array, Any], fold: tuple[Array, Array], l1_ratio: float
    ) -> list[float]:
        """Scores on one part of a fold of fits to the other, one for each C."""
        (X, y, w, sample_weight), (train, test) = data, fold
        given = {} if sample_weight is None else {"sample_weight": np.asarray(sample_weight)[test]}
        C = len(self.classes_)
        if len(np.unique(y[train][w[train] > 0])) < C:
            raise InputError(f"a fold lacks one of the {C} classes; use fewer folds or another cv")
        scorer = get_scorer("accuracy" if self.scoring is None else self.scoring)
        model = Model(X[train], y[train], C, w[train], l1_ratio, self.fit_intercept)
        fitted = LogisticRegression()
        fitted.classes_, fitted.n_features_in_ = self.classes_, X.shape[1]
        start, scores = None, []
        for value in self.Cs_:
            solution = model.fit(value, self.tol, self.max_iter, start)
            start = solution.x.numpy()
            fitted.coef_, fitted.intercept_ = model.coefficients(solution)
            truth = self.classes_[y[test]]
            scores.append(float(scorer(fitted, X[test], truth, **given)))
        return scores
