"""The losses that the core knows, by name. Each has a file beside this one.

A new loss is a file NAME.pxi with a subclass of `Loss`, an ``include`` in kernel.pyx, and a line in
`LOSSES` below.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from proxlearn.core import kernel

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class LossKind:
    """What Python needs to know of a loss."""

    compiled: Any
    """Its class in the compiled core, called with b, the weights of the samples and options."""
    mean: bool = True
    """True where the weights of the samples are 1/m by default, otherwise they are 1."""
    quadratic: bool = False
    """True for least squares, whose intercept is found by centring."""
    scales: bool = False
    """True where phi(t z; t b) = t^2 phi(z; b), so that b can be brought to size 1."""
    scaled_options: tuple[str, ...] = ()
    """The options that have to be multiplied by t, too."""
    copies: str | None = None
    """The option that says how often x has the columns of A, as softmax has them for each class."""
    curvature: float | None = None
    """A bound on phi'', the second derivative; None where there is none."""
    prepare: Callable[[Array], Array] = lambda b: b
    """The b of the compiled loss from the b that users give."""


LOSSES = {
    "squares": LossKind(kernel.Squares, mean=False, quadratic=True, scales=True, curvature=1.0),
    "logistic": LossKind(kernel.Logistic, curvature=0.25, prepare=lambda b: 2.0 * b - 1.0),
    "huber": LossKind(
        kernel.Huber, mean=False, scales=True, scaled_options=("delta",), curvature=1.0
    ),
    "poisson": LossKind(kernel.Poisson),
    "softmax": LossKind(kernel.Softmax, copies="classes"),
}
"""The losses by the name that `proxlearn.core.glm.describe` takes."""
