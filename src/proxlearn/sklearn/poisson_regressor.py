"""PoissonRegressor: counts as exponentials of a linear function, with an l1 or l2 penalty."""

from typing import Any

import numpy as np

from proxlearn.core.glm import describe
from proxlearn.errors import InputError
from proxlearn.sklearn.declaration import estimator
from proxlearn.sklearn.fitting import (
    Array,
    last_point,
    limits_of,
    linear_prediction,
    require_at_least,
    warn_unless_solved,
    writable,
)
from proxlearn.sklearn.regressor import Regressor, penalises_all, times
from proxlearn.sklearn.ridge import solve
from proxlearn.sklearn.shared_parameters import L1Ratio, SeparablePenalty


@estimator
class PoissonRegressor(L1Ratio, SeparablePenalty, Regressor):
    """Poisson regression with an l1, l2 or elastic net penalty.

    The coefficients w and the intercept c minimise::

        1/(sum_i s_i) sum_i s_i (exp(x_i w + c) - y_i (x_i w + c))
            + alpha l1_ratio |w|_1 + alpha (1 - l1_ratio)/2 |w|^2

    where s are the sample weights, all 1 by default. The answer is certified: the duality gap is
    at most `tol` times the objective, or a `ConvergenceWarning` says that it is not.

    Parameters
    ----------
    alpha : float
        Weight of the penalty.
    l1_ratio : float
        Share of the l1 norm in the penalty, from 0 to 1; scikit-learn's estimator has l2 alone.
    solver : str
        Without effect: every penalty has the same solver.
    warm_start : bool
        Whether `fit` starts from the coefficients of the last fit.
    verbose : int
        Without effect.

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

    Examples
    --------
    >>> import numpy as np
    >>> from proxlearn.sklearn import PoissonRegressor
    >>> X = np.array([[1.0, 2.0], [2.0, 3.0], [3.0, 4.0], [4.0, 3.0]])
    >>> PoissonRegressor().fit(X, [12, 17, 22, 21]).coef_.round(3)
    array([0.121, 0.158])
    """

    alpha: float = 1.0
    l1_ratio: float = 0.0
    solver: str = "lbfgs"
    tol: float = 1e-4
    warm_start: bool = False
    verbose: Any = 0

    takes_several_targets = False

    def _check_parameters(self) -> None:
        require_at_least(0, alpha=self.alpha)
        self._ratio()

    def _minimise(self, X: Any, y: Any, w: Array | None) -> None:
        y = writable(np.asarray(y, dtype=np.float64))
        if (y < 0).any():
            raise InputError(
                "Some value(s) of y are out of the valid range of the loss 'HalfPoissonLoss': "
                f"y holds {y.min():g}; expected numbers >= 0"
            )
        s = np.full(X.shape[0], 1.0 / X.shape[0]) if w is None else w / w.sum()
        if not (s @ y) > 0:
            raise InputError("every y is 0; expected at least one above 0")
        penalty = times(self.alpha, self._penalty(X.shape[1], self._ratio()))
        intercept = bool(self.fit_intercept)
        glm = describe(X, y, "poisson", **penalty, sample_weight=s, intercept=intercept)
        start, limits = last_point(self, X.shape[1]), limits_of(self, penalises_all(penalty))
        answer = solve(glm, start, limits, self.tol)
        warn_unless_solved(answer, self.tol)
        self.coef_, self.intercept_ = answer.x[0], float(answer.intercept[0])
        self.dual_gap_, self.n_iter_ = float(answer.gap[0]), int(answer.iterations[0])

    def predict(self, X: Any) -> Any:
        """Predict means.

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
        tags.target_tags.positive_only = True
        return tags
