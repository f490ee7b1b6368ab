"""scikit-learn estimators: the names, parameters and scalings of scikit-learn, certified answers.

Each has the methods that scikit-learn's estimator of that kind has: `fit`, with `sample_weight`
where scikit-learn has it, `predict` and `score`, or `transform`. None imports torch but K-SVD,
which learns a dictionary.

>>> from sklearn.datasets import load_diabetes
>>> from proxlearn.sklearn import Lasso
>>> model = Lasso(alpha=1.0).fit(*load_diabetes(return_X_y=True))
>>> model.coef_.nonzero()[0].tolist()
[2, 3, 8]
"""

from proxlearn.errors import InputError

try:
    import sklearn as _sklearn  # noqa: F401  (the library; this package is proxlearn.sklearn)
except ImportError as error:
    raise InputError(
        "proxlearn.sklearn needs scikit-learn; install it with: pip install scikit-learn"
    ) from error

from proxlearn.sklearn.coder import SparseCoder
from proxlearn.sklearn.group_lasso import GroupLasso, SparseGroupLasso
from proxlearn.sklearn.group_lasso_cv import GroupLassoCV, SparseGroupLassoCV
from proxlearn.sklearn.group_path import group_path
from proxlearn.sklearn.huber_regressor import HuberRegressor
from proxlearn.sklearn.information import LassoIC
from proxlearn.sklearn.linear import ElasticNet, Lasso
from proxlearn.sklearn.linear_cv import ElasticNetCV, LassoCV
from proxlearn.sklearn.logistic_regression import LogisticRegression
from proxlearn.sklearn.logistic_regression_cv import LogisticRegressionCV
from proxlearn.sklearn.multi_task import MultiTaskElasticNet, MultiTaskLasso
from proxlearn.sklearn.multi_task_cv import MultiTaskElasticNetCV, MultiTaskLassoCV
from proxlearn.sklearn.nonnegative import NonNegativeLeastSquares
from proxlearn.sklearn.plots import plot_cv, plot_path
from proxlearn.sklearn.poisson_regressor import PoissonRegressor
from proxlearn.sklearn.regression_path import enet_path, lasso_path
from proxlearn.sklearn.simplex_regressor import SimplexRegressor

__all__ = [
    "ElasticNet",
    "ElasticNetCV",
    "GroupLasso",
    "GroupLassoCV",
    "HuberRegressor",
    "Lasso",
    "LassoCV",
    "LassoIC",
    "LogisticRegression",
    "LogisticRegressionCV",
    "MultiTaskElasticNet",
    "MultiTaskElasticNetCV",
    "MultiTaskLasso",
    "MultiTaskLassoCV",
    "NonNegativeLeastSquares",
    "PoissonRegressor",
    "SimplexRegressor",
    "SparseCoder",
    "SparseGroupLasso",
    "SparseGroupLassoCV",
    "enet_path",
    "group_path",
    "lasso_path",
    "plot_cv",
    "plot_path",
]
