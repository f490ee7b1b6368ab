"""MultiTaskLassoCV and MultiTaskElasticNetCV: the weight of the penalty chosen on folds."""

from typing import Any

import numpy as np

from proxlearn.errors import InputError
from proxlearn.sklearn.declaration import estimator
from proxlearn.sklearn.fitting import Array, limits_of, warn_unless_solved
from proxlearn.sklearn.folds import Fold, training_weights
from proxlearn.sklearn.multi_task import MultiTask
from proxlearn.sklearn.multi_task_problem import Tasks
from proxlearn.sklearn.regression_path import NO_GRID, enet_path, lasso_path
from proxlearn.sklearn.regressor import Penalty
from proxlearn.sklearn.regressor_cv import RegressorCV
from proxlearn.sklearn.shared_parameters import L1Ratios, OnlyL1


@estimator
class MultiTaskCV(MultiTask, RegressorCV):
    """What the two share: all targets have one alpha.

    Parameters
    ----------
    verbose : bool or int
        Without effect.
    n_jobs : int
        Without effect.

    Attributes
    ----------
    alpha_ : float
        The chosen alpha, which all targets have.
    """

    verbose: Any = False

    def _targets(self, y: Array) -> list[Array]:
        return [y]

    def _largest_alpha(self, X: Any, y: Array, w: Array | None, ratio: float) -> float:
        if ratio == 0:
            raise InputError(NO_GRID)
        s = np.ones(len(y)) if w is None else w
        return Tasks(X, y, s, self.fit_intercept).largest_level() / (float(s.sum()) * ratio)

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
            warn_unless_solved(answers, self.tol)
            held_out, own = X[test], None if w is None else w[test]
            for i, answer in enumerate(answers):
                made = held_out @ answer.x.reshape(y.shape[1], -1).T + answer.intercept[0]
                errors[i, k] = np.average(np.square(y[test] - made).mean(axis=1), weights=own)
                gaps[i] = max(gaps[i], float(answer.gap[0] / max(answer.objective[0], 1e-300)))
        return errors, gaps


@estimator
class MultiTaskElasticNetCV(L1Ratios, MultiTaskCV):
    """`MultiTaskElasticNet` with the alpha and l1_ratio whose error on folds is smallest.

    Parameters
    ----------
    l1_ratio : float or array
        Shares of the l2/l1 norm in the penalty, from 0 to 1, among which one is chosen.

    Attributes
    ----------
    l1_ratio_ : float
        The chosen share of the l2/l1 norm.

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
    verbose: Any = 0


@estimator
class MultiTaskLassoCV(OnlyL1, MultiTaskCV):
    """`MultiTaskLasso` with the alpha whose squared error on held-out folds is smallest.

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
