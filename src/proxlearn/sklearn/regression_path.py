"""Paths of least squares problems over alpha: `enet_path`, `lasso_path`, and their grid."""

import numbers
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_array

from proxlearn.core.glm import Answer, Limits, describe, path_glm
from proxlearn.errors import InputError
from proxlearn.sklearn.fitting import (
    FLOATS,
    Array,
    aim,
    require_at_least,
    require_ratio,
    warn_unless_solved,
)
from proxlearn.sklearn.multi_task_problem import Tasks

NO_GRID = (
    "Automatic alpha grid generation is not supported for l1_ratio=0. Please supply a grid by "
    "providing your estimator with the appropriate `alphas=` argument."
)


def enet_path(
    X: Any,
    y: Any,
    *,
    l1_ratio: float = 0.5,
    eps: float = 1e-3,
    alphas: Any = 100,
    precompute: Any = "auto",
    Xy: Any = None,
    copy_X: bool = True,
    coef_init: Any = None,
    verbose: Any = False,
    return_n_iter: bool = False,
    positive: bool = False,
    check_input: bool = True,
    sample_weight: Any = None,
    tol: float = 1e-6,
    max_iter: int = 10_000,
    random_state: Any = None,
    selection: str = "cyclic",
    n_alphas: Any = None,
    **params: Any,
) -> tuple[Any, ...]:
    """Coefficients of an elastic net without intercept, for falling values of alpha.

    Parameters
    ----------
    X : array or sparse matrix (m, n)
    y : array (m,) or (m, T)
        One target, or several, whose coefficients share their columns (`MultiTaskElasticNet`).
    l1_ratio : float, default=0.5
        Share of the l1 norm in the penalty, from 0 to 1.
    eps : float, default=1e-3
        The smallest alpha of an automatic grid, relative to the largest.
    alphas : int or array, default=100
        Number of values from the smallest alpha whose coefficients are all 0 down to `eps` times
        that, or the values.
    coef_init : array (n,) or (T, n), optional
        Coefficients from which the first problem starts.
    return_n_iter : bool, default=False
        Whether the numbers of working sets are returned too.
    positive : bool, default=False
        Whether the coefficients are constrained to be >= 0.
    check_input : bool, default=True
        Whether X and y are validated.
    sample_weight : array (m,), optional
        Weights >= 0, whose sum should be m.
    tol : float, default=1e-6
        Largest duality gap, relative to the objective.
    max_iter : int, default=10000
        Largest number of working sets for each alpha.
    precompute, Xy, copy_X, verbose, random_state, selection, do_screening
        Without effect; scikit-learn's function has them.
    n_alphas : int, optional
        An older name for a number of `alphas`.

    Returns
    -------
    alphas : array (K,)
        The values of alpha, largest first.
    coefs : array (n, K) or (T, n, K)
        The coefficients.
    dual_gaps : array (K,)
        Upper bounds on the distances of the objectives to their minima.
    n_iters : list of int
        Numbers of working sets, if `return_n_iter`.

    Examples
    --------
    >>> import numpy as np
    >>> from proxlearn.sklearn import ElasticNet
    >>> alphas, coefs, gaps = ElasticNet.path(np.eye(2), [3.0, 0.5], l1_ratio=1.0, alphas=[0.5])
    >>> coefs[:, 0].tolist()
    [2.0, 0.0]
    """
    params.pop("do_screening", None)
    if params:
        raise InputError(f"Unexpected parameters in params: {', '.join(params)}")
    alphas = alphas if n_alphas is None else n_alphas
    require_ratio(l1_ratio=l1_ratio)
    require_at_least(0, tol=tol)
    require_at_least(1, max_iter=max_iter)
    if check_input:
        X = check_array(X, accept_sparse="csc", dtype=FLOATS)
        y = check_array(y, ensure_2d=False, dtype=FLOATS)
    if y.ndim != 1:
        options = {"eps": eps, "alphas": alphas, "coef_init": coef_init, "positive": positive}
        found = _several_targets(
            X, y, l1_ratio, sample_weight, Limits(tol, int(max_iter)), **options
        )
        return found if return_n_iter else found[:3]
    top = partial(largest_alpha, X, y, sample_weight, l1_ratio, False, positive)
    grid = falling_grid(alphas, eps, top)
    penalty = {"l1": l1_ratio, "l2": 1.0 - l1_ratio, "lower": 0.0 if positive else -np.inf}
    answers = solve_path(X, y, penalty, grid, coef_init, sample_weight, tol, max_iter)
    return path_results(answers, grid, X.shape[0], return_n_iter)


def solve_path(
    X: Any, y: Array, penalty: dict[str, Any], grid: Array, coef_init: Any, sample_weight: Any,
    tol: float, max_iter: int, intercept: bool = False,
) -> list[Answer]:  # fmt: skip
    """Answers for falling alphas with a penalty for alpha = 1, as arguments of `describe`."""
    m = X.shape[0]
    glm = describe(X, y, "squares", **penalty, sample_weight=sample_weight, intercept=intercept)
    limits = Limits(aim(tol) if grid.all() else tol, int(max_iter))
    answers = list(path_glm(glm, m * grid, coef_init, limits))
    warn_unless_solved(answers, tol)
    return answers


def path_results(
    answers: list[Answer], grid: Array, m: int, return_n_iter: bool
) -> tuple[Any, ...]:
    """What a path function returns: alphas, coefs (n, K), dual_gaps and perhaps n_iters."""
    coefs = np.stack([answer.x[0] for answer in answers], axis=1)
    gaps = np.array([answer.gap[0] / m for answer in answers])
    counts = [int(answer.iterations[0]) for answer in answers]
    return (grid, coefs, gaps, counts) if return_n_iter else (grid, coefs, gaps)


def _several_targets(
    X: Any, Y: Array, l1_ratio: float, sample_weight: Any, limits: Limits, *,
    eps: float, alphas: Any, coef_init: Any, positive: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """alphas, coefs (T, n, K), gaps and iterations of the path of `MultiTaskElasticNet`."""
    if positive:
        raise InputError("positive=True is not allowed for multi-output (y.ndim != 1)")
    m, n = X.shape
    tasks = Tasks(X, Y, np.ones(m) if sample_weight is None else np.asarray(sample_weight), False)

    def top() -> float:
        if l1_ratio == 0:
            raise InputError(NO_GRID)
        return float(tasks.largest_level() / (m * l1_ratio))

    grid = falling_grid(alphas, eps, top)
    aimed = replace(limits, tol=aim(limits.tol) if grid.all() else limits.tol)
    levels, l2s = m * l1_ratio * grid, m * (1.0 - l1_ratio) * grid
    answers = list(tasks.path(levels, l2s, aimed, coef_init))
    warn_unless_solved(answers, limits.tol)
    coefs = np.stack([answer.x.reshape(-1, n) for answer in answers], axis=-1)
    gaps = np.array([answer.gap[0] / m for answer in answers])
    return grid, coefs, gaps, [int(answer.iterations[0]) for answer in answers]


def lasso_path(X: Any, y: Any, **options: Any) -> tuple[Any, ...]:
    """Coefficients of a LASSO without intercept, for falling values of alpha.

    Parameters
    ----------
    X : array or sparse matrix (m, n)
    y : array (m,) or (m, T)
    **options
        Those of `enet_path`; `l1_ratio` is 1.

    Returns
    -------
    alphas, coefs, dual_gaps[, n_iters]
        As for `enet_path`.

    Examples
    --------
    >>> import numpy as np
    >>> from proxlearn.sklearn import Lasso
    >>> Lasso.path(np.eye(2), [3.0, 0.5], alphas=[0.5])[1][:, 0].tolist()
    [2.0, 0.0]
    """
    return enet_path(X, y, **{**options, "l1_ratio": 1.0})


def largest_alpha(
    X: Any, y: Array, w: Array | None, l1_ratio: float, fit_intercept: bool, positive: bool,
    weights: Any = 1.0,
) -> float:  # fmt: skip
    """The smallest alpha whose coefficients are all 0, with weights of the columns."""
    if l1_ratio == 0:
        raise InputError(NO_GRID)
    return largest_correlation(X, y, w, fit_intercept, positive, weights) / l1_ratio


def falling_grid(alphas: Any, eps: float, top: Callable[[], float]) -> Array:
    """The values of alpha that are given, or a number of them from `top` down to `eps` times it."""
    if alphas is not None and not isinstance(alphas, numbers.Integral):
        return _given_alphas(alphas)
    count = 100 if alphas is None else int(alphas)
    require_at_least(1, alphas=count)
    require_at_least(0, strict=True, eps=eps)
    largest = max(top(), 0.0)
    if largest <= np.finfo(np.float64).resolution:
        return np.full(count, np.finfo(np.float64).resolution)
    return np.geomspace(largest, largest * eps, count)


def _given_alphas(alphas: Any) -> Array:
    """Values of alpha that a user gives, validated and sorted."""
    if np.ndim(alphas) != 1 or not len(alphas):
        raise InputError(f"alphas is {alphas!r}; expected a number of values, or some values")
    for index, alpha in enumerate(alphas):
        name = f"alphas[{index}]"
        if not isinstance(alpha, numbers.Real):
            raise TypeError(f"{name} must be an instance of float, not {type(alpha).__name__}.")
        if not float(alpha) >= 0 or alpha == np.inf:
            raise InputError(f"{name} == {alpha}, must be >= 0.0.")
    return np.sort(np.asarray(alphas, dtype=np.float64))[::-1]


def largest_correlation(
    X: Any, y: Array, w: Array | None, fit_intercept: bool, positive: bool, weights: Any = 1.0
) -> float:
    """The largest weighted mean of x_j (y - mean y) / weight_j over the columns j.

    Of absolute values, unless `positive`. Columns of weight 0 are fitted first, since they are not
    penalised.
    """
    free = np.flatnonzero(np.broadcast_to(weights, X.shape[1]) == 0)
    residual = least_squares_residual(X[:, free], y, w, fit_intercept) if len(free) else y
    push = correlations(X, residual, w, fit_intercept)
    push = push if positive else np.abs(push)
    if np.ndim(weights):
        push = push[weights > 0] / weights[weights > 0]
    return float(push.max(initial=0.0))


def correlations(X: Any, y: Array, w: Array | None, fit_intercept: bool) -> Array:
    """The weighted means of x_j (y - mean y), for every column, (n,)."""
    total = X.shape[0] if w is None else w.sum()
    residual = y - np.average(y, weights=w) if fit_intercept else y
    weighted = residual if w is None else w * residual
    # In X's own precision: a product with another one would copy X.
    push = np.asarray(weighted.astype(X.dtype) @ X, dtype=np.float64)
    if fit_intercept:
        # The residual has mean 0 only up to rounding, which a large mean of a column multiplies.
        mean = X.mean(axis=0) if w is None else (w / total).astype(X.dtype) @ X
        push = push - np.asarray(mean).ravel() * float(weighted.sum())
    found: Array = push / total
    return found


def least_squares_residual(X: Any, y: Array, w: Array | None, fit_intercept: bool) -> Array:
    """What remains of y after a least squares fit to the columns of X, with weighted samples."""
    dense = X.toarray() if scipy.sparse.issparse(X) else X
    columns = np.column_stack([dense, np.ones(len(y))] if fit_intercept else [dense])
    root = np.ones(len(y)) if w is None else np.sqrt(w)
    found = np.linalg.lstsq(root[:, None] * columns, root * y)[0]
    left: Array = y - columns @ found
    return left
