"""MultiTaskLassoCV and MultiTaskElasticNetCV: the weight of the penalty chosen on folds."""

from typing import Any

import numpy as np

from proxlearn.errors import InputError
from proxlearn.sklearn.fitting import Array, limits_of, require_ratio, warn_unless_solved
from proxlearn.sklearn.folds import Fold, training_weights
from proxlearn.sklearn.multi_task import MultiTaskRegressor
from proxlearn.sklearn.regression_path import NO_GRID, enet_path, falling_grid, lasso_path
from proxlearn.sklearn.regressor import Penalty
from proxlearn.sklearn.regressor_cv import RegressorCV
from proxlearn.sklearn.tasks import Tasks


class MultiTaskCV(MultiTaskRegressor, RegressorCV):
    """What the two have in common: all targets have one alpha."""

    def _targets(self, y: Array) -> list[Array]:
        self._require_tasks(y)
        return [y]

    def _penalty(self, features: int, ratio: float) -> Penalty:
        return {"level": ratio, "l2": 1.0 - ratio}

    def _grid(self, X: Any, y: Array, w: Array | None, ratio: float) -> Array:
        def top() -> float:
            if ratio == 0:
                raise InputError(NO_GRID)
            s = np.ones(len(y)) if w is None else w
            return Tasks(X, y, s, self.fit_intercept).largest_level() / (float(s.sum()) * ratio)

        return falling_grid(self.alphas, self.eps, top)

    def _errors(
        self, X: Any, y: Array, w: Array | None, folds: list[Fold], penalty: Penalty, grid: Array
    ) -> tuple[Array, Array]:
        """Mean squared errors on held-out samples, (alphas, folds), and largest gaps (alphas,)."""
        limits = limits_of(self, bool(grid.all()))
        errors, gaps = np.empty((len(grid), len(folds))), np.zeros(len(grid))
        weights = training_weights(folds, w, X.shape[0])
        for k, (s, (_, test)) in enumerate(zip(weights, folds, strict=True)):
            tasks, strengths = Tasks(X, y, s, self.fit_intercept), s.sum() * grid
            answers = list(
                tasks.path(strengths * penalty["level"], strengths * penalty["l2"], limits)
            )
            warn_unless_solved(answers, self.tol, stacklevel=5)
            held_out, own = X[test], None if w is None else w[test]
            for i, answer in enumerate(answers):
                made = held_out @ answer.x.reshape(y.shape[1], -1).T + answer.intercept[0]
                errors[i, k] = np.average(np.square(y[test] - made).mean(axis=1), weights=own)
                gaps[i] = max(gaps[i], float(answer.gap[0] / max(answer.objective[0], 1e-300)))
        return errors, gaps


class MultiTaskElasticNetCV(MultiTaskCV):
    """`MultiTaskElasticNet` with the alpha and l1_ratio whose error on folds is smallest.

    Parameters
    ----------
    l1_ratio : float or array, default=0.5
        Shares of the l2/l1 norm in the penalty, from 0 to 1, among which one is chosen.
    eps : float, default=1e-3
        The smallest alpha of an automatic grid, relative to the largest.
    alphas : int or array, default=100
        Number of values from the smallest alpha whose coefficients are all 0 down to `eps` times
        that, or the values.
    fit_intercept : bool, default=True
        Whether constants are fitted.
    max_iter : int, default=10000
        Largest number of working sets of each fit.
    tol : float, default=1e-6
        Largest duality gap of each fit, relative to its objective.
    cv : int, splitter or iterable, optional
        Folds, as in scikit-learn; 5 by default.
    copy_X : bool, default=True
        Without effect: X is never changed.
    verbose : bool or int, default=0
        Without effect.
    n_jobs : int, optional
        Without effect.
    random_state : object, default=None
        Without effect: the solver draws no random numbers.
    selection : {"cyclic", "random"}, default="cyclic"
        Without effect, as for `random_state`.

    Attributes
    ----------
    alpha_ : float
        The chosen alpha, which all targets have.
    l1_ratio_ : float
        The chosen share of the l2/l1 norm.
    alphas_ : array (K,) or (l1_ratios, K)
        The values of alpha, largest first.
    mse_path_ : array (K, folds) or (l1_ratios, K, folds)
        Mean squared errors on the held-out samples.
    gap_path_ : array (K,) or (l1_ratios, K)
        Largest relative duality gap over the folds, for each alpha.
    coef_ : array (T, n)
        Coefficients of the fit to all samples, in the precision of X.
    intercept_ : array (T,)
        Its constants.
    dual_gap_ : float
        Upper bound on the distance of its objective to the minimum.
    n_iter_ : int
        Its number of working sets.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array (n,)
        Their names, where all are strings.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from proxlearn.sklearn import MultiTaskElasticNetCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = MultiTaskElasticNetCV(l1_ratio=[0.5, 1.0], alphas=5)
    >>> model.fit(X, np.column_stack([y, -y])).mse_path_.shape
    (2, 5, 5)
    """

    path = staticmethod(enet_path)

    def __init__(
        self,
        *,
        l1_ratio: Any = 0.5,
        eps: float = 1e-3,
        alphas: Any = 100,
        fit_intercept: bool = True,
        max_iter: int = 10_000,
        tol: float = 1e-6,
        cv: Any = None,
        copy_X: bool = True,
        verbose: Any = 0,
        n_jobs: int | None = None,
        random_state: Any = None,
        selection: str = "cyclic",
    ):
        self.l1_ratio = l1_ratio
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.cv = cv
        self.copy_X = copy_X
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.selection = selection

    def _ratios(self) -> Array:
        ratios = np.atleast_1d(np.asarray(self.l1_ratio, dtype=np.float64))
        for ratio in ratios:
            require_ratio(l1_ratio=ratio)
        return ratios


class MultiTaskLassoCV(MultiTaskCV):
    """`MultiTaskLasso` with the alpha whose squared error on held-out folds is smallest.

    Parameters
    ----------
    eps : float, default=1e-3
        The smallest alpha of an automatic grid, relative to the largest.
    alphas : int or array, default=100
        Number of values from the smallest alpha whose coefficients are all 0 down to `eps` times
        that, or the values.
    fit_intercept : bool, default=True
        Whether constants are fitted.
    max_iter : int, default=10000
        Largest number of working sets of each fit.
    tol : float, default=1e-6
        Largest duality gap of each fit, relative to its objective.
    copy_X : bool, default=True
        Without effect: X is never changed.
    cv : int, splitter or iterable, optional
        Folds, as in scikit-learn; 5 by default.
    verbose : bool or int, default=False
        Without effect.
    n_jobs : int, optional
        Without effect.
    random_state : object, default=None
        Without effect: the solver draws no random numbers.
    selection : {"cyclic", "random"}, default="cyclic"
        Without effect, as for `random_state`.

    Attributes
    ----------
    alpha_ : float
        The chosen alpha, which all targets have.
    alphas_ : array (K,)
        The values of alpha, largest first.
    mse_path_ : array (K, folds)
        Mean squared errors on the held-out samples.
    gap_path_ : array (K,)
        Largest relative duality gap over the folds, for each alpha.
    coef_ : array (T, n)
        Coefficients of the fit to all samples, in the precision of X.
    intercept_ : array (T,)
        Its constants.
    dual_gap_ : float
        Upper bound on the distance of its objective to the minimum.
    n_iter_ : int
        Its number of working sets.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array (n,)
        Their names, where all are strings.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from proxlearn.sklearn import MultiTaskLassoCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = MultiTaskLassoCV(alphas=5).fit(X, np.column_stack([y, -y]))
    >>> model.mse_path_.shape, model.coef_.shape
    ((5, 5), (2, 10))
    """

    path = staticmethod(lasso_path)

    def __init__(
        self,
        *,
        eps: float = 1e-3,
        alphas: Any = 100,
        fit_intercept: bool = True,
        max_iter: int = 10_000,
        tol: float = 1e-6,
        copy_X: bool = True,
        cv: Any = None,
        verbose: Any = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        selection: str = "cyclic",
    ):
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.copy_X = copy_X
        self.cv = cv
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.selection = selection
