"""Answers in the library of X: what scikit-learn's `array_api_dispatch` asks for.

The core computes with NumPy's arrays. `answering_in_kind` wraps the methods of an estimator: with
`array_api_dispatch` the arguments become NumPy's arrays, and what `fit` sets and what predictions
return goes to the library and the device of X, the labels to those of y.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils.validation import check_is_fitted

from proxlearn.errors import InputError

METHODS = (
    "fit", "predict", "predict_proba", "predict_log_proba", "decision_function",
    "transform", "inverse_transform",
)  # fmt: skip
"""The methods of an estimator that may be given arrays of another library."""

Method = Callable[..., Any]


@dataclass(frozen=True)
class Library:
    """An array library other than NumPy, and a device of it."""

    namespace: Any
    device: Any

    def take(self, values: Any) -> Any:
        """Numbers as an array of this library; anything else stays."""
        if not isinstance(values, np.ndarray) or values.dtype.kind not in "biuf":
            return values
        return self.namespace.asarray(values, device=self.device)


def answering_in_kind(method: Method) -> Method:
    """The method of an estimator, with answers in the library of X where that is asked for."""

    @wraps(method)
    def called(self: Any, *arrays: Any, **named: Any) -> Any:
        if not get_config()["array_api_dispatch"]:
            return method(self, *arrays, **named)
        fits = method.__name__ == "fit"
        return (_fitted if fits else _predicted)(self, method, arrays, named)

    return called


def _fitted(estimator: Any, method: Method, arrays: Any, named: Any) -> Any:
    """Fit NumPy's arrays, and give what was fitted to the library of X."""
    of_X, of_y = (
        library_of(arrays[i] if len(arrays) > i else named.get(name))
        for i, name in enumerate(("X", "y"))
    )
    _convert(estimator, numpy_array)
    _called_with_numpy(estimator, method, arrays, named)
    if of_X is not None:
        _convert(estimator, of_X.take, ("classes_",))
    if of_y is not None and hasattr(estimator, "classes_"):
        estimator.classes_ = of_y.take(estimator.classes_)
    return estimator


def _predicted(estimator: Any, method: Method, arrays: Any, named: Any) -> Any:
    """Predict with NumPy's arrays, and give the answer to the library of X."""
    check_is_fitted(estimator)
    library = library_of(arrays[0] if arrays else named.get("X"))
    _require_library_of_fit(estimator, library, method.__name__)
    if library is None:
        return method(estimator, *arrays, **named)
    twin = copy.copy(estimator)  # the estimator itself may be used by several threads
    _convert(twin, numpy_array)
    return library.take(_called_with_numpy(twin, method, arrays, named))


def _called_with_numpy(estimator: Any, method: Method, arrays: Any, named: Any) -> Any:
    named = {name: numpy_array(value) for name, value in named.items()}
    return method(estimator, *map(numpy_array, arrays), **named)


def _convert(estimator: Any, converted: Callable[[Any], Any], but: tuple[str, ...] = ()) -> None:
    """Convert the fitted attributes of an estimator."""
    for name, value in list(vars(estimator).items()):
        if name.endswith("_") and not name.startswith("_") and name not in but:
            vars(estimator)[name] = converted(value)


def _require_library_of_fit(estimator: Any, library: Library | None, method: str) -> None:
    """X has to be of the library and on the device of the coefficients, or of the dictionary."""
    kept = estimator.coef_ if hasattr(estimator, "coef_") else estimator.components_
    fitted = library_of(kept)
    if fitted != library:
        raise InputError(
            f"Inputs passed to {type(estimator).__name__}.{method}() must use the same namespace "
            f"and the same device as those passed to fit(): given {_name(library)}, expected "
            f"{_name(fitted)}"
        )


def _name(library: Library | None) -> str:
    return "NumPy" if library is None else f"{library.namespace.__name__} on {library.device}"


def library_of(array: Any) -> Library | None:
    """The library and the device of an array; None where NumPy reads it itself."""
    if isinstance(array, np.ndarray) or not hasattr(array, "__dlpack__"):
        return None
    from sklearn.utils._array_api import get_namespace_and_device

    namespace, _, device = get_namespace_and_device(array)
    return None if np.__name__ in namespace.__name__ else Library(namespace, device)


def numpy_array(value: Any) -> Any:
    """An array of another library as NumPy's; anything else stays."""
    library = library_of(value)
    if library is None:
        return value
    from sklearn.utils._array_api import _convert_to_numpy

    return _convert_to_numpy(value, library.namespace)
