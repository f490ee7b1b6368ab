"""Smooth terms f."""

from typing import Any

from proxlearn.problems.smooth.autograd import Autograd
from proxlearn.problems.smooth.huber_loss import Huber
from proxlearn.problems.smooth.least_squares import LeastSquares
from proxlearn.problems.smooth.logistic_loss import Logistic
from proxlearn.problems.smooth.no_smooth import NoSmooth
from proxlearn.problems.smooth.poisson_loss import Poisson
from proxlearn.problems.smooth.quadratic import Quadratic
from proxlearn.problems.smooth.smooth_term import GLM, Evaluation, Smooth
from proxlearn.problems.smooth.softmax_loss import Softmax

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
