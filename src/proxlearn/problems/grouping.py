"""Groups of coordinates that users give, validated."""

from typing import Any

import numpy as np
import numpy.typing as npt

from proxlearn.errors import InputError
from proxlearn.problems.arrays import Matrix, to_array, to_numpy
from proxlearn.problems.vectors import to_weights


def penalised_groups(groups: Any, weights: Any, A: Matrix) -> tuple[Any, Any]:
    """The group of each coordinate, (n,), and weights (B or 1, G) or None.

    Every coordinate that the user put in no group becomes a group with the weight 0.
    """
    group_of, count = groups_of(groups, A.shape[1])
    w = to_weights("weights", weights, count, A)
    alone = np.flatnonzero(group_of < 0)
    if not len(alone):
        return group_of, w
    group_of[alone] = count + np.arange(len(alone))
    given = np.ones((1, count)) if w is None else to_numpy(w)
    return group_of, A.cast(np.concatenate([given, np.zeros((len(given), len(alone)))], axis=1))


def groups_of(groups: Any, n: int) -> tuple[npt.NDArray[np.int64], int]:
    """The group of each of n coordinates, -1 for none, and the number of groups.

    `groups` is an array (n,) of these numbers, or a list with the coordinates of each group.
    """
    nested = isinstance(groups, (list, tuple)) and any(np.ndim(to_numpy(g)) > 0 for g in groups)
    return _of_lists(groups, n) if nested else _of_numbers(groups, n)


def _of_numbers(groups: Any, n: int) -> tuple[npt.NDArray[np.int64], int]:
    """Groups from a number for each coordinate."""
    numbers = to_numpy(to_array("groups", groups))
    if numbers.shape != (n,):
        raise InputError(
            f"groups has shape {numbers.shape}; expected ({n},), a number a coordinate, "
            "or a list with the coordinates of each group"
        )
    if bool((np.abs(numbers) > n).any()) or bool((numbers != np.floor(numbers)).any()):
        raise InputError(_numbered(numbers))
    whole = numbers.astype(np.int64)
    used = np.unique(whole[whole >= 0])
    if bool((whole < -1).any()) or not np.array_equal(used, np.arange(len(used))):
        raise InputError(_numbered(numbers))
    return _some(whole, len(used))


def _numbered(numbers: npt.NDArray[Any]) -> str:
    return (
        f"groups holds numbers from {float(numbers.min()):g} to {float(numbers.max()):g}; expected "
        "groups numbered 0, 1, ..., G-1 with none left out, and -1 for a coordinate in no group"
    )


def _of_lists(groups: Any, n: int) -> tuple[npt.NDArray[np.int64], int]:
    """Groups from a list of coordinates for each."""
    group_of = np.full(n, -1, dtype=np.int64)
    for g, given in enumerate(groups):
        if np.size(to_numpy(given)) == 0:
            raise InputError(f"group {g} is empty; expected at least one coordinate: leave it out")
        members = to_numpy(to_array(f"group {g}", given))
        if members.ndim != 1 or bool((members != np.floor(members)).any()):
            raise InputError(f"group {g} is not a list of whole numbers; expected coordinates")
        if bool((members < 0).any()) or bool((members >= n).any()):
            bad = float(members[(members < 0) | (members >= n)][0])
            raise InputError(
                f"group {g} holds coordinate {bad:g}; expected numbers from 0 to {n - 1}"
            )
        where = members.astype(np.int64)
        taken = group_of[where] >= 0
        if bool(taken.any()) or len(np.unique(where)) < len(where):
            twice = where[taken][0] if taken.any() else np.flatnonzero(np.bincount(where) > 1)[0]
            raise InputError(
                f"coordinate {twice} is in two groups, or twice in group {g}; expected groups that "
                "do not overlap: repeat the column of A for each of its groups"
            )
        group_of[where] = g
    return _some(group_of, len(groups))


def _some(group_of: npt.NDArray[np.int64], count: int) -> tuple[npt.NDArray[np.int64], int]:
    if count == 0:
        raise InputError("groups has no group; expected at least one: use lasso or nnls without")
    return group_of, count
