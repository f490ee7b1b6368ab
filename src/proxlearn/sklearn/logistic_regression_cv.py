"""LogisticRegressionCV: the weight of the penalty chosen on held-out folds."""

import numbers
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.metadata_routing import UNUSED

from proxlearn.errors import InputError, unknown
from proxlearn.sklearn.classifier import LogisticClassifier, labelled
from proxlearn.sklearn.cv_defaults import (
    scoring_of,
    set_legacy_attributes,
    wants_legacy_attributes,
    warn_of_changing_defaults,
)
from proxlearn.sklearn.declaration import estimator
from proxlearn.sklearn.fitting import (
    Array,
    ratios_of,
    require_at_least,
    thread_count,
    warn_unless_solved,
)
from proxlearn.sklearn.folds import Fold, split, training_weights
from proxlearn.sklearn.held_out import accuracies, scores_of
from proxlearn.sklearn.logistic_regression import (
    PENALTIES,
    LogisticRegression,
    binary,
    fit_all,
    logistic_limits,
)
from proxlearn.sklearn.multinomial import Multinomial
from proxlearn.sklearn.regressor import feature_weights
from proxlearn.sklearn.ridge import path
from proxlearn.sklearn.routing import routed, router

Paths = tuple[Array, Array, npt.NDArray[np.int32]]
"""coefs (folds, Cs, rows, n + 1) with the intercept last, scores (folds, Cs), and iterations."""

CERTAIN = -float(np.log(np.finfo(float).eps))
"""The log-odds of a class that all samples of a fold have: float64 rounds its probability to 1."""


@estimator
class LogisticRegressionCV(LogisticClassifier):
    """`LogisticRegression` with the C and the l1_ratio that score best on held-out folds.

    For two classes the path over C of each fold keeps the working set from one C to the next, and
    every problem of it is certified. The shapes of the attributes below are those without
    `use_legacy_attributes`.

    Parameters
    ----------
    Cs : int or array
        Number of values from 1e-4 to 1e4, or the values.
    l1_ratios : array
        Shares of the l1 norm in the penalty, from 0 to 1, among which one is chosen; 0 by default.
    cv : int, splitter or iterable
        Folds, as in scikit-learn; 5 stratified ones by default.
    penalty : {"l1", "l2", "elasticnet"}
        The older way to say `l1_ratios=[1]`, `l1_ratios=[0]`, and `l1_ratios` as given.
    scoring : str or callable
        A scorer of scikit-learn; accuracy by default before its version 1.11, afterwards
        "neg_log_loss".
    tol : float
        Largest duality gap of each fit, relative to its objective.
    max_iter : int
        Largest number of working sets of each fit, or of iterations for more than two classes.
    n_jobs : int
        Number of threads that share the folds; 1 by default, -1 for all processors.
    refit : bool
        Whether all samples are fitted with the chosen C and l1_ratio. Otherwise `coef_`,
        `intercept_`, `C_` and `l1_ratio_` are means over the folds of what is best in each.
    use_legacy_attributes : bool
        Whether `scores_`, `coefs_paths_`, `n_iter_`, `C_` and `l1_ratio_` have the shapes of
        scikit-learn before version 1.10, the first two as dictionaries by class. By default as in
        the installed scikit-learn, which warns of the change in versions 1.8 and 1.9.

    Attributes
    ----------
    C_, l1_ratio_ : float
        What was chosen.
    Cs_ : array (Cs,)
        The values of C, smallest first.
    l1_ratios_ : array (l1_ratios,)
        The shares of l1.
    scores_ : array (folds, l1_ratios, Cs)
        Scores on the held-out samples.
    coefs_paths_ : array (folds, l1_ratios, Cs, rows, n + 1)
        Coefficients of every fit, with its intercept last where there is one.
    n_iter_ : array (folds, l1_ratios, Cs)
        Numbers of working sets.
    coef_ : array (1, n) or (classes, n)
        Coefficients of the fit to all samples.
    intercept_ : array (1,) or (classes,)
        Its constants.
    dual_gap_ : float
        Upper bound on the distance of its objective to the minimum; NaN without `refit`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from proxlearn.sklearn import LogisticRegressionCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogisticRegressionCV(
    ...     l1_ratios=[1.0], cv=5, scoring="accuracy", use_legacy_attributes=False
    ... ).fit(scale(X), y)
    >>> model.scores_.shape, round(model.score(scale(X), y), 2)
    ((5, 1, 10), 0.99)
    """

    # The weights of a score are the scorer's, not this estimator's own.
    __metadata_request__score: ClassVar[dict[str, str]] = {"sample_weight": UNUSED}

    Cs: Any = 10
    l1_ratios: Any = "warn"
    cv: Any = None
    penalty: Any = "deprecated"
    scoring: Any = "warn"
    n_jobs: int | None = None
    refit: bool = True
    use_legacy_attributes: Any = "warn"

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Any:
        """Choose C and l1_ratio on held-out folds, then fit all samples.

        Parameters
        ----------
        X : array or sparse matrix (m, n)
        y : array (m,)
            Labels.
        sample_weight : array (m,), optional
            Weights >= 0, in the fits and in the scores.
        **params
            Arguments of the splitter and the scorer, where metadata routing is enabled.

        Returns
        -------
        self
        """
        splitting, scoring = routed(self, "fit", sample_weight, params)
        logistic_limits(self)
        warn_of_changing_defaults(self)
        self.l1_ratios_, self.Cs_ = self._ratios(), self._grid()
        X, numbers_, self.classes_, w = labelled(self, X, y, sample_weight)
        folds = split(self.cv, X, numbers_, splitting, classifier=True)
        weights = training_weights(folds, w, X.shape[0])
        two = len(self.classes_) == 2
        paths_of = self._binary_paths if two else self._multinomial_paths
        paths = [paths_of(X, numbers_, weights, folds, scoring, ratio) for ratio in self.l1_ratios_]
        coefs, self.scores_, self.n_iter_ = (
            np.stack(parts, axis=1) for parts in zip(*paths, strict=True)
        )
        self.coefs_paths_ = coefs if self.fit_intercept else coefs[..., :-1]
        if self.refit:
            self._choose()
            fit_all(self, X, numbers_, w, self.C_, self.l1_ratio_)
        else:
            self._average(coefs)
        if wants_legacy_attributes(self):
            set_legacy_attributes(self)
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None, **score_params: Any) -> float:
        """The score of predictions by `scoring`, accuracy by default.

        Parameters
        ----------
        X : array or sparse matrix (m, n)
        y : array (m,)
            Labels.
        sample_weight : array (m,), optional
        **score_params
            Arguments of the scorer, where metadata routing is enabled.

        Returns
        -------
        float
        """
        _, arguments = routed(self, "score", sample_weight, score_params)
        return float(self._get_scorer()(self, X, y, **arguments))

    def _get_scorer(self) -> Any:
        from sklearn.metrics import get_scorer

        return get_scorer(scoring_of(self))

    def get_metadata_routing(self) -> Any:
        """Which arguments go to the splitter and the scorer, for scikit-learn's routing."""
        return router(self, self.cv, self._get_scorer())

    def _ratios(self) -> Array:
        """The shares of l1, from `l1_ratios` or from the older `penalty`."""
        if self.penalty not in PENALTIES[:-1]:
            raise unknown("penalty", self.penalty, PENALTIES[1:-1])
        if self.penalty in ("l1", "l2"):
            return np.array([1.0 if self.penalty == "l1" else 0.0])
        missing = self.l1_ratios is None or isinstance(self.l1_ratios, str)
        if self.penalty == "elasticnet" and missing:
            raise InputError(
                "l1_ratios must be an array-like of numbers between 0 and 1; got "
                f"(l1_ratios={self.l1_ratios!r})"
            )
        return ratios_of("l1_ratios", (0.0,) if missing else self.l1_ratios)

    def _grid(self) -> Array:
        """The values of C, smallest first."""
        if isinstance(self.Cs, numbers.Integral):
            require_at_least(1, Cs=self.Cs)
            return np.logspace(-4, 4, int(self.Cs))
        Cs = np.sort(np.asarray(self.Cs, dtype=np.float64))
        if Cs.ndim != 1 or not len(Cs) or not (Cs > 0).all():
            raise InputError(f"Cs is {self.Cs!r}; expected a number of values, or some > 0")
        return Cs

    def _binary_paths(
        self, X: Any, labels: Any, weights: Array, folds: list[Fold], scoring: Any, ratio: float
    ) -> Paths:
        """Coefficients, scores and iterations of two classes: all folds in one path."""
        coefs = np.zeros((len(folds), len(self.Cs_), 1, X.shape[1] + 1))
        counts = np.zeros(coefs.shape[:2], dtype=np.int32)
        both = self._with_both_classes(labels, weights, coefs)
        if len(both):
            of_columns = feature_weights(self.penalty_weights, X.shape[1])
            glm = binary(
                X, labels, weights[both], ratio, self.fit_intercept, 1.0, self.positive, of_columns
            )
            limits = logistic_limits(self, bool(np.all(of_columns)))
            threads = thread_count(self.n_jobs)
            answers = path(glm, 1.0 / self.Cs_, limits, self.tol, threads)
            warn_unless_solved(answers, self.tol)
            coefs[both, :, 0, :-1] = np.stack([answer.x for answer in answers], axis=1)
            coefs[both, :, 0, -1] = np.stack([answer.intercept for answer in answers], axis=1)
            counts[both] = np.stack([answer.iterations for answer in answers], axis=1)
        return coefs, self._scores(X, labels, coefs, folds, scoring), counts

    def _with_both_classes(self, labels: Any, weights: Array, coefs: Array) -> Any:
        """The folds to fit; those with samples of one class alone predict it with certainty."""
        if not self.fit_intercept:
            return np.arange(len(weights))
        share = weights @ labels / weights.sum(axis=1)
        coefs[share == 0, :, 0, -1], coefs[share == 1, :, 0, -1] = -CERTAIN, CERTAIN
        return np.flatnonzero((share > 0) & (share < 1))

    def _multinomial_paths(
        self, X: Any, labels: Any, weights: Array, folds: list[Fold], scoring: Any, ratio: float
    ) -> Paths:
        """Coefficients, scores and iterations of more classes: one path for each fold."""
        C, n = len(self.classes_), X.shape[1]
        of_columns = feature_weights(self.penalty_weights, n)
        coefs = np.empty((len(folds), len(self.Cs_), C, n + 1))
        counts = np.empty((len(folds), len(self.Cs_)), dtype=np.int32)
        for k, row in enumerate(weights):
            model = Multinomial(
                X, labels, C, row, ratio, self.fit_intercept, self.positive, of_columns
            )
            start = None
            for i, value in enumerate(self.Cs_):
                answer = model.fit(value, self.tol, int(self.max_iter), start)
                coefs[k, i, :, :-1], coefs[k, i, :, -1] = model.coefficients(answer)
                start, counts[k, i] = coefs[k, i], max(1, int(answer.iterations[0]))
        return coefs, self._scores(X, labels, coefs, folds, scoring), counts

    def _scores(self, X: Any, labels: Any, coefs: Array, folds: list[Fold], scoring: Any) -> Array:
        """Scores of coefficients on held-out samples, (folds, Cs)."""
        name = scoring_of(self)
        if isinstance(name, str) and name == "accuracy" and coefs.shape[2] == 1:
            return accuracies(X, labels, coefs, folds, scoring.get("sample_weight"))
        fitted = LogisticRegression()
        fitted.classes_, fitted.n_features_in_ = self.classes_, X.shape[1]
        return scores_of(fitted, self._get_scorer(), X, labels, coefs, folds, scoring)

    def _choose(self) -> None:
        """Set the C and the share of l1 with the best mean score."""
        best = np.unravel_index(self.scores_.mean(0).argmax(), self.scores_.shape[1:])
        self.l1_ratio_, self.C_ = float(self.l1_ratios_[best[0]]), float(self.Cs_[best[1]])

    def _average(self, coefs: Array) -> None:
        """Set the means over the folds of what is best in each."""
        flat = self.scores_.reshape(len(self.scores_), -1).argmax(1)
        ratios, Cs = np.unravel_index(flat, self.scores_.shape[1:])
        mean = coefs[np.arange(len(flat)), ratios, Cs].mean(0)
        self.coef_, self.intercept_ = mean[:, :-1], mean[:, -1]
        self.C_, self.l1_ratio_ = float(self.Cs_[Cs].mean()), float(self.l1_ratios_[ratios].mean())
        self.dual_gap_ = float("nan")
