"""The largest gap with which a point counts as SOLVED."""

from typing import Any

EPS = 2.0**-52
"""Machine precision of float64, in which every certificate is computed."""


def allowed_gap(tol: float, objective: Any, at_zero: Any) -> Any:
    """``max(tol * |F(x)|, EPS * |F(0)|)``, the gap up to which a point x is SOLVED.

    The tolerance is relative to the objective. Where the optimum is 0 or nearly so (an exact fit),
    F(x) is only known to rounding and no relative tolerance can be met: there the gap may be as
    large as the machine precision times F(0), the objective at the penalty's point nearest 0.

    F(x) and F(0) are numbers, arrays or tensors, and F(0) is finite. The result is NaN, which no
    gap meets, where F(x) is not finite.

    >>> allowed_gap(1e-6, 2.0, 10.0)
    2e-06
    >>> allowed_gap(1e-6, 0.0, 1.0) == EPS
    True
    """
    relative, floor = tol * abs(objective), EPS * abs(at_zero)
    return relative + (floor > relative) * (floor - relative)
