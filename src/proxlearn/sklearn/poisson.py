"""PoissonRegressor: counts as exponentials of a linear function, with an l1 or l2 penalty."""

from typing import Any

import numpy as np

from proxlearn.core.glm import describe
from proxlearn.errors import InputError
from proxlearn.sklearn.fitting import (
    limits_of,
    linear_prediction,
    require_at_least,
    require_ratio,
    sample_weights,
    validated,
    warn_unless_solved,
    writable,
)
from proxlearn.sklearn.regressor import LeastSquaresRegressor, feature_weights, is_full, times
from proxlearn.sklearn.ridge import solve


class PoissonRegressor(LeastSquaresRegressor):
    """Poisson regression with an l1, l2 or elastic net penalty.

    The coefficients w and the intercept c minimise::

        1/(sum_i s_i) sum_i s_i (exp(x_i w + c) - y_i (x_i w + c))
            + alpha l1_ratio |w|_1 + alpha (1 - l1_ratio)/2 |w|^2

    where s are the sample weights, all 1 by default. The answer is certified: the duality gap is
    at most `tol` times the objective, or a `ConvergenceWarning` says that it is not.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the penalty.
    l1_ratio : float, default=0.0
        Share of the l1 norm in the penalty, from 0 to 1; scikit-learn's estimator has l2 alone.
    fit_intercept : bool, default=True
        Whether c is fitted; it is 0 otherwise.
    solver : str, default="lbfgs"
        Without effect: every penalty has the same solver.
    max_iter : int, default=10000
        Largest number of working sets.
    tol : float, default=1e-4
        Largest duality gap, relative to the objective.
    warm_start : bool, default=False
        Whether `fit` starts from the coefficients of the last fit.
    verbose : int, default=0
        Without effect.
    positive : bool, default=False
        Whether the coefficients are constrained to be >= 0.
    penalty_weights : array (n,), optional
        Weights >= 0 of the columns in the penalty, 1 by default.

    Attributes
    ----------
    coef_ : array (n,)
        Coefficients.
    intercept_ : float
        The constant c.
    dual_gap_ : float
        Upper bound on the distance of the objective to its minimum.
    n_iter_ : int
        Number of working sets.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array (n,)
        Their names, where all are strings.

    Examples
    --------
    >>> import numpy as np
    >>> from proxlearn.sklearn import PoissonRegressor
    >>> X = np.array([[1.0, 2.0], [2.0, 3.0], [3.0, 4.0], [4.0, 3.0]])
    >>> PoissonRegressor().fit(X, [12, 17, 22, 21]).coef_.round(3)
    array([0.121, 0.158])
    """

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        l1_ratio: float = 0.0,
        fit_intercept: bool = True,
        solver: str = "lbfgs",
        max_iter: int = 10_000,
        tol: float = 1e-4,
        warm_start: bool = False,
        verbose: Any = 0,
        positive: bool = False,
        penalty_weights: Any = None,
    ):
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.verbose = verbose
        self.positive = positive
        self.penalty_weights = penalty_weights

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the coefficients.

        Parameters
        ----------
        X : array or sparse matrix (m, n)
        y : array (m,)
            Counts, or other numbers >= 0.
        sample_weight : array (m,), optional
            Weights >= 0; only their ratios matter.

        Returns
        -------
        self
        """
        require_at_least(0, alpha=self.alpha)
        require_ratio(l1_ratio=self.l1_ratio)
        X, y = validated(self, X, y, y_numeric=True)
        y = writable(np.asarray(y, dtype=np.float64))
        if (y < 0).any():
            raise InputError(
                "Some value(s) of y are out of the valid range of the loss 'HalfPoissonLoss': "
                f"y holds {y.min():g}; expected numbers >= 0"
            )
        w = sample_weights(sample_weight, X.shape[0])
        s = np.full(X.shape[0], 1.0 / X.shape[0]) if w is None else w / w.sum()
        if not (s @ y) > 0:
            raise InputError("every y is 0; expected at least one above 0")
        weights = feature_weights(self.penalty_weights, X.shape[1])
        lower = 0.0 if self.positive else -np.inf
        shares = {"l1": self.l1_ratio * weights, "l2": (1.0 - self.l1_ratio) * weights}
        penalty = times(self.alpha, shares | {"lower": lower})
        intercept = bool(self.fit_intercept)
        glm = describe(X, y, "poisson", **penalty, sample_weight=s, intercept=intercept)
        start = None
        if self.warm_start and len(getattr(self, "coef_", ())) == X.shape[1]:
            start = np.append(self.coef_, self.intercept_)
        answer = solve(glm, start, limits_of(self, is_full(penalty)), self.tol)
        warn_unless_solved(answer, self.tol)
        self.coef_, self.intercept_ = answer.x[0], float(answer.intercept[0])
        self.dual_gap_, self.n_iter_ = float(answer.gap[0]), int(answer.iterations[0])
        return self

    def predict(self, X: Any) -> Any:
        """Predict means.

        Parameters
        ----------
        X : array or sparse matrix (m, n)

        Returns
        -------
        array (m,)
            exp(X coef_ + intercept_).
        """
        return np.exp(linear_prediction(self, X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of the deviance that is explained, as in scikit-learn.

        Parameters
        ----------
        X : array or sparse matrix (m, n)
        y : array (m,)
        sample_weight : array (m,), optional

        Returns
        -------
        float
        """
        from sklearn.metrics import d2_tweedie_score

        made = self.predict(X)
        return float(d2_tweedie_score(y, made, sample_weight=sample_weight, power=1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        tags.target_tags.positive_only = True
        return tags
