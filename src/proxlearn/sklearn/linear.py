"""Least squares with an l1 or elastic net penalty: Lasso, ElasticNet."""

from typing import Any, ClassVar

from sklearn.utils.metadata_routing import UNUSED

from proxlearn.sklearn.declaration import estimator
from proxlearn.sklearn.fitting import sample_weights
from proxlearn.sklearn.gram_check import check_gram
from proxlearn.sklearn.regression_path import enet_path, lasso_path
from proxlearn.sklearn.regressor import PenalisedRegressor
from proxlearn.sklearn.shared_parameters import Ignored, L1Ratio, SeparablePenalty


@estimator
class SeparableRegressor(SeparablePenalty, Ignored, PenalisedRegressor):
    """What Lasso and ElasticNet share.

    Parameters
    ----------
    precompute : bool or array
        Without effect: the solver decides which products it keeps. A Gram matrix is checked.
    """

    __metadata_request__fit: ClassVar[dict[str, str]] = {"check_input": UNUSED}

    precompute: Any = False

    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> Any:
        """Fit the coefficients.

        Parameters
        ----------
        check_input : bool
            Whether X and y are validated.

        Returns
        -------
        self
        """
        self._check_parameters()
        if check_input:
            X, y = self._validated(X, y)
        self.n_features_in_ = X.shape[1]
        if not isinstance(self.precompute, bool):
            check_gram(self.precompute, X, sample_weight, self.fit_intercept)
        self._minimise(X, y, sample_weights(sample_weight, X.shape[0]))
        return self


@estimator
class ElasticNet(L1Ratio, SeparableRegressor):
    """Linear regression with an l1 and an l2 penalty.

    The coefficients w and the intercept c minimise::

        1/(2 sum_i s_i) sum_i s_i (y_i - x_i w - c)^2
            + alpha l1_ratio |w|_1 + alpha (1 - l1_ratio)/2 |w|^2

    where s are the sample weights, all 1 by default. The answer is certified: the duality gap is
    at most `tol` times the objective, or a `ConvergenceWarning` says that it is not.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from proxlearn.sklearn import ElasticNet
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ElasticNet(alpha=0.01, l1_ratio=0.9).fit(X, y)
    >>> round(model.score(X, y), 3)
    0.491
    """

    path = staticmethod(enet_path)


@estimator
class Lasso(SeparableRegressor):
    """Linear regression with an l1 penalty.

    The coefficients w and the intercept c minimise::

        1/(2 sum_i s_i) sum_i s_i (y_i - x_i w - c)^2 + alpha |w|_1

    where s are the sample weights, all 1 by default. The answer is certified: the duality gap is
    at most `tol` times the objective, or a `ConvergenceWarning` says that it is not.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from proxlearn.sklearn import Lasso
    >>> model = Lasso(alpha=1.0).fit(*load_diabetes(return_X_y=True))
    >>> model.coef_.nonzero()[0].tolist()
    [2, 3, 8]
    """

    path = staticmethod(lasso_path)
