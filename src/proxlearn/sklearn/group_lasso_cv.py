"""GroupLassoCV and SparseGroupLassoCV: the weight of the penalty chosen on held-out folds."""

from typing import Any

import numpy as np

from proxlearn.sklearn.declaration import estimator
from proxlearn.sklearn.fitting import Array
from proxlearn.sklearn.group_penalty import group_weights, groups_of, largest_alpha_of_groups
from proxlearn.sklearn.regression_path import correlations
from proxlearn.sklearn.regressor_cv import RegressorCV
from proxlearn.sklearn.shared_parameters import GroupPenalty, L1Ratios


class GroupCV(GroupPenalty, RegressorCV):
    """What GroupLassoCV and SparseGroupLassoCV share."""

    def _ratios(self) -> Array:
        return np.zeros(1)

    def _largest_alpha(self, X: Any, y: Array, w: Array | None, ratio: float) -> float:
        groups = groups_of(self.groups, X.shape[1])
        weights = group_weights(self.weights, groups)
        return largest_alpha_of_groups(
            correlations(X, y, w, self.fit_intercept), groups, weights, ratio
        )


@estimator
class SparseGroupLassoCV(L1Ratios, GroupCV):
    """`SparseGroupLasso` with the alpha and l1_ratio whose error on held-out folds is smallest.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from proxlearn.sklearn import SparseGroupLassoCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SparseGroupLassoCV(groups=2, l1_ratio=[0.1, 0.9], alphas=20).fit(X, y)
    >>> model.mse_path_.shape
    (2, 20, 5)
    """


@estimator
class GroupLassoCV(GroupCV):
    """`GroupLasso` with the alpha whose squared error on held-out folds is smallest.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from proxlearn.sklearn import GroupLassoCV
    >>> model = GroupLassoCV(groups=2, alphas=20).fit(*load_diabetes(return_X_y=True))
    >>> model.mse_path_.shape
    (20, 5)
    """
