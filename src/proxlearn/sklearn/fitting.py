"""What the estimators share: checks of parameters and weights, the warning, linear predictions."""

import math
import numbers
import os
import sys
import warnings
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from proxlearn.checks import MOST_ITERATIONS
from proxlearn.core import kernel
from proxlearn.core.glm import STATUSES, Answer, Limits
from proxlearn.errors import InputError
from proxlearn.sklearn.libraries import METHODS, answering_in_kind

Array = npt.NDArray[np.float64]

FLOATS = (np.float64, np.float32)
"""The precisions in which X is used as it is; everything else becomes float64."""

COMPRESSED = (
    scipy.sparse.csr_array, scipy.sparse.csr_matrix,
    scipy.sparse.csc_array, scipy.sparse.csc_matrix,
)  # fmt: skip
"""The sparse matrices whose predictions need no conversion."""

SWITCHES = ("fit_intercept", "positive", "warm_start")
"""Parameters that are True or False; an estimator has some of them."""

SMALLEST_AIM = 1e-12
"""The smallest relative gap that is aimed at where `tol` is larger; rounding hides smaller ones."""


class Estimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that remembers the names of its class's parameters, which `clone` asks for.

    Its methods answer in the library of X, where scikit-learn's `array_api_dispatch` says so.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array (n,)
        Their names, where all are strings.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        for name in METHODS:
            if name in vars(cls):
                setattr(cls, name, answering_in_kind(vars(cls)[name]))
        super().__init_subclass__(**options)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = tags.input_tags.sparse = True
        return tags

    @classmethod
    @cache
    def _get_param_names(cls) -> Any:
        return super()._get_param_names()


def limits_of(estimator: Any, penalised: bool = True) -> Limits:
    """When the solve of an estimator stops, from its `tol` and `max_iter`."""
    require_common(estimator, 1)
    tol = float(estimator.tol)
    return Limits(aim(tol) if penalised else tol, int(estimator.max_iter))


def aim(tol: float) -> float:
    """The relative gap that a solve aims at; one that is larger but at most `tol` is accepted.

    The last steps are Newton steps, so that the smaller gap costs at most one pass more (nothing
    measurable on the data of benchmarks/estimators.py, November 2026), and coefficients agree with
    exact ones to about its square root.
    """
    return tol if tol <= SMALLEST_AIM else max(1e-4 * tol, SMALLEST_AIM)


def warn_unless_solved(answers: Answer | list[Answer], tol: float) -> None:
    """Give a `ConvergenceWarning` where a problem of an answer, or of a path, was not solved."""
    answers = answers if isinstance(answers, list) else [answers]
    if not any(answer.status.any() for answer in answers):
        return
    failed = [(answer, _failed(answer, tol)) for answer in answers]
    names = sorted({STATUSES[code] for answer, where in failed for code in answer.status[where]})
    if not names:
        return
    with np.errstate(divide="ignore", invalid="ignore"):
        worst = max(
            float((answer.gap / np.abs(answer.objective))[where].max())
            for answer, where in failed
            if where.any()
        )
    warn_of_gap(", ".join(names), worst, tol)


def _failed(answer: Answer, tol: float) -> npt.NDArray[np.bool_]:
    """Which problems ended without a gap of at most `tol` times the objective, (B,)."""
    met = (answer.status == 1) & (answer.gap <= tol * np.abs(answer.objective))
    failed: npt.NDArray[np.bool_] = (answer.status != 0) & ~met
    return failed


def warn_of_gap(status: str, gap: float, tol: float) -> None:
    """Give the `ConvergenceWarning` of a fit that ended at a relative gap above `tol`."""
    warn(
        "Objective did not converge. You might want to increase the number of iterations. "
        f"The fit ended {status} at a relative duality gap of {gap:.1e} and tol is {tol:g}: "
        "raise max_iter, loosen tol, or scale the features",
        ConvergenceWarning,
    )


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Give a warning at the line outside the package that called into it."""
    frame, depth = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("proxlearn."):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(text, category, stacklevel=depth)


def require_at_least(low: float, strict: bool = False, **numbers_: Any) -> None:
    """Each keyword is a finite number >= `low`, or > `low`."""
    for name, value in numbers_.items():
        good = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if not good or not (value > low if strict else value >= low) or value == math.inf:
            sign = ">" if strict else ">="
            raise InputError(f"{name} is {value!r}; expected a number {sign} {low:g}")


def require_common(estimator: Any, least: int) -> None:
    """Check the parameters of nearly all estimators: `tol`, `max_iter` >= `least`, switches."""
    require_at_least(0, tol=estimator.tol)
    require_at_least(least, max_iter=estimator.max_iter)
    if not isinstance(estimator.max_iter, numbers.Integral):
        raise InputError(f"max_iter is {estimator.max_iter!r}; expected a whole number")
    if int(estimator.max_iter) > MOST_ITERATIONS:
        raise InputError(f"max_iter is {estimator.max_iter}; expected at most {MOST_ITERATIONS}")
    own = estimator._get_param_names()
    for name in SWITCHES:
        value = getattr(estimator, name) if name in own else False
        if not isinstance(value, bool | np.bool_):
            raise InputError(f"{name} is {value!r}; expected True or False")


def ratios_of(name: str, values: Any) -> Array:
    """One or several numbers from 0 to 1, as an array."""
    ratios: Array = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if ratios.ndim != 1 or not len(ratios):
        raise InputError(f"{name} is {values!r}; expected a number from 0 to 1, or some")
    for ratio in ratios:
        require_ratio(**{name: ratio})
    return ratios


def require_ratio(**ratios: Any) -> None:
    """Each keyword is a number from 0 to 1."""
    for name, value in ratios.items():
        if not isinstance(value, numbers.Real) or not 0 <= float(value) <= 1:
            raise InputError(f"{name} is {value!r}; expected a number from 0 to 1")


def sample_weights(sample_weight: Any, samples: int) -> Array | None:
    """Validated weights of the samples, (m,); None where all are 1.

    A single number is the weight of every sample.
    """
    if sample_weight is None:
        return None
    w: Array = np.asarray(sample_weight, dtype=np.float64)
    if w.ndim and w.shape != (samples,):
        raise InputError(f"sample_weight has shape {w.shape}; expected ({samples},), one a sample")
    if not np.isfinite(w).all() or (w < 0).any():
        raise InputError("sample_weight holds negative or infinite values; expected weights >= 0")
    if not w.any():
        raise InputError("every sample_weight is zero; expected at least one above 0")
    if not w.ndim:
        return None if w == 1 else np.full(samples, w)
    usable: Array = writable(w)
    return usable


def validated(estimator: Any, X: Any, y: Any, **options: Any) -> tuple[Any, Any]:
    """X and y as scikit-learn's `validate_data` gives them, with its errors and attributes.

    Finite contiguous arrays of numbers need no conversion, and are recognised in a tenth of the
    0.1 ms that `validate_data` takes (scikit-learn 1.9), half of the fit of a small problem.
    """
    if _is_plain(X) and are_numbers(y) and len(y) == len(X):
        estimator.n_features_in_ = X.shape[1]
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        return X, y
    X, y = checked(estimator, X, y, accept_sparse="csc", **options)
    return X, y


def checked(estimator: Any, *arrays: Any, **options: Any) -> Any:
    """What scikit-learn's `validate_data` returns, as NumPy's or SciPy's arrays.

    With `array_api_dispatch` it would keep arrays of other libraries, which the core cannot read.
    """
    options = {"dtype": FLOATS} | options
    if not get_config()["array_api_dispatch"]:
        return validate_data(estimator, *arrays, **options)
    with config_context(array_api_dispatch=False):
        return validate_data(estimator, *arrays, **options)


def _is_plain(X: Any) -> bool:
    """Whether X is a finite contiguous (m, n) array of float64 or float32."""
    if type(X) is not np.ndarray or X.ndim != 2 or X.size == 0 or not X.flags.forc:
        return False
    return X.dtype in FLOATS and math.isfinite(kernel.largest_magnitude(X))


def _is_plain_sparse(X: Any) -> bool:
    """Whether X is a finite (m, n) matrix of compressed rows or columns, of float64 or float32."""
    if not isinstance(X, COMPRESSED) or X.dtype not in FLOATS:
        return False
    return X.ndim == 2 and min(X.shape) > 0 and math.isfinite(X.data.sum())


def are_numbers(y: Any) -> bool:
    """Whether y is a finite (m,) array of native numbers, whose sum does not overflow."""
    if type(y) is not np.ndarray or y.ndim != 1 or not y.dtype.isnative:
        return False
    return y.dtype.kind in "biu" or (y.dtype in FLOATS and math.isfinite(y.sum()))


def writable(array: Any) -> Any:
    """The array, or a copy if it is read-only, as joblib makes them: the core rejects those."""
    return array if array.flags.writeable else array.copy()


def last_point(estimator: Any, features: int) -> Array | None:
    """Coefficients and intercept of the last fit, (n + 1,), where `warm_start` asks for them."""
    if not estimator.warm_start or not hasattr(estimator, "coef_"):
        return None
    fits = len(estimator.coef_) == features
    return np.append(estimator.coef_, estimator.intercept_) if fits else None


def thread_count(n_jobs: Any) -> int:
    """Number of threads that `n_jobs` asks for, counted as joblib does: -1 is all processors."""
    if n_jobs is None:
        return 1
    if n_jobs == 0 or not isinstance(n_jobs, numbers.Integral):
        raise InputError(
            f"n_jobs is {n_jobs!r}; expected a number of threads, or -1 for all processors"
        )
    wanted = int(n_jobs)
    return wanted if wanted > 0 else max(1, (os.cpu_count() or 1) + 1 + wanted)


def linear_prediction(estimator: Any, X: Any) -> Any:
    """X coef_^T + intercept_ of a fitted estimator."""
    check_is_fitted(estimator)
    named = hasattr(estimator, "feature_names_in_")
    plain = _is_plain_sparse(X) if isinstance(X, COMPRESSED) else _is_plain(X)
    if named or not plain or X.shape[1] != estimator.n_features_in_:
        X = checked(estimator, X, accept_sparse=("csr", "csc"), reset=False, dtype="numeric")
    coef, intercept = estimator.coef_, estimator.intercept_
    if coef.dtype == np.float32:
        intercept = np.float32(intercept)
    return safe_sparse_dot(X, coef.T, dense_output=True) + intercept
