"""Several targets that share their columns: MultiTaskLasso and MultiTaskElasticNet."""

from typing import Any

import numpy as np

from proxlearn.errors import InputError
from proxlearn.sklearn.declaration import estimator
from proxlearn.sklearn.fitting import Array, limits_of, warn_unless_solved
from proxlearn.sklearn.multi_task_problem import Tasks
from proxlearn.sklearn.regression_path import enet_path, lasso_path
from proxlearn.sklearn.regressor import PenalisedRegressor, Penalty, Regressor, penalises_all
from proxlearn.sklearn.shared_parameters import Ignored, L1Ratio


@estimator
class MultiTask(Ignored, Regressor):
    """The fit of several targets at once.

    Attributes
    ----------
    coef_ : array (T, n)
        Coefficients, in the precision of X.
    sparse_coef_ : sparse matrix (T, n)
        The same.
    intercept_ : array (T,)
        The constants c.
    dual_gap_ : float
        Upper bound on the distance of the objective to its minimum.
    n_iter_ : int
        Number of working sets.
    """

    def _penalty(self, features: int, ratio: float) -> Penalty:
        return {"level": ratio, "l2": 1.0 - ratio}

    def _validated(self, X: Any, y: Any) -> tuple[Any, Any]:
        X, y = super()._validated(X, y)
        if y.ndim == 1:
            single = type(self).__name__.removeprefix("MultiTask")
            raise InputError(f"For mono-task outputs, use {single}: y has shape {y.shape}")
        return X, y

    def _solve(self, X: Any, y: Any, w: Array | None, penalty: Penalty) -> None:
        s = np.ones(X.shape[0]) if w is None else w
        total, shape = float(s.sum()), (y.shape[1], X.shape[1])
        tasks = Tasks(X, y, s, bool(self.fit_intercept))
        limits = limits_of(self, penalises_all(penalty))
        start = self._start(X, None)
        start = None if np.shape(start) != shape else start
        level, l2 = total * penalty["level"], total * penalty["l2"]
        answer = tasks.solve(level, l2, limits, start, self.tol)
        warn_unless_solved(answer, self.tol)
        self.coef_ = answer.x.reshape(shape)
        self.intercept_ = answer.intercept[0] if self.fit_intercept else 0.0
        self.dual_gap_, self.n_iter_ = float(answer.gap[0]) / total, int(answer.iterations[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        return tags


@estimator
class MultiTaskElasticNet(L1Ratio, MultiTask, PenalisedRegressor):
    """Linear regression of several targets with an l2/l1 and an l2 penalty.

    The coefficients W (T, n) and the intercepts c (T,) minimise::

        1/(2 sum_i s_i) sum_i s_i |y_i - W x_i - c|^2
            + alpha l1_ratio sum_j |W_:j|_2 + alpha (1 - l1_ratio)/2 |W|^2

    where s are the sample weights, all 1 by default, and W_:j are the coefficients of column j of
    X, which are 0 for all targets or for none. The answer is certified: the duality gap is at most
    `tol` times the objective, or a `ConvergenceWarning` says that it is not.

    Parameters
    ----------
    l1_ratio : float
        Share of the l2/l1 norm in the penalty, from 0 to 1.

    Examples
    --------
    >>> from proxlearn.sklearn import MultiTaskElasticNet
    >>> model = MultiTaskElasticNet(alpha=0.1)
    >>> model.fit([[0, 0], [1, 1], [2, 2]], [[0, 0], [1, 1], [2, 2]]).coef_.round(3).tolist()
    [[0.456, 0.456], [0.456, 0.456]]
    """

    path = staticmethod(enet_path)


@estimator
class MultiTaskLasso(MultiTask, PenalisedRegressor):
    """Linear regression of several targets with an l2/l1 penalty.

    The coefficients W (T, n) and the intercepts c (T,) minimise::

        1/(2 sum_i s_i) sum_i s_i |y_i - W x_i - c|^2 + alpha sum_j |W_:j|_2

    where s are the sample weights, all 1 by default, and W_:j are the coefficients of column j of
    X, which are 0 for all targets or for none. The answer is certified: the duality gap is at most
    `tol` times the objective, or a `ConvergenceWarning` says that it is not.

    Examples
    --------
    >>> from proxlearn.sklearn import MultiTaskLasso
    >>> model = MultiTaskLasso(alpha=0.1)
    >>> model.fit([[0, 1], [1, 2], [2, 4]], [[0, 0], [1, 1], [2, 3]]).coef_.round(3).tolist()
    [[0.0, 0.608], [0.0, 0.946]]
    """

    path = staticmethod(lasso_path)
