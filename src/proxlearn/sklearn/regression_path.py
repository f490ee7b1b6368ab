"""Paths of least squares problems over alpha: `enet_path`, `lasso_path`, and their grid."""

import numbers
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from proxlearn.core.glm import Limits, describe, path_glm
from proxlearn.errors import InputError
from proxlearn.sklearn.fitting import (
    FLOATS,
    Array,
    require_at_least,
    require_ratio,
    warn_unless_solved,
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
) -> tuple[Any, ...]:
    """Coefficients of an elastic net without intercept, for falling values of alpha.

    Parameters
    ----------
    X : array or sparse matrix (m, n)
    y : array (m,)
    l1_ratio : float, default=0.5
        Share of the l1 norm in the penalty, from 0 to 1.
    eps : float, default=1e-3
        The smallest alpha of an automatic grid, relative to the largest.
    alphas : int or array, default=100
        Number of values from the smallest alpha whose coefficients are all 0 down to `eps` times
        that, or the values.
    coef_init : array (n,), optional
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
    precompute, Xy, copy_X, verbose, random_state, selection
        Without effect; scikit-learn's function has them.

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
    >>> from proxlearn.sklearn import ElasticNet
    >>> alphas, coefs, gaps = ElasticNet.path(np.eye(2), [3.0, 0.5], l1_ratio=1.0, alphas=[0.5])
    >>> coefs[:, 0].tolist()
    [2.0, 0.0]
    """
    require_ratio(l1_ratio=l1_ratio)
    require_at_least(0, tol=tol)
    require_at_least(1, max_iter=max_iter)
    if check_input:
        X = check_array(X, accept_sparse="csc", dtype=FLOATS)
        y = check_array(y, ensure_2d=False, dtype=FLOATS)
    if y.ndim != 1:
        raise InputError(f"y has shape {y.shape}; expected (m,), a single target")
    grid = alpha_grid(X, y, sample_weight, l1_ratio, False, eps, alphas, positive)
    m = X.shape[0]
    glm = describe(
        X, y, "squares", l1=m * l1_ratio, l2=m * (1.0 - l1_ratio),
        lower=0.0 if positive else -np.inf, sample_weight=sample_weight,
    )  # fmt: skip
    answers = path_glm(glm, grid, coef_init, Limits(tol, int(max_iter)))
    warn_unless_solved(answers, tol)
    coefs = np.stack([answer.x[0] for answer in answers], axis=1)
    gaps = np.array([answer.gap[0] / m for answer in answers])
    if return_n_iter:
        return grid, coefs, gaps, [max(1, int(answer.iterations[0])) for answer in answers]
    return grid, coefs, gaps


def lasso_path(X: Any, y: Any, **options: Any) -> tuple[Any, ...]:
    """Coefficients of a LASSO without intercept, for falling values of alpha.

    Parameters
    ----------
    X : array or sparse matrix (m, n)
    y : array (m,)
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


def alpha_grid(
    X: Any,
    y: Array,
    w: Array | None,
    l1_ratio: float,
    fit_intercept: bool,
    eps: float,
    alphas: Any,
    positive: bool,
) -> Array:
    """The values of alpha, largest first; an automatic grid begins where all coefficients are 0."""
    if alphas is not None and not isinstance(alphas, numbers.Integral):
        values = np.sort(np.asarray(alphas, dtype=np.float64))[::-1]
        if values.ndim != 1 or not len(values) or not (values > 0).all():
            raise InputError(f"alphas is {alphas!r}; expected a number of values, or some")
        return values
    count = 100 if alphas is None else int(alphas)
    require_at_least(1, alphas=count)
    require_at_least(0, strict=True, eps=eps)
    if l1_ratio == 0:
        raise InputError(
            "l1_ratio is 0, for which there is no automatic alpha grid: every alpha has non-zero "
            "coefficients; give the values of alphas"
        )
    top = max(largest_push(X, y, w, fit_intercept, positive) / l1_ratio, 0.0)
    if top <= np.finfo(np.float64).resolution:
        return np.full(count, np.finfo(np.float64).resolution)
    return np.geomspace(top, top * eps, count)


def largest_push(X: Any, y: Array, w: Array | None, fit_intercept: bool, positive: bool) -> float:
    """The largest weighted mean of x_j (y - mean y), or absolute value of one, over the columns."""
    total = X.shape[0] if w is None else w.sum()
    residual = y - np.average(y, weights=w) if fit_intercept else y
    weighted = residual if w is None else w * residual
    # In X's own precision: a product with another one would copy X.
    push = np.asarray(weighted.astype(X.dtype) @ X, dtype=np.float64)
    if fit_intercept:
        # The residual has mean 0 up to rounding, of which a column's mean makes more than a little.
        mean = X.mean(axis=0) if w is None else (w / total).astype(X.dtype) @ X
        push = push - np.asarray(mean).ravel() * float(weighted.sum())
    largest: float = (push if positive else np.abs(push)).max() / total
    return largest
