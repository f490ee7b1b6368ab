"""Smooth terms f."""

from proxlearn.smooth.autograd import Autograd
from proxlearn.smooth.base import GLM, Evaluation, Smooth
from proxlearn.smooth.least_squares import LeastSquares
from proxlearn.smooth.logistic import Logistic
from proxlearn.smooth.quadratic import Quadratic
from proxlearn.smooth.softmax import Softmax
from proxlearn.smooth.zero import NoSmooth

__all__ = [
    "GLM",
    "Autograd",
    "Evaluation",
    "LeastSquares",
    "Logistic",
    "NoSmooth",
    "Quadratic",
    "Smooth",
    "Softmax",
]
