"""Groups of columns as users give them, the penalty that they make, and its grid of alphas."""

import numbers
from typing import Any

import numpy as np

from proxlearn.core.penalty_kinds import Groups
from proxlearn.errors import InputError
from proxlearn.sklearn.fitting import Array
from proxlearn.sklearn.regressor import Penalty


def groups_of(groups: Any, features: int) -> Groups:
    """The group of each column, from a size, labels (n,), or lists of columns."""
    if groups is None:
        return Groups(np.arange(features))
    if isinstance(groups, numbers.Integral):
        if groups < 1 or features % int(groups):
            raise InputError(
                f"groups is {groups} and X has {features} columns; expected a size that divides "
                "the number of columns, a label for each column, or lists of columns"
            )
        return Groups(np.arange(features) // int(groups))
    held = list(groups)
    if held and all(np.ndim(part) == 1 for part in held):
        return _of_lists([np.asarray(part) for part in held], features)
    if len(held) != features:
        raise InputError(
            f"groups has {len(held)} labels and X has {features} columns; expected one label for "
            "each column, or lists of columns"
        )
    return Groups(np.unique(np.asarray(held), return_inverse=True)[1].astype(np.intp))


def _of_lists(lists: list[Any], features: int) -> Groups:
    """The groups of lists of columns, each column in exactly one."""
    columns = np.concatenate(lists)
    if columns.dtype.kind not in "iu" or sorted(columns.tolist()) != list(range(features)):
        raise InputError(
            f"groups holds lists of columns; expected every column from 0 to {features - 1} in "
            "exactly one of them"
        )
    group_of = np.empty(features, dtype=np.intp)
    for number, part in enumerate(lists):
        group_of[part] = number
    return Groups(group_of)


def group_weights(weights: Any, groups: Groups) -> Array:
    """A weight for each group, (G,): 1 by default, or the square roots of the sizes."""
    sizes = np.diff(groups.starts)
    if weights is None:
        return np.ones(len(sizes))
    if isinstance(weights, str):
        if weights != "sqrt":
            raise InputError(f"weights is {weights!r}; expected 'sqrt', or a number for each group")
        return np.sqrt(sizes)
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != sizes.shape or not np.isfinite(values).all() or (values <= 0).any():
        raise InputError(f"weights is {weights!r}; expected {len(sizes)} numbers > 0, one a group")
    return values


def group_penalty(groups: Groups, weights: Array, ratio: float) -> Penalty:
    """``ratio |x|_1 + (1 - ratio) sum_g weights_g |x_g|`` as arguments of `describe`."""
    return {"l1": ratio, "level": (1.0 - ratio) * weights, "groups": groups}


def largest_alpha_of_groups(c: Array, groups: Groups, weights: Array, ratio: float) -> float:
    """The smallest alpha for which x = 0 is optimal, where c (n,) are correlations at 0.

    x = 0 is optimal where ``|soft(c_g, alpha ratio)| <= alpha (1 - ratio) weights_g`` for all
    groups. The left side falls and the right side grows with alpha, so that bisection finds it.
    """

    def is_enough(alpha: float) -> bool:
        left = groups.lengths(np.maximum(np.abs(c) - alpha * ratio, 0.0))
        return bool((left <= alpha * (1.0 - ratio) * weights).all())

    size = float(np.max(np.abs(c), initial=0.0))
    if ratio == 1.0 or size == 0.0:
        return size
    if ratio == 0.0:
        return float((groups.lengths(c) / weights).max())
    low, high = 0.0, float((groups.lengths(c) / ((1.0 - ratio) * weights)).max())
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
