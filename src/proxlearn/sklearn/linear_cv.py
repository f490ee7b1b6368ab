"""LassoCV and ElasticNetCV: the weight of the penalty chosen on held-out folds."""

from typing import Any

from sklearn.utils.validation import column_or_1d

from proxlearn.sklearn.declaration import estimator
from proxlearn.sklearn.regression_path import enet_path, lasso_path
from proxlearn.sklearn.regressor_cv import RegressorCV
from proxlearn.sklearn.shared_parameters import Ignored, L1Ratios, OnlyL1, SeparablePenalty


@estimator
class SeparableCV(SeparablePenalty, Ignored, RegressorCV):
    """What LassoCV and ElasticNetCV share.

    Parameters
    ----------
    precompute : str, bool or array
        Without effect: the solver decides which products it keeps.
    verbose : bool or int
        Without effect.
    """

    precompute: Any = "auto"
    verbose: Any = False

    def _validated(self, X: Any, y: Any) -> tuple[Any, Any]:
        X, y = super()._validated(X, y)
        # A column is a single target, with scikit-learn's warning.
        return X, column_or_1d(y, warn=True) if y.ndim == 2 and y.shape[1] == 1 else y


@estimator
class LassoCV(OnlyL1, SeparableCV):
    """`Lasso` with the alpha whose squared error on held-out folds is smallest.

    The path over alpha of each fold keeps the working set and its Gram matrix from one alpha to
    the next, and every problem of it is certified.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from proxlearn.sklearn import LassoCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LassoCV(cv=5).fit(X, y)
    >>> round(model.alpha_, 4), model.mse_path_.shape
    (0.0038, (100, 5))
    """

    path = staticmethod(lasso_path)


@estimator
class ElasticNetCV(L1Ratios, SeparableCV):
    """`ElasticNet` with the alpha and l1_ratio whose squared error on held-out folds is smallest.

    The path over alpha of each fold keeps the working set and its Gram matrix from one alpha to
    the next, and every problem of it is certified.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from proxlearn.sklearn import ElasticNetCV
    >>> model = ElasticNetCV(l1_ratio=[0.5, 1.0], cv=5).fit(*load_diabetes(return_X_y=True))
    >>> model.l1_ratio_, model.mse_path_.shape
    (1.0, (2, 100, 5))
    """

    path = staticmethod(enet_path)
    verbose: Any = 0
