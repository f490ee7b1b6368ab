"""Non-smooth problems, f = 0: weighted medians."""

from dataclasses import dataclass

import torch
from torch import Tensor

from proxlearn.problems.penalties import AbsoluteDeviation
from proxlearn.problems.problem import Problem
from proxlearn.problems.smooth import NoSmooth
from proxlearn.training.families.family import Family, number, randn, whole


@dataclass(frozen=True)
class WeightedMedian(Family):
    """A weighted median of `k` points for each of n coordinates: normal points, uniform weights."""

    n: int = whole(50)
    k: int = whole(5)
    scale: float = number(10.0)

    def draw(self, generator: torch.Generator) -> tuple[Tensor, ...]:
        centres = self.scale * randn(generator, self.n, self.k)
        weights = torch.rand(self.n, self.k, generator=generator, device=generator.device)
        return centres, 0.1 + 0.9 * weights

    def build(self, *data: Tensor) -> Problem:
        centres, weights = data
        return Problem(
            NoSmooth(self.n, centres.new_zeros(len(centres))), AbsoluteDeviation(centres, weights)
        )
