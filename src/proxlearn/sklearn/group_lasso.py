"""Least squares with groups of columns: GroupLasso and SparseGroupLasso."""

from proxlearn.sklearn.declaration import estimator
from proxlearn.sklearn.regressor import PenalisedRegressor
from proxlearn.sklearn.shared_parameters import GroupPenalty, L1Ratio


@estimator
class SparseGroupLasso(L1Ratio, GroupPenalty, PenalisedRegressor):
    """Linear regression that leaves out whole groups of columns, and columns of the others.

    The coefficients w and the intercept c minimise::

        1/(2 sum_i s_i) sum_i s_i (y_i - x_i w - c)^2
            + alpha l1_ratio |w|_1 + alpha (1 - l1_ratio) sum_g weights_g |w_g|_2

    where s are the sample weights, all 1 by default, and w_g are the coefficients of group g. The
    answer is certified: the duality gap is at most `tol` times the objective, or a
    `ConvergenceWarning` says that it is not.

    Examples
    --------
    >>> import numpy as np
    >>> from proxlearn.sklearn import SparseGroupLasso
    >>> X = np.eye(4)
    >>> model = SparseGroupLasso(alpha=0.05, groups=[0, 0, 1, 1], fit_intercept=False)
    >>> model.fit(X, [1.0, 0.1, 0.05, 0.05]).coef_.nonzero()[0].tolist()
    [0]
    """


@estimator
class GroupLasso(GroupPenalty, PenalisedRegressor):
    """Linear regression that leaves out whole groups of columns.

    The coefficients w and the intercept c minimise::

        1/(2 sum_i s_i) sum_i s_i (y_i - x_i w - c)^2 + alpha sum_g weights_g |w_g|_2

    where s are the sample weights, all 1 by default, and w_g are the coefficients of group g. The
    answer is certified: the duality gap is at most `tol` times the objective, or a
    `ConvergenceWarning` says that it is not.

    Examples
    --------
    >>> import numpy as np
    >>> from proxlearn.sklearn import GroupLasso
    >>> model = GroupLasso(alpha=0.05, groups=[0, 0, 1, 1], fit_intercept=False)
    >>> model.fit(np.eye(4), [1.0, 0.1, 0.05, 0.05]).coef_.nonzero()[0].tolist()
    [0, 1]
    """
