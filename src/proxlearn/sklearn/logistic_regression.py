"""Logistic regression with an l1, l2 or elastic net penalty, binary and multinomial."""

from dataclasses import field
from typing import Any

import numpy as np
import scipy.sparse

from proxlearn.core.glm import Answer, Glm, Limits, describe
from proxlearn.errors import InputError, unknown
from proxlearn.sklearn.classifier import LogisticClassifier, labelled
from proxlearn.sklearn.declaration import estimator
from proxlearn.sklearn.fitting import (
    Array,
    aim,
    require_at_least,
    require_common,
    require_ratio,
    warn,
    warn_of_gap,
    warn_unless_solved,
)
from proxlearn.sklearn.multinomial import Multinomial
from proxlearn.sklearn.regressor import feature_weights
from proxlearn.sklearn.ridge import solve

PENALTIES = ("deprecated", "l1", "l2", "elasticnet", None)
"""The values of `penalty`; scikit-learn's default "deprecated" leaves it to l1_ratio and C."""


@estimator
class LogisticRegression(LogisticClassifier):
    """Logistic regression with an l1, l2 or elastic net penalty, scaled as in scikit-learn.

    The coefficients w and the intercept c of two classes, with labels y of -1 and 1, minimise::

        C sum_i s_i log(1 + exp(-y_i (x_i w + c))) + l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2

    where s are the weights of samples and classes, all 1 by default. More classes have a row of
    coefficients each (multinomial). The answer is certified: the duality gap is at most `tol`
    times the objective, or a `ConvergenceWarning` says that it is not.

    Parameters
    ----------
    penalty : {"l1", "l2", "elasticnet", None}
        The older way to say `l1_ratio=1`, `l1_ratio=0`, `l1_ratio` as given, and `C=inf`.
    C : float
        Weight of the loss; no penalty where it is infinite.
    l1_ratio : float
        Share of the l1 norm in the penalty, from 0 to 1.
    warm_start : bool
        Whether `fit` starts from the coefficients of the last fit.
    n_jobs : int
        Without effect: a fit is a single problem.

    Attributes
    ----------
    dual_gap_ : float
        Upper bound on the distance of the objective to its minimum; where C is infinite, of the
        loss alone.
    n_iter_ : array (1,)
        Number of working sets.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from proxlearn.sklearn import LogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogisticRegression(C=0.1, l1_ratio=1.0).fit(scale(X), y)
    >>> int((model.coef_ != 0).sum()), round(model.score(scale(X), y), 3)
    (8, 0.974)
    """

    penalty: Any = field(default="deprecated", kw_only=False)
    C: float = 1.0
    l1_ratio: float | None = 0.0
    warm_start: bool = False
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the coefficients.

        Parameters
        ----------
        X : array or sparse matrix (m, n)
            For two classes float32 and float64 in C or Fortran order, and CSC matrices, are used
            in place.
        y : array (m,)
            Labels.
        sample_weight : array (m,), optional
            Weights >= 0.

        Returns
        -------
        self
        """
        C, ratio = self._C_and_ratio()
        limits = logistic_limits(self, np.isfinite(C))
        X, numbers, self.classes_, w = labelled(self, X, y, sample_weight)
        if limits.max_iter == 0:
            self._fit_nothing(X)
        else:
            self.n_iter_ = fit_all(self, X, numbers, w, C, ratio, self._start(X.shape[1]))
        return self

    def _start(self, features: int) -> Array | None:
        """Coefficients and intercepts of the last fit, (rows, n + 1), where they are asked for."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        rows = 1 if len(self.classes_) == 2 else len(self.classes_)
        if self.coef_.shape != (rows, features):
            return None
        return np.column_stack([self.coef_, np.reshape(self.intercept_, (-1, 1))])

    def _fit_nothing(self, X: Any) -> None:
        """Fit without any iteration: coefficients of 0, or of the last fit with `warm_start`."""
        rows = 1 if len(self.classes_) == 2 else len(self.classes_)
        if not (self.warm_start and hasattr(self, "coef_")):
            self.coef_ = np.zeros((rows, X.shape[1]), dtype=X.dtype)
            self.intercept_ = np.zeros(rows, dtype=X.dtype)
        self.dual_gap_, self.n_iter_ = np.inf, np.zeros(1, dtype=np.int32)
        warn_of_gap("MAX_ITER", np.inf, self.tol)

    def _C_and_ratio(self) -> tuple[float, float]:
        """C and the share of l1, from `C` and `l1_ratio` or from the older `penalty`."""
        if self.penalty not in PENALTIES:
            raise unknown("penalty", self.penalty, PENALTIES[1:])
        require_at_least(0, strict=True, C=1.0 if np.inf == self.C else self.C)
        if self.penalty == "elasticnet" and self.l1_ratio is None:
            raise InputError("l1_ratio must be specified when penalty is elasticnet.")
        ratio = 0.0 if self.l1_ratio is None else self.l1_ratio
        require_ratio(l1_ratio=ratio)
        if self.penalty not in ("deprecated", "elasticnet"):
            self._warn_of_contradictions()
        ratio = {"l1": 1.0, "l2": 0.0}.get(self.penalty, float(ratio))
        return (np.inf if self.penalty is None else float(self.C)), ratio

    def _warn_of_contradictions(self) -> None:
        """Warn, with scikit-learn's words, where `penalty` overrides `l1_ratio` or `C`."""
        if self.l1_ratio is not None and 0 < self.l1_ratio < 1:
            warn(
                "l1_ratio parameter is only used when penalty is 'elasticnet'. Got "
                f"(penalty={self.penalty})",
            )
        elif self.penalty == "l2" and self.l1_ratio == 1:
            warn(
                f"Inconsistent values: penalty=l2 with l1_ratio={self.l1_ratio}. Use l1_ratio "
                "only.",
            )
        if self.penalty is None and self.C != 1.0:
            warn("Setting penalty=None will ignore the C and l1_ratio parameters")


def fit_all(
    model: Any, X: Any, numbers: Any, w: Array, C: float, ratio: float, start: Array | None = None
) -> Any:
    """Set `coef_`, `intercept_` and `dual_gap_` of a model; return its numbers of iterations.

    `classes_` is set already. `start` are coefficients (rows, n + 1) with the intercepts last.
    """
    classes, weights = len(model.classes_), feature_weights(model.penalty_weights, X.shape[1])
    if classes > 2:
        problem = Multinomial(
            X, numbers, classes, w, ratio, model.fit_intercept, model.positive, weights
        )
        answer = problem.fit(C, model.tol, int(model.max_iter), start)
        model.coef_, model.intercept_ = problem.coefficients(answer)
    else:
        glm = binary(X, numbers, w, ratio, model.fit_intercept, 1.0 / C, model.positive, weights)
        penalised = np.isfinite(C) and bool(np.all(weights))
        limits = logistic_limits(model, penalised, scipy.sparse.issparse(X))
        answer = solve(glm, start, limits, model.tol)
        warn_unless_solved(answer, model.tol)
        model.coef_, model.intercept_ = answer.x, answer.intercept
    lost = round_intercept(model, answer, float(w.sum()))
    model.dual_gap_ = (float(answer.gap[0]) + lost) * (C if np.isfinite(C) else 1.0)
    least = 1 if classes > 2 else 0
    return np.maximum(answer.iterations, least).astype(np.int32)


def round_intercept(model: Any, answer: Answer, total: float) -> float:
    """Round `intercept_` to the precision of `coef_` where a solved fit stays solved.

    Returns the most that the objective grows. As a function of the constants its curvature is at
    most L, half the sum of the weights, and so its slope at most sqrt(2 L gap). Where a separable
    fit is solved because its objective is rounding of that at 0, no growth is allowed.
    """
    rounded = model.intercept_.astype(model.coef_.dtype, copy=False)
    moved = float(np.linalg.norm(rounded - model.intercept_))
    gap, curvature = float(answer.gap[0]), 0.5 * total
    lost = moved and moved * np.sqrt(2.0 * curvature * gap) + 0.5 * curvature * moved**2
    allowed = model.tol * abs(float(answer.objective[0]))
    if lost and (answer.status[0] == 0 or gap <= allowed) and not gap + lost <= allowed:
        return 0.0
    model.intercept_ = rounded
    return float(lost)


def logistic_limits(estimator: Any, penalised: bool = True, sparse: bool = False) -> Limits:
    """When a solve stops; no iteration at all is allowed, as in scikit-learn.

    A fit to sparse columns ends at `tol` itself: sweeps over them, not Newton steps, take most of
    its time, and a gap of 1e-8 in place of 1e-4 takes up to 1.4 times as long (relathe, C = 1,
    2026-11-19; 11.8 and 16.4 ms).
    """
    require_common(estimator, 0)
    tol = float(estimator.tol)
    return Limits(aim(tol) if penalised and not sparse else tol, int(estimator.max_iter))


def binary(
    X: Any, numbers: Any, w: Array, ratio: float, fit_intercept: bool, strength: float = 1.0,
    positive: bool = False, weights: Any = 1.0,
) -> Glm:  # fmt: skip
    """The problem of classes 0 and 1, or one for each row of weights w (m,) or (folds, m).

    Its objective is scikit-learn's divided by C; `strength` is 1/C. `weights` are those of the
    columns in the penalty.
    """
    l1, l2 = strength * ratio * weights, strength * (1.0 - ratio) * weights
    return describe(
        X, numbers, "logistic", l1=l1, l2=l2,
        lower=0.0 if positive else -np.inf, sample_weight=w, intercept=bool(fit_intercept),
    )  # fmt: skip
