"""Parameters that several estimators have, each declared and documented once.

`_penalty(features, ratio)` is the penalty for alpha = 1, as arguments of `describe`.
"""

from abc import abstractmethod
from typing import Any

import numpy as np

from proxlearn.sklearn.declaration import estimator
from proxlearn.sklearn.fitting import Array, ratios_of, require_ratio
from proxlearn.sklearn.group_path import group_path
from proxlearn.sklearn.group_penalty import group_penalty, group_weights, groups_of
from proxlearn.sklearn.regression_path import falling_grid, largest_alpha
from proxlearn.sklearn.regressor import Penalty, feature_weights


@estimator
class L1Ratio:
    """The share of the l1 norm in the penalty.

    Parameters
    ----------
    l1_ratio : float
        Share of the l1 norm in the penalty, from 0 to 1.
    """

    l1_ratio: float = 0.5

    def _ratio(self) -> float:
        require_ratio(l1_ratio=self.l1_ratio)
        return float(self.l1_ratio)


@estimator
class L1Ratios:
    """Shares of the l1 norm in the penalty, among which a cross-validation chooses.

    Parameters
    ----------
    l1_ratio : float or array
        Shares of the l1 norm in the penalty, from 0 to 1, among which one is chosen.

    Attributes
    ----------
    l1_ratio_ : float or array (T,)
        The chosen share of the l1 norm.
    alphas_ : array (K,) or (l1_ratios, K)
        The values of alpha, largest first, for each share of the l1 norm.
    mse_path_ : array (K, folds) or (l1_ratios, K, folds)
        Mean squared errors on the held-out samples.
    gap_path_ : array (K,) or (l1_ratios, K)
        Largest relative duality gap over the folds, for each alpha.
    """

    chooses_ratio = True

    l1_ratio: Any = 0.5

    def _ratios(self) -> Array:
        return ratios_of("l1_ratio", self.l1_ratio)


class OnlyL1:
    """A cross-validation of alpha alone, with the l1 norm as the penalty."""

    def _ratios(self) -> Array:
        return np.ones(1)


@estimator
class SeparablePenalty:
    """An elastic net with weights of the columns, and the constraint of no negative coefficient.

    Parameters
    ----------
    fit_intercept : bool
        Whether the constant c is fitted; it is 0 otherwise.
    positive : bool
        Whether the coefficients are constrained to be >= 0.
    penalty_weights : array (n,)
        Weights >= 0 of the columns in the penalty, 1 by default; a column of weight 0 is not
        penalised (adaptive LASSO).
    """

    fit_intercept: bool = True
    positive: bool = False
    penalty_weights: Any = None

    def _penalty(self, features: int, ratio: float) -> Penalty:
        weights = feature_weights(self.penalty_weights, features)
        lower = 0.0 if self.positive else -np.inf
        return {"l1": ratio * weights, "l2": (1.0 - ratio) * weights, "lower": lower}

    def _largest_alpha(self, X: Any, y: Array, w: Array | None, ratio: float) -> float:
        weights = feature_weights(self.penalty_weights, X.shape[1])
        return largest_alpha(X, y, w, ratio, self.fit_intercept, self.positive, weights)


@estimator
class GroupPenalty:
    """The norms of groups of coefficients.

    Parameters
    ----------
    groups : int, array (n,) or list of lists
        The size of consecutive groups, a label for each column, or lists of columns. Every column
        is a group of its own by default.
    weights : array (G,) or "sqrt"
        Weights of the groups, in the order of their labels: 1 by default, or the square roots of
        their sizes.
    """

    groups: Any = None
    weights: Any = None

    path = staticmethod(group_path)

    def _penalty(self, features: int, ratio: float) -> Penalty:
        groups = groups_of(self.groups, features)
        return group_penalty(groups, group_weights(self.weights, groups), ratio)

    def _ratio(self) -> float:
        return 0.0


@estimator
class AlphaGrid:
    """A path over alpha.

    Parameters
    ----------
    eps : float
        The smallest alpha of an automatic grid, relative to the largest.
    alphas : int or array
        Number of values from the smallest alpha whose coefficients are all 0 down to `eps` times
        that, or the values.
    fit_intercept : bool
        Whether the constant c is fitted; it is 0 otherwise.
    max_iter : int
        Largest number of working sets of each fit.
    tol : float
        Largest duality gap of each fit, relative to its objective.

    Attributes
    ----------
    alphas_ : array (K,)
        The values of alpha, largest first.
    """

    eps: float = 1e-3
    alphas: Any = 100
    fit_intercept: bool = True
    max_iter: int = 10_000
    tol: float = 1e-6

    def _grid(self, X: Any, y: Array, w: Array | None, ratio: float) -> Array:
        """The values of alpha, largest first."""
        return falling_grid(self.alphas, self.eps, lambda: self._largest_alpha(X, y, w, ratio))

    @abstractmethod
    def _largest_alpha(self, X: Any, y: Array, w: Array | None, ratio: float) -> float:
        """The smallest alpha whose coefficients are all 0."""


@estimator
class Ignored:
    """Parameters that scikit-learn's coordinate descent has, and that change nothing here.

    Parameters
    ----------
    copy_X : bool
        Without effect: X is never changed.
    random_state : object
        Without effect: the solver draws no random numbers.
    selection : {"cyclic", "random"}
        Without effect: the solver draws no random numbers.
    """

    copy_X: bool = True
    random_state: Any = None
    selection: str = "cyclic"
