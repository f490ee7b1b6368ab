"""Logistic regression with more than two classes: one softmax problem of the core."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from proxlearn.core.glm import Answer, Limits, describe
from proxlearn.sklearn.fitting import Array, aim, warn_unless_solved
from proxlearn.sklearn.ridge import solve


@dataclass
class Multinomial:
    """The problems that one data set makes, for any C."""

    X: Any
    numbers: Any
    classes: int
    w: Array
    l1_ratio: float
    fit_intercept: bool
    positive: bool = False
    weights: Any = 1.0
    """Weights of the columns in the penalty."""

    def fit(self, C: float, tol: float, max_iter: int, start: Array | None = None) -> Answer:
        """The answer for C, from coefficients (classes, n + 1) with intercepts, or from 0."""
        weights = np.tile(self.weights, self.classes) if np.ndim(self.weights) else self.weights
        l1, l2 = self.l1_ratio / C * weights, (1 - self.l1_ratio) / C * weights
        glm = describe(
            self.X, self.numbers, "softmax", l1=l1, l2=l2,
            lower=0.0 if self.positive else -np.inf, sample_weight=self.w,
            intercept=self.fit_intercept, options={"classes": self.classes},
        )  # fmt: skip
        x0 = None
        if start is not None:
            x0 = np.concatenate([start[:, :-1].ravel(), start[:, -1] * self.fit_intercept])
        answer = solve(glm, x0, Limits(aim(tol), max_iter), tol)
        if answer.status[0] == 1 and np.isinf(answer.gap[0]):
            # Where no gap exists, violations of the optimality conditions have to meet `tol` alone.
            x0 = np.concatenate([answer.x[0], np.ravel(answer.intercept[0] * self.fit_intercept)])
            answer = solve(glm, x0, Limits(tol, max_iter))
        warn_unless_solved(answer, tol)
        if np.isfinite(C) or self.positive:
            return answer
        # Without a penalty a vector may be added to the coefficients of all classes, which changes
        # nothing. As in scikit-learn it is chosen so that their means are 0.
        coef = answer.x.reshape(1, self.classes, -1)
        return replace(answer, x=(coef - coef.mean(axis=1, keepdims=True)).reshape(1, -1))

    def coefficients(self, answer: Answer) -> tuple[Any, Array]:
        """coef (C, n), in the precision of X, and intercept (C,)."""
        coef = answer.x[0].reshape(self.classes, -1)
        if not self.fit_intercept:
            return coef, np.zeros(self.classes)
        # A constant added to all classes changes nothing: as in scikit-learn their mean is 0.
        return coef, answer.intercept[0] - answer.intercept[0].mean()
