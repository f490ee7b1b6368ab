"""Pictures of fitted models: `plot_path` and `plot_cv`. They need matplotlib (extra `plot`)."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, check_X_y

from proxlearn.errors import InputError
from proxlearn.sklearn.fitting import FLOATS, limits_of, sample_weights
from proxlearn.sklearn.multi_task_problem import Tasks
from proxlearn.sklearn.regression_path import solve_path

COLOURS = (*(f"C{k}" for k in range(10)), "k", "0.45")
MOST_NAMES = len(COLOURS)
"""Columns with a name and a colour in the picture of a path: those with the largest coefficients.

The others are light grey.
"""


def plot_path(
    model: Any, X: Any = None, y: Any = None, *, sample_weight: Any = None, axes: Any = None
) -> Any:
    """Draw the coefficients along the path over alpha, and the duality gap below.

    The path is that of the model's penalty with its groups, weights of columns and intercept. Of a
    multi-task model the lengths of the columns' coefficients are drawn.

    Parameters
    ----------
    model : fitted LassoIC, LassoCV, ElasticNetCV, or CV of a group or multi-task model
    X : array or sparse matrix (m, n), optional
        The data of the fit; needed unless the model keeps its path, as `LassoIC` does.
    y : array (m,) or (m, T), optional
        The target.
    sample_weight : array (m,), optional
        The weights of the fit.
    axes : two matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from proxlearn.sklearn import LassoIC, plot_path
    >>> model = LassoIC("bic").fit(*load_diabetes(return_X_y=True))
    >>> figure = plot_path(model)
    >>> len(figure.axes)
    2
    """
    check_is_fitted(model)
    alphas, coefs, gaps = _path(model, X, y, sample_weight)
    figure, (above, below) = _two_axes(axes)
    names = [f"x{j}" for j in range(len(coefs))]
    if hasattr(model, "feature_names_in_"):
        names = model.feature_names_in_
    sizes = np.abs(coefs).max(axis=1)
    named = np.argsort(-sizes, kind="stable")[:MOST_NAMES].tolist()
    for j in np.flatnonzero(sizes):
        style = {"color": "0.8", "zorder": 1}
        if j in named:
            style = {"color": COLOURS[named.index(j)], "label": str(names[j])}
        above.plot(alphas, coefs[j], lw=1.2, **style)
    above.axhline(0.0, color="0.7", lw=0.8, zorder=0)
    above.set_ylabel("coefficient")
    if sizes.any():
        above.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    _finish(above, below, alphas, gaps, float(model.alpha_), float(model.tol))
    counts = np.count_nonzero(coefs, axis=0)
    _count_non_zeros(above, alphas, counts)
    return figure


def plot_cv(model: Any, *, axes: Any = None) -> Any:
    """Draw the mean error on held-out folds, with its standard error, and the duality gap below.

    Parameters
    ----------
    model : fitted LassoCV, ElasticNetCV, or CV of a group or multi-task model
        With one target. Several shares of l1 have a curve each.
    axes : two matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from proxlearn.sklearn import LassoCV, plot_cv
    >>> figure = plot_cv(LassoCV().fit(*load_diabetes(return_X_y=True)))
    >>> figure.axes[0].get_ylabel()
    'mean squared error'
    """
    check_is_fitted(model)
    if not hasattr(model, "mse_path_") or np.ndim(model.alpha_):
        raise InputError(
            f"plot_cv got {type(model).__name__}; expected a regressor that was cross-validated on "
            "one target, such as LassoCV"
        )
    figure, (above, below) = _two_axes(axes)
    folds = model.mse_path_.shape[-1]
    errors = model.mse_path_.reshape(-1, model.mse_path_.shape[-2], folds)
    grids = np.broadcast_to(model.alphas_, errors.shape[:2])
    ratios = model._ratios()
    for ratio, alphas, each in zip(ratios, grids, errors, strict=True):
        mean = each.mean(axis=1)
        spread = each.std(axis=1, ddof=min(1, folds - 1)) / np.sqrt(folds)
        label = f"l1_ratio {ratio:g}" if len(errors) > 1 else f"mean of {folds} folds"
        (drawn,) = above.plot(alphas, mean, lw=1.6, label=label)
        colour = drawn.get_color()
        above.fill_between(alphas, mean - spread, mean + spread, color=colour, alpha=0.2, lw=0)
    above.set_ylabel("mean squared error")
    above.legend(fontsize="small", frameon=False)
    gaps = np.reshape(model.gap_path_, errors.shape[:2])
    _finish(above, below, grids.T, gaps.T, float(model.alpha_), float(model.tol))
    return figure


def _path(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Values of alpha, coefficients (n, K) and relative gaps (K,)."""
    if hasattr(model, "coefs_path_"):
        return model.alphas_, model.coefs_path_, model.gap_path_
    if X is None or y is None or not hasattr(model, "alphas_") or np.ndim(model.alpha_):
        raise InputError(
            f"plot_path got {type(model).__name__} without its data; expected plot_path(model, X, "
            "y) with the data of the fit, and one target"
        )
    ratio = model._chosen_ratio()
    grids = np.atleast_2d(model.alphas_)
    grid = grids[int(np.argmax(model._ratios() == ratio))] if len(grids) > 1 else grids[0]
    X, y = check_X_y(X, y, accept_sparse="csc", dtype=FLOATS, multi_output=True, y_numeric=True)
    y = np.asarray(y, dtype=np.float64)
    w = sample_weights(sample_weight, X.shape[0])
    s = np.ones(X.shape[0]) if w is None else w * (X.shape[0] / w.sum())
    penalty = model._penalty(X.shape[1], ratio)
    if y.ndim == 1:
        answers = solve_path(
            X, y, penalty, grid, None, s, float(model.tol), model.max_iter, model.fit_intercept
        )
        coefs = np.stack([answer.x[0] for answer in answers], axis=1)
    else:
        levels, l2s = (s.sum() * penalty[name] * grid for name in ("level", "l2"))
        tasks = Tasks(X, y, s, model.fit_intercept)
        answers = list(tasks.path(levels, l2s, limits_of(model)))
        rows = np.stack([answer.x.reshape(y.shape[1], -1) for answer in answers], axis=2)
        coefs = np.sqrt(np.square(rows).sum(axis=0))
    gaps = [answer.gap[0] / max(abs(answer.objective[0]), 1e-300) for answer in answers]
    return grid, coefs, np.array(gaps)


def _two_axes(axes: Any) -> tuple[Any, Any]:
    if axes is not None:
        return axes[0].figure, axes
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 5.2), layout="constrained")
    return figure, figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))


def _finish(above: Any, below: Any, alphas: Any, gaps: Any, chosen: float, tol: float) -> None:
    """The gap below, logarithmic axes, the chosen value, the largest value on the left."""
    below.plot(alphas, np.maximum(gaps, np.finfo(float).eps), color="0.3", lw=1.2)
    below.axhline(tol, color="C3", ls="--", lw=1.0)
    below.annotate("tol", (0.01, tol), (0, 2), xycoords=("axes fraction", "data"),
                   textcoords="offset points", fontsize="x-small", color="C3")  # fmt: skip
    below.set_yscale("log")
    below.set_ylim(1e-17, max(10 * tol, 10 * float(np.max(gaps))))
    below.set_ylabel("relative gap")
    below.set_xlabel("alpha")
    for axis in (above, below):
        axis.set_xscale("log")
        axis.axvline(chosen, color="k", ls=":", lw=1.2)
        axis.spines[["top", "right"]].set_visible(False)
    positive = np.ravel(alphas)[np.ravel(alphas) > 0]
    limits = float(positive.max()), float(positive.min())
    above.set_xlim(*limits)
    late = np.log(chosen / limits[0]) < 0.7 * np.log(limits[1] / limits[0])
    above.annotate(
        f"alpha = {chosen:.3g}", (chosen, 1.0), (-3 if late else 3, -10),
        xycoords=("data", "axes fraction"), textcoords="offset points",
        ha="right" if late else "left", fontsize="small",
    )  # fmt: skip


def _count_non_zeros(above: Any, alphas: Any, counts: Any) -> None:
    """The numbers of non-zeros above the axis, as glmnet draws them."""
    places = np.unique(np.linspace(0, len(alphas) - 1, 8).round().astype(int))
    for k in places:
        above.annotate(
            str(counts[k]), (alphas[k], 1.02), xycoords=("data", "axes fraction"),
            ha="center", fontsize="x-small", color="0.3",
        )  # fmt: skip
