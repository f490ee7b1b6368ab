"""The fit that cross-validated regressors share: alpha is chosen on held-out folds."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from proxlearn.core.glm import describe
from proxlearn.sklearn.declaration import estimator
from proxlearn.sklearn.fitting import (
    Array,
    limits_of,
    sample_weights,
    thread_count,
    warn_unless_solved,
    writable,
)
from proxlearn.sklearn.folds import Fold, of_fold, path_predictions, split, training_weights
from proxlearn.sklearn.regressor import LeastSquaresRegressor, Penalty, times
from proxlearn.sklearn.ridge import path
from proxlearn.sklearn.routing import routed, router
from proxlearn.sklearn.shared_parameters import AlphaGrid


@dataclass(frozen=True)
class Choice:
    """The cross-validation of one target."""

    grids: Array
    """The values of alpha for each share of l1, (l1_ratios, K)."""
    errors: Array
    """Mean squared errors on the held-out samples, (l1_ratios, K, folds)."""
    gaps: Array
    """Largest relative duality gap over the folds, (l1_ratios, K)."""
    alpha: float
    ratio: float
    place: int
    """The place of `ratio` among the shares of l1."""


@estimator
class RegressorCV(AlphaGrid, LeastSquaresRegressor):
    """The weight of a penalty chosen on held-out folds.

    A subclass says which shares of the l1 norm are tried (`_ratios`), which penalty belongs to a
    share (`_penalty`), and for which alpha all coefficients are 0 (`_largest_alpha`).

    Parameters
    ----------
    cv : int, splitter or iterable
        Folds, as in scikit-learn; 5 by default.
    n_jobs : int
        Number of threads that share the folds; 1 by default, -1 for all processors.

    Attributes
    ----------
    alpha_ : float or array (T,)
        The chosen alpha, one for each target. The other attributes of the cross-validation have a
        first axis of T targets, too, where there are several.
    mse_path_ : array (K, folds)
        Mean squared errors on the held-out samples.
    gap_path_ : array (K,)
        Largest relative duality gap over the folds, for each alpha.
    coef_ : array (n,) or (T, n)
        Coefficients of the fit to all samples, in the precision of X.
    """

    chooses_ratio = False

    cv: Any = None
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Any:
        """Choose alpha on held-out folds, then fit all samples.

        Parameters
        ----------
        sample_weight : array (m,)
            Weights >= 0, in the fits and in the errors on held-out samples.
        **params
            Arguments of the splitter, such as `groups`, where metadata routing is enabled.

        Returns
        -------
        self
        """
        limits_of(self)
        ratios = self._ratios()
        splitting, _ = routed(self, "fit", sample_weight, params)
        X, y = self._validated(X, y)
        y = writable(np.asarray(y, dtype=np.float64))
        w = sample_weights(sample_weight, X.shape[0])
        folds = split(self.cv, X, y, splitting)
        penalties = [self._penalty(X.shape[1], ratio) for ratio in ratios]
        chosen = [
            self._choose(X, target, w, folds, ratios, penalties) for target in self._targets(y)
        ]
        self._describe_choices(chosen, ratios)
        rows = [times(choice.alpha, penalties[choice.place]) for choice in chosen]
        self._solve(X, y, w, _stacked(rows, X.shape[1]))
        return self

    def _targets(self, y: Array) -> Any:
        """The targets, each of which gets its own alpha."""
        return y[None] if y.ndim == 1 else np.ascontiguousarray(y.T)

    def _choose(
        self,
        X: Any,
        y: Array,
        w: Array | None,
        folds: list[Fold],
        ratios: Array,
        penalties: list[Penalty],
    ) -> Choice:
        """The alpha and the share of l1 with the smallest mean error, for one target."""
        grids = np.stack([self._grid(X, y, w, ratio) for ratio in ratios])
        held = [
            self._errors(X, y, w, folds, penalty, grid)
            for penalty, grid in zip(penalties, grids, strict=True)
        ]
        errors, gaps = (np.stack(part) for part in zip(*held, strict=True))
        best = np.unravel_index(errors.mean(2).argmin(), grids.shape)
        place = int(best[0])
        return Choice(grids, errors, gaps, float(grids[best]), float(ratios[place]), place)

    def _describe_choices(self, chosen: list[Choice], ratios: Array) -> None:
        """Set the attributes of the cross-validation; a single target has no axis."""

        def squeezed(values: list[Any]) -> Any:
            return values[0] if len(values) == 1 else np.stack(values)

        single_grid = len(ratios) == 1 or np.ndim(self.alphas)
        self.alphas_ = squeezed([c.grids[0] if single_grid else c.grids for c in chosen])
        self.mse_path_ = squeezed([np.squeeze(c.errors) for c in chosen])
        self.gap_path_ = squeezed([np.squeeze(c.gaps) for c in chosen])
        self.alpha_ = squeezed([c.alpha for c in chosen])
        if self.chooses_ratio:
            self.l1_ratio_ = squeezed([c.ratio for c in chosen])

    @abstractmethod
    def _ratios(self) -> Array:
        """The shares of the l1 norm."""

    def _chosen_ratio(self) -> Any:
        """The chosen share of the l1 norm, of a fitted estimator."""
        return self.l1_ratio_ if self.chooses_ratio else self._ratios()[0]

    @abstractmethod
    def _penalty(self, features: int, ratio: float) -> Penalty:
        """The penalty of the mean loss for alpha = 1."""

    def _errors(
        self, X: Any, y: Array, w: Array | None, folds: list[Fold], penalty: Penalty, grid: Array
    ) -> tuple[Array, Array]:
        """Mean squared errors on held-out samples, (alphas, folds), and largest gaps (alphas,)."""
        kept = training_weights(folds, w, X.shape[0])
        intercept = bool(self.fit_intercept)
        glm = describe(X, y, "squares", **penalty, sample_weight=kept, intercept=intercept)
        # The loss is a sum and not a mean, so that each fold has its own multiple of alpha.
        factors = grid[:, None] * kept.sum(axis=1)
        limits = replace(limits_of(self), tol=float(self.tol))  # errors need no smaller gap
        answers = path(glm, factors, limits, threads=thread_count(self.n_jobs))
        warn_unless_solved(answers, self.tol)
        errors = np.empty((len(grid), len(folds)))
        for k, (_, test) in enumerate(folds):
            missed = y[test, None] - path_predictions(X, *of_fold(answers, k), test)
            errors[:, k] = np.average(missed**2, axis=0, weights=None if w is None else w[test])
        with np.errstate(divide="ignore", invalid="ignore"):
            gaps = np.stack([answer.gap / np.abs(answer.objective) for answer in answers]).max(1)
        return errors, gaps

    def get_metadata_routing(self) -> Any:
        """Which arguments of `fit` go to the splitter, for scikit-learn's metadata routing."""
        return router(self, check_cv(self.cv))


def _stacked(rows: list[Penalty], features: int) -> Penalty:
    """One penalty with a row for each target."""
    if len(rows) == 1:
        return rows[0]
    widths = {"l1": features, "l2": features}
    return {
        name: np.stack([np.broadcast_to(r[name], widths.get(name, np.shape(value))) for r in rows])
        if name in ("l1", "l2", "level")
        else value
        for name, value in rows[0].items()
    }
