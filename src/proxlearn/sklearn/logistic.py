"""Logistic regression with an l1, l2 or elastic net penalty, binary and multinomial."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.special import expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from proxlearn.errors import InputError
from proxlearn.penalties import L1, Penalty, Zero
from proxlearn.penalties import ElasticNet as ElasticNetPenalty
from proxlearn.problem import Problem
from proxlearn.sklearn.design import Array, Design, prepare, sample_weights
from proxlearn.sklearn.fitting import (
    certified_smooth,
    linear_prediction,
    require_at_least,
    require_ratio,
)
from proxlearn.smooth import GLM, Logistic, Softmax
from proxlearn.solution import Solution


class LinearClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Predictions from `coef_`, `intercept_` and `classes_`."""

    def decision_function(self, X: Any) -> Any:
        """Scores, (m,) for two classes, otherwise (m, C)."""
        scores = linear_prediction(self, X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> Any:
        """The likeliest class of each sample, (m,)."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> Any:
        """Probabilities, (m, C)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return softmax(scores, axis=1)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities, (m, C)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([-np.logaddexp(0, scores), -np.logaddexp(0, -scores)])
        return log_softmax(scores, axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class LogisticRegression(LinearClassifier):
    """``C sum_i loss_i + l1_ratio |W|_1 + (1 - l1_ratio)/2 |W|^2``, scaled as in scikit-learn.

    Two classes have one row of coefficients, more have one each (multinomial). An infinite C has
    no penalty. `tol` bounds the certified duality gap relative to the objective; `dual_gap_` is
    the gap of the objective divided by C and the sum of the sample weights.
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        l1_ratio: float = 0.0,
        tol: float = 1e-6,
        fit_intercept: bool = True,
        class_weight: Any = None,
        max_iter: int = 10_000,
        warm_start: bool = False,
    ):
        self.C = C
        self.l1_ratio = l1_ratio
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.warm_start = warm_start

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit X (m, n), dense or sparse, to labels y (m,)."""
        require_at_least(0, tol=self.tol)
        require_at_least(1, max_iter=self.max_iter)
        require_at_least(0, strict=True, C=1.0 if np.inf == self.C else self.C)
        require_ratio(l1_ratio=self.l1_ratio)
        X, y, self.classes_, w = labelled(self, X, y, sample_weight)
        model = Model(X, y, len(self.classes_), w, self.l1_ratio, self.fit_intercept)
        start = None
        if self.warm_start and hasattr(self, "coef_"):
            start = model.design.solution(self.coef_, self.intercept_)
        solution = model.fit(self.C, self.tol, self.max_iter, start)
        self.coef_: Array
        self.intercept_: Array
        self.coef_, self.intercept_ = model.coefficients(solution)
        self.dual_gap_ = float(solution.gap[0])
        self.n_iter_ = solution.iterations.numpy().astype(np.int32)
        return self


def labelled(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any, Array]:
    """Validated X, class numbers, the classes, and weights with those of the classes in them."""
    X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=np.float64)
    check_classification_targets(y)
    classes, numbers = np.unique(y, return_inverse=True)
    w = sample_weights(sample_weight, X.shape[0])
    if estimator.class_weight is not None:
        w = w * compute_class_weight(estimator.class_weight, classes=classes, y=y)[numbers]
    present = np.unique(numbers[w > 0])
    if len(present) < 2:
        raise InputError(f"y holds {len(present)} class; expected samples of at least two classes")
    return X, numbers, classes, w


@dataclass
class Model:
    """The problems that one data set makes, for any C; the design is prepared once."""

    X: Any
    numbers: Any
    classes: int
    w: Array
    l1_ratio: float
    fit_intercept: bool

    def __post_init__(self) -> None:
        used = self.w > 0
        X, numbers, w = self.X[used], self.numbers[used], self.w[used]
        self.total = float(w.sum())
        root = np.sqrt(w / self.total)
        one = self.fit_intercept
        whole = self.l1_ratio in (0, 1)
        self.design = prepare(X, root, centre=one, standardise=whole, intercept=one)
        self.f = _loss(self.design, numbers, self.classes, root)

    def fit(self, C: float, tol: float, max_iter: int, start: Array | None = None) -> Solution:
        """The solution for C, from coefficients x (rows, n) or the default start."""
        problem = Problem(self.f, self._penalty(1 / (C * self.total)), single=True)
        x0 = None if start is None else start.reshape(1, -1)
        return certified_smooth(problem, tol, int(max_iter), x0)

    def coefficients(self, solution: Solution) -> tuple[Array, Array]:
        """coef (rows, n) and intercept (rows,); one row for two classes."""
        rows = 1 if self.classes == 2 else self.classes
        coef, intercept = self.design.coefficients(solution.x.numpy().reshape(rows, -1))
        if not self.fit_intercept:
            return coef, np.zeros(rows)
        # A constant added to all classes changes nothing: as in scikit-learn their mean is 0.
        return coef, intercept - intercept.mean() if rows > 1 else intercept

    def _penalty(self, lam: float) -> Penalty:
        if lam == 0:
            return Zero()
        rows = 1 if self.classes == 2 else self.classes
        weights = torch.from_numpy(
            np.tile(self.design.penalty_weights(1 if self.l1_ratio == 1 else 2), rows)
        )[None]
        first, second = (
            torch.tensor([lam * share], dtype=torch.float64)
            for share in (self.l1_ratio, 1 - self.l1_ratio)
        )
        if self.l1_ratio == 1:
            return L1(first, weights)
        return ElasticNetPenalty(first, second, weights)


def _loss(design: Design, numbers: Any, classes: int, root: Array) -> GLM:
    roots = torch.from_numpy(root)[None]
    if classes == 2:
        return Logistic(design.A, torch.from_numpy(numbers.astype(np.float64))[None], roots)
    one_hot = np.eye(classes)[numbers].T[None]
    return Softmax(design.A, torch.from_numpy(np.ascontiguousarray(one_hot)), classes, roots[None])
