"""Smooth terms f."""

from typing import Any

from proxlearn.smooth.autograd import Autograd
from proxlearn.smooth.base import GLM, Evaluation, Smooth
from proxlearn.smooth.huber import Huber
from proxlearn.smooth.least_squares import LeastSquares
from proxlearn.smooth.logistic import Logistic
from proxlearn.smooth.poisson import Poisson
from proxlearn.smooth.quadratic import Quadratic
from proxlearn.smooth.softmax import Softmax
from proxlearn.smooth.zero import NoSmooth

BY_LOSS: dict[str, Any] = {
    "squares": LeastSquares,
    "logistic": Logistic,
    "huber": Huber,
    "poisson": Poisson,
    "softmax": Softmax.of_labels,
}
"""The smooth terms of the losses that the compiled core knows, by their names there."""

__all__ = [
    "BY_LOSS",
    "GLM",
    "Autograd",
    "Evaluation",
    "Huber",
    "LeastSquares",
    "Logistic",
    "NoSmooth",
    "Poisson",
    "Quadratic",
    "Smooth",
    "Softmax",
]
