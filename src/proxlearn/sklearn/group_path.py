"""Paths of group and sparse-group LASSO problems over alpha: `group_path`."""

from functools import partial
from typing import Any

from sklearn.utils.validation import check_X_y

from proxlearn.sklearn.fitting import FLOATS, require_at_least, require_ratio, sample_weights
from proxlearn.sklearn.group_penalty import (
    group_penalty,
    group_weights,
    groups_of,
    largest_alpha_of_groups,
)
from proxlearn.sklearn.regression_path import correlations, falling_grid, path_results, solve_path


def group_path(
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    weights: Any = None,
    l1_ratio: float = 0.0,
    eps: float = 1e-3,
    alphas: Any = 100,
    coef_init: Any = None,
    return_n_iter: bool = False,
    sample_weight: Any = None,
    tol: float = 1e-6,
    max_iter: int = 10_000,
) -> tuple[Any, ...]:
    """Coefficients of a group LASSO without intercept, for falling values of alpha.

    Parameters
    ----------
    X : array or sparse matrix (m, n)
    y : array (m,)
    groups : int, array (n,) or list of lists
        The size of consecutive groups, a label for each column, or lists of columns.
    weights : array (G,) or "sqrt", optional
        Weights of the groups, in the order of their labels.
    l1_ratio : float, default=0
        Share of the l1 norm in the penalty, from 0 to 1 (`SparseGroupLasso`).
    eps : float, default=1e-3
        The smallest alpha of an automatic grid, relative to the largest.
    alphas : int or array, default=100
        Number of values from the smallest alpha whose coefficients are all 0 down to `eps` times
        that, or the values.
    coef_init : array (n,), optional
        Coefficients from which the first problem starts.
    return_n_iter : bool, default=False
        Whether the numbers of working sets are returned too.
    sample_weight : array (m,), optional
        Weights >= 0; only their ratios matter.
    tol : float, default=1e-6
        Largest duality gap, relative to the objective.
    max_iter : int, default=10000
        Largest number of working sets for each alpha.

    Returns
    -------
    alphas : array (K,)
        The values of alpha, largest first.
    coefs : array (n, K)
        The coefficients.
    dual_gaps : array (K,)
        Upper bounds on the distances of the objectives to their minima.
    n_iters : list of int
        Numbers of working sets, if `return_n_iter`.

    Examples
    --------
    >>> import numpy as np
    >>> from proxlearn.sklearn import GroupLasso
    >>> alphas, coefs, gaps = GroupLasso.path(np.eye(4), [3.0, 4.0, 1.0, 0.0], groups=2, alphas=3)
    >>> alphas.round(3).tolist(), coefs[:, 0].tolist()
    ([1.25, 0.04, 0.001], [0.0, 0.0, 0.0, 0.0])
    """
    require_ratio(l1_ratio=l1_ratio)
    require_at_least(0, tol=tol)
    require_at_least(1, max_iter=max_iter)
    X, y = check_X_y(X, y, accept_sparse="csc", dtype=FLOATS, y_numeric=True)
    m, n = X.shape
    w = sample_weights(sample_weight, m)
    w = None if w is None else w * (m / w.sum())
    held = groups_of(groups, n)
    own = group_weights(weights, held)
    top = partial(largest_alpha_of_groups, correlations(X, y, w, False), held, own, l1_ratio)
    grid = falling_grid(alphas, eps, top)
    penalty = group_penalty(held, own, l1_ratio)
    answers = solve_path(X, y, penalty, grid, coef_init, w, tol, max_iter)
    return path_results(answers, grid, m, return_n_iter)
