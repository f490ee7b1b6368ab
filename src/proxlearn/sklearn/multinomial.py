"""Logistic regression with more than two classes: one softmax problem of the core."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from proxlearn.core.glm import Answer, Limits, describe, solve_glm
from proxlearn.sklearn.fitting import Array, warn_unless_solved

MOST_DENSE = 2000
"""Coefficients of the largest problem without an l1 penalty that the core solves.

None of them is zero then, so that the core's model has them all. Larger problems are solved by
first-order methods (`multinomial_loop`), which need PyTorch.
"""


@dataclass
class Multinomial:
    """The problems that one data set makes, for any C."""

    X: Any
    numbers: Any
    classes: int
    w: Array
    l1_ratio: float
    fit_intercept: bool

    def fit(self, C: float, tol: float, max_iter: int, start: Array | None = None) -> Answer:
        """The answer for C, from coefficients (classes, n + 1) with intercepts, or from 0."""
        if self.l1_ratio == 0 and self.classes * self.X.shape[1] > MOST_DENSE:
            return self._by_loop(C, tol, max_iter, start)
        glm = describe(
            self.X, self.numbers, "softmax", l1=self.l1_ratio / C, l2=(1 - self.l1_ratio) / C,
            sample_weight=self.w, intercept=self.fit_intercept, options={"classes": self.classes},
        )  # fmt: skip
        x0 = None
        if start is not None:
            x0 = np.concatenate([start[:, :-1].ravel(), start[:, -1] * self.fit_intercept])
        answer = solve_glm(glm, x0, Limits(tol, max_iter))
        warn_unless_solved(answer, tol, stacklevel=4)
        return answer

    def coefficients(self, answer: Answer) -> tuple[Any, Array]:
        """coef (C, n), in the precision of X, and intercept (C,)."""
        coef = answer.x[0].reshape(self.classes, -1)
        if not self.fit_intercept:
            return coef, np.zeros(self.classes)
        # A constant added to all classes changes nothing: as in scikit-learn their mean is 0.
        return coef, answer.intercept[0] - answer.intercept[0].mean()

    def gap(self, answer: Answer, C: float) -> float:
        """The duality gap of scikit-learn's objective; of the loss alone where C is infinite."""
        return float(answer.gap[0]) * (C if np.isfinite(C) else 1.0)

    def _by_loop(self, C: float, tol: float, max_iter: int, start: Array | None) -> Answer:
        from proxlearn.sklearn.multinomial_loop import fit

        return fit(self, C, tol, max_iter, start)
