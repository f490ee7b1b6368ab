"""What the classifiers share: labels and their weights, predictions from coefficients."""

from typing import Any

import numpy as np
import scipy.sparse
from scipy.special import expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from proxlearn.errors import InputError
from proxlearn.sklearn.declaration import estimator
from proxlearn.sklearn.fitting import (
    Array,
    Estimator,
    are_numbers,
    linear_prediction,
    sample_weights,
    validated,
)


class LinearClassifier(ClassifierMixin, Estimator):  # type: ignore[misc]
    """Predictions from coefficients.

    Attributes
    ----------
    classes_ : array (classes,)
        The labels.
    coef_ : array (1, n) or (classes, n)
        Coefficients, in the precision of X.
    intercept_ : array (1,) or (classes,)
        The constant c.
    """

    coef_: Any
    intercept_: Any
    classes_: Any

    def decision_function(self, X: Any) -> Any:
        """Scores X coef_^T + intercept_, (m,) for two classes, otherwise (m, C)."""
        scores = linear_prediction(self, X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> Any:
        """The likeliest class of each sample, (m,)."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, (m, C)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return softmax(scores, axis=1)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities, (m, C)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([-np.logaddexp(0, scores), -np.logaddexp(0, -scores)])
        return log_softmax(scores, axis=1)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of samples whose class is predicted.

        Parameters
        ----------
        X : array or sparse matrix (m, n)
        y : array (m,)
            Labels.
        sample_weight : array (m,), optional

        Returns
        -------
        float
        """
        if sample_weight is None and are_numbers(y) and _are_whole(y):
            made = self.predict(X)
            if made.shape == y.shape:
                return float((made == y).mean())
        # Everything else has scikit-learn's checks: a third of the time of a search on small data.
        return float(super().score(X, y, sample_weight))

    def sparsify(self) -> Any:
        """Keep `coef_` as a sparse matrix: predictions are faster where it has few entries."""
        check_is_fitted(self)
        self.coef_ = scipy.sparse.csr_matrix(self.coef_)
        return self

    def densify(self) -> Any:
        """Keep `coef_` as an array, as `fit` leaves it."""
        check_is_fitted(self)
        if scipy.sparse.issparse(self.coef_):
            self.coef_ = self.coef_.toarray()
        return self


@estimator
class LogisticClassifier(LinearClassifier):
    """The parameters of scikit-learn's logistic regressions.

    Parameters
    ----------
    dual : bool
        Without effect.
    tol : float
        Largest duality gap, relative to the objective.
    fit_intercept : bool
        Whether the constant c is fitted; it is 0 otherwise. It is never penalised.
    intercept_scaling : float
        Without effect, since the intercept is not penalised.
    class_weight : dict or "balanced"
        Weights of the classes.
    random_state : object
        Without effect: the solver draws no random numbers.
    solver : str
        Without effect: every penalty has the same solver.
    max_iter : int
        Largest number of working sets, or of iterations for more than two classes.
    verbose : int
        Without effect.
    positive : bool
        Whether the coefficients are constrained to be >= 0.
    penalty_weights : array (n,)
        Weights >= 0 of the columns in the penalty, 1 by default; a column of weight 0 is not
        penalised (adaptive LASSO).
    """

    dual: bool = False
    tol: float = 1e-4
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    class_weight: Any = None
    random_state: Any = None
    solver: str = "lbfgs"
    max_iter: int = 10_000
    verbose: Any = 0
    positive: bool = False
    penalty_weights: Any = None


def labelled(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any, Array]:
    """Validated X, class numbers, the classes, and weights with those of the classes in them."""
    X, y = validated(estimator, X, y)
    if not _are_whole(y):
        check_classification_targets(y)
    classes, numbers = _numbered(y)
    if 2 * len(classes) > len(y) and _are_whole(y):
        check_classification_targets(y)  # warns of so many classes
    w = sample_weights(sample_weight, X.shape[0])
    w = np.ones(X.shape[0]) if w is None else w
    present = int((np.bincount(numbers, weights=w) > 0).sum())
    if estimator.class_weight is not None:
        w = w * _class_weights(estimator.class_weight, classes, y, numbers, w)[numbers]
    if present < 2:
        raise InputError(
            "This solver needs samples of at least 2 classes in the data, but the data contains "
            f"{present} class with sample weights > 0"
        )
    return X, numbers, classes, w


def _numbered(y: Any) -> tuple[Any, Any]:
    """The classes, and the number of each label's class; two classes of numbers need no sorting."""
    if y.dtype.kind in "biuf":
        low, high = y.min(), y.max()
        upper = y == high
        if low != high and bool((upper | (y == low)).all()):
            return np.array([low, high], dtype=y.dtype), upper.astype(np.intp)
    classes, numbers = np.unique(y, return_inverse=True)
    return classes, numbers


def _are_whole(y: Any) -> bool:
    """Whether y holds whole numbers: valid labels, which scikit-learn takes longer to find out."""
    return y.dtype.kind in "biu" or (y.dtype.kind == "f" and bool((y == np.floor(y)).all()))


def _class_weights(class_weight: Any, classes: Any, y: Any, numbers: Any, w: Array) -> Array:
    """A weight for each class, (C,); "balanced" makes the sums of the classes' weights equal."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        sums = np.bincount(numbers, weights=w)
        weights: Array = w.sum() / (len(classes) * np.where(sums > 0, sums, np.inf))
    else:
        weights = compute_class_weight(class_weight, classes=classes, y=y)
        if not (weights >= 0).all():
            raise InputError(f"class_weight is {class_weight!r}; expected weights >= 0")
    return weights
