"""Least squares with an l1 or elastic net penalty: Lasso, ElasticNet."""

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.metadata_routing import UNUSED

from proxlearn.sklearn.fitting import require_at_least, require_ratio, validated
from proxlearn.sklearn.gram import check_gram
from proxlearn.sklearn.regression_path import enet_path, lasso_path
from proxlearn.sklearn.regressor import LeastSquaresRegressor, feature_weights


class ElasticNet(LeastSquaresRegressor):
    """Linear regression with an l1 and an l2 penalty.

    The coefficients w and the intercept c minimise::

        1/(2 sum_i s_i) sum_i s_i (y_i - x_i w - c)^2
            + alpha l1_ratio |w|_1 + alpha (1 - l1_ratio)/2 |w|^2

    where s are the sample weights, all 1 by default. The answer is certified: the duality gap is
    at most `tol` times the objective, or a `ConvergenceWarning` says that it is not.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the penalty.
    l1_ratio : float, default=0.5
        Share of the l1 norm in the penalty, from 0 to 1.
    fit_intercept : bool, default=True
        Whether c is fitted; it is 0 otherwise.
    precompute : bool or array, default=False
        Without effect: the solver decides which products it keeps. A Gram matrix is checked.
    max_iter : int, default=10000
        Largest number of working sets.
    copy_X : bool, default=True
        Without effect: X is never changed.
    tol : float, default=1e-6
        Largest duality gap, relative to the objective.
    warm_start : bool, default=False
        Whether `fit` starts from the coefficients of the last fit.
    positive : bool, default=False
        Whether the coefficients are constrained to be >= 0.
    random_state : object, default=None
        Without effect: the solver draws no random numbers.
    selection : {"cyclic", "random"}, default="cyclic"
        Without effect, as for `random_state`.
    penalty_weights : array (n,), optional
        Weights >= 0 of the columns in the penalty, 1 by default; a column of weight 0 is not
        penalised (adaptive LASSO).

    Attributes
    ----------
    coef_ : array (n,) or (T, n)
        Coefficients, in the precision of X.
    sparse_coef_ : sparse matrix (1, n) or (T, n)
        The same.
    intercept_ : float or array (T,)
        The constant c.
    dual_gap_ : float or array (T,)
        Upper bound on the distance of the objective to its minimum.
    n_iter_ : int or list of int
        Number of working sets.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array (n,)
        Their names, where all are strings.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from proxlearn.sklearn import ElasticNet
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ElasticNet(alpha=0.01, l1_ratio=0.9).fit(X, y)
    >>> round(model.score(X, y), 3)
    0.491
    """

    __metadata_request__fit: ClassVar[dict[str, str]] = {"check_input": UNUSED}

    path = staticmethod(enet_path)

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        precompute: Any = False,
        max_iter: int = 10_000,
        copy_X: bool = True,
        tol: float = 1e-6,
        warm_start: bool = False,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        penalty_weights: Any = None,
    ):
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.max_iter = max_iter
        self.copy_X = copy_X
        self.tol = tol
        self.warm_start = warm_start
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.penalty_weights = penalty_weights

    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> Any:
        """Fit the coefficients.

        Parameters
        ----------
        X : array or sparse matrix (m, n)
            float32 and float64 in C or Fortran order, and CSC matrices, are used in place.
        y : array (m,) or (m, T)
            One target, or several, each of which is fitted on its own.
        sample_weight : array (m,), optional
            Weights >= 0; only their ratios matter.
        check_input : bool, default=True
            Whether X and y are validated.

        Returns
        -------
        self
        """
        require_at_least(0, alpha=self.alpha)
        ratio = self._ratio()
        if check_input:
            X, y = validated(self, X, y, y_numeric=True, multi_output=True)
        if not isinstance(self.precompute, bool):
            check_gram(self.precompute, X, sample_weight, self.fit_intercept)
        strength = self.alpha * feature_weights(self.penalty_weights, X.shape[1])
        lower = 0.0 if self.positive else -np.inf
        penalty = {"l1": ratio * strength, "l2": (1.0 - ratio) * strength, "lower": lower}
        return self._fit(X, y, sample_weight, penalty)

    def _ratio(self) -> float:
        require_ratio(l1_ratio=self.l1_ratio)
        return float(self.l1_ratio)


class Lasso(ElasticNet):
    """Linear regression with an l1 penalty.

    The coefficients w and the intercept c minimise::

        1/(2 sum_i s_i) sum_i s_i (y_i - x_i w - c)^2 + alpha |w|_1

    where s are the sample weights, all 1 by default. The answer is certified: the duality gap is
    at most `tol` times the objective, or a `ConvergenceWarning` says that it is not.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the penalty.
    fit_intercept : bool, default=True
        Whether c is fitted; it is 0 otherwise.
    precompute : bool or array, default=False
        Without effect: the solver decides which products it keeps. A Gram matrix is checked.
    copy_X : bool, default=True
        Without effect: X is never changed.
    max_iter : int, default=10000
        Largest number of working sets.
    tol : float, default=1e-6
        Largest duality gap, relative to the objective.
    warm_start : bool, default=False
        Whether `fit` starts from the coefficients of the last fit.
    positive : bool, default=False
        Whether the coefficients are constrained to be >= 0.
    random_state : object, default=None
        Without effect: the solver draws no random numbers.
    selection : {"cyclic", "random"}, default="cyclic"
        Without effect, as for `random_state`.
    penalty_weights : array (n,), optional
        Weights >= 0 of the columns in the penalty, 1 by default; a column of weight 0 is not
        penalised (adaptive LASSO).

    Attributes
    ----------
    coef_ : array (n,) or (T, n)
        Coefficients, in the precision of X.
    sparse_coef_ : sparse matrix (1, n) or (T, n)
        The same.
    intercept_ : float or array (T,)
        The constant c.
    dual_gap_ : float or array (T,)
        Upper bound on the distance of the objective to its minimum.
    n_iter_ : int or list of int
        Number of working sets.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array (n,)
        Their names, where all are strings.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from proxlearn.sklearn import Lasso
    >>> model = Lasso(alpha=1.0).fit(*load_diabetes(return_X_y=True))
    >>> model.coef_.nonzero()[0].tolist()
    [2, 3, 8]
    """

    path = staticmethod(lasso_path)

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        precompute: Any = False,
        copy_X: bool = True,
        max_iter: int = 10_000,
        tol: float = 1e-6,
        warm_start: bool = False,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        penalty_weights: Any = None,
    ):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.penalty_weights = penalty_weights

    def _ratio(self) -> float:
        return 1.0
