"""Families of problems, and their names for the command line."""

from proxlearn.checks import check_choice
from proxlearn.errors import InputError
from proxlearn.names import FAMILIES
from proxlearn.training.families.family import Family
from proxlearn.training.families.gaussian import (
    GaussianBox,
    GaussianElasticNet,
    GaussianGroupLasso,
    GaussianLasso,
    GaussianLogistic,
    GaussianNnls,
    GaussianSimplex,
    GaussianSoftmax,
)
from proxlearn.training.families.image_families import (
    Deblur,
    Imaging,
    Inpaint,
    Invertible,
    Mri,
    Pictures,
    Tomography,
)
from proxlearn.training.families.median import WeightedMedian
from proxlearn.training.families.smooth_families import GaussianLeastSquares, GaussianRidgeLogistic
from proxlearn.training.families.wide import General, WideLasso, WideLogistic, WideSoftmax

NAMES: dict[str, type[Family]] = {
    name: globals()[name.title().replace("-", "")] for name in FAMILIES
}
"""Classes by the names of `proxlearn.names.FAMILIES`: "gaussian-lasso" is `GaussianLasso`."""


def name_of(kind: str) -> str:
    """The name that a class of families has on the command line; its own if it has none.

    >>> name_of("GaussianLasso")
    'gaussian-lasso'
    """
    return next((name for name, known in NAMES.items() if known.__name__ == kind), kind)


def get(family: str | Family) -> Family:
    """The family of that name with its default sizes, or the object itself."""
    if isinstance(family, Family):
        return family
    if not isinstance(family, str):
        raise InputError(
            f"family is of type {type(family).__name__}; expected a Family, or the name of one, "
            "such as 'gaussian-lasso': a rule is learned from many problems, not from one"
        )
    check_choice("family", family, NAMES)
    return NAMES[family]()


__all__ = [
    "NAMES",
    "Deblur",
    "Family",
    "GaussianBox",
    "GaussianElasticNet",
    "GaussianGroupLasso",
    "GaussianLasso",
    "GaussianLeastSquares",
    "GaussianLogistic",
    "GaussianNnls",
    "GaussianRidgeLogistic",
    "GaussianSimplex",
    "GaussianSoftmax",
    "General",
    "Imaging",
    "Inpaint",
    "Invertible",
    "Mri",
    "Pictures",
    "Tomography",
    "WeightedMedian",
    "WideLasso",
    "WideLogistic",
    "WideSoftmax",
    "get",
    "name_of",
]
