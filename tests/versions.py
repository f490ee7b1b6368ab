"""What differs between the releases of scikit-learn that the tests meet."""

from proxlearn.sklearn.cv_defaults import VERSION

MIXED = {} if VERSION >= (1, 8) else {"penalty": "elasticnet"}
"""What LogisticRegression of scikit-learn 1.7, the last for Python 3.10, needs with `l1_ratio`."""
