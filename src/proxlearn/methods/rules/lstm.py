"""Stacks of long short-term memory cells for coordinates: their weights and initial states."""

import hashlib
import math
from functools import partial

import torch
from torch import Tensor, nn

from proxlearn.methods.rules.coefficient_network import Hidden, Layer
from proxlearn.methods.rules.learned_rule import uniform
from proxlearn.problems.problem import Problem

STARTS = ("zero", "gaussian", "fresh")
"""Initial hidden states; `Lstm.start` says what each is."""


class Lstm(nn.ParameterList):
    """A stack of cells: features (B, inputs, n) to (B, H, n), the same for all coordinates."""

    def __init__(
        self, inputs: int, hidden: int, layers: int, generator: torch.Generator | None
    ) -> None:
        super().__init__()
        self.hidden, self.layers = hidden, layers
        draw = partial(uniform, generator, 1 / math.sqrt(hidden))
        for _ in range(layers):
            self.extend([draw(4 * hidden, inputs), draw(4 * hidden, hidden), draw(4 * hidden, 1)])
            inputs = hidden

    def zero(self, x0: Tensor) -> Hidden:
        """A state of zeros for every coordinate of x0 (B, n)."""
        shape = (len(x0), self.hidden, x0.shape[1])
        zero = torch.zeros(shape, dtype=self[0].dtype, device=x0.device)
        return Hidden((zero,) * self.layers, (zero,) * self.layers)

    def start(
        self, kind: str, problem: Problem, x0: Tensor, seed: int, scale: float = 1.0
    ) -> Hidden:
        """The state before the first iteration of a run.

        'zero' is a state of zeros. 'gaussian' is one standard normal draw for every coordinate,
        shared by all instances. 'fresh' is a draw of its own for every instance, as in the paper's
        code, which draws a new state for every run. Here the draw follows from `seed` and from the
        instance's own data, so that the same problem gets the same state alone and in a batch.
        """
        zero = self.zero(x0)
        if kind == "zero":
            return zero
        shared = kind == "gaussian"
        seeds = [seed] if shared else instance_seeds(problem, seed)
        shape = (2, self.layers, self.hidden, x0.shape[1])
        dtype = self[0].dtype if shared else torch.float32
        generators = [torch.Generator().manual_seed(s) for s in seeds]
        draws = torch.stack([torch.randn(shape, dtype=dtype, generator=g) for g in generators], 2)
        draws = (scale * draws).to(dtype=self[0].dtype, device=x0.device)
        h, c = draws.expand(-1, -1, len(x0), -1, -1)
        return Hidden(tuple(h), tuple(c))

    def layers_of(self) -> list[Layer]:
        """The cells as layers of a network."""
        return [Layer("lstm", tuple(self[3 * k + i] for i in range(3))) for k in range(self.layers)]


def instance_seeds(problem: Problem, seed: int) -> list[int]:
    """A seed for every instance, from `seed` and the vectors of its smooth term, such as b.

    Matrices are left out: they are large, and instances that share b need no different seeds. The
    vectors are rounded to float32, so that the precision of the problem does not matter.
    """
    vectors = [
        v.expand(problem.batch, -1).to(torch.float32).cpu().contiguous().numpy()
        for v in problem.f.numbers()
        if v.ndim == 2 and v.layout == torch.strided and len(v) in (1, problem.batch)
    ]
    found = []
    for i in range(problem.batch):
        text = hashlib.blake2b(str(seed).encode(), digest_size=7)
        for v in vectors:
            text.update(v[i].tobytes())
        found.append(int.from_bytes(text.digest(), "little"))
    return found
