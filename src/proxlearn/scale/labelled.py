"""Problems in arrays of xarray: dimensions by name, any number of them for the problems."""

import math
from collections.abc import Callable
from typing import Any

from proxlearn.core.glm import STATUSES
from proxlearn.errors import InputError


def solve_labelled(
    A: Any, b: Any, options: dict[str, Any], solve: Callable[[Any, Any, dict[str, Any]], Any]
) -> Any:
    """A data set with x, objective, gap, status and iterations over the dimensions of b.

    The dimension that A and b share and that comes last but one in A is that of the samples. The
    last one of A is that of x. All others of b are those of the problems. In the data set x is
    named "solution" where a dimension is named x, as in images.
    """
    import xarray

    if not (isinstance(A, xarray.DataArray) and isinstance(b, xarray.DataArray)):
        raise InputError("A or b is no DataArray and the other is; expected both to be one")
    if len(A.dims) < 2 or A.dims[-2] not in b.dims:
        raise InputError(
            f"A has dimensions {A.dims} and b {b.dims}; expected the last but one of A in b"
        )
    sample, feature = A.dims[-2:]
    lead = tuple(name for name in b.dims if name != sample)
    if A.dims[:-2] not in ((), lead) or feature in b.dims:
        raise InputError(
            f"A has dimensions {A.dims} and b {b.dims}; expected {sample} and one more in A, "
            f"after {lead} where each problem has its own A"
        )
    shape = tuple(b.sizes[name] for name in lead)
    count = math.prod(shape)
    rows = b.transpose(*lead, sample).data.reshape(count, b.sizes[sample])
    matrix = A.data.reshape(count, *A.shape[-2:]) if len(A.dims) > 2 else A.data
    flat = {name: _flat(name, value, lead, count, feature) for name, value in options.items()}
    found = solve(matrix, rows, flat)
    width = found.x.shape[-1]
    last = str(feature) if width == A.shape[-1] else "entry"
    data = {
        name: (lead, getattr(found, name).reshape(shape))
        for name in ("objective", "gap", "status", "iterations")
    }
    coordinates = {k: v for k, v in b.coords.items() if sample not in v.dims}
    if last == feature and feature in A.coords:
        coordinates[feature] = A.coords[feature]
    x = {"solution" if "x" in lead else "x": ((*lead, last), found.x.reshape(*shape, width))}
    return xarray.Dataset({**x, **data}, coordinates, {"statuses": list(STATUSES)})


def _flat(name: str, value: Any, lead: tuple[Any, ...], count: int, feature: Any) -> Any:
    """An option with one axis for all problems, or none."""
    if not hasattr(value, "dims"):
        return value
    rest = tuple(d for d in value.dims if d not in lead)
    if rest not in ((), (feature,)) or set(value.dims) - set(rest) not in (set(), set(lead)):
        raise InputError(
            f"{name} has dimensions {value.dims}; expected those of the problems, {lead}"
        )
    if rest == value.dims:
        return value.data
    whole = value.transpose(*lead, *rest).data
    return whole.reshape(count, *whole.shape[len(lead) :])
