"""A rule for f with a proximal operator in closed form: Douglas-Rachford with learned steps.

Behind masks, Fourier samples and blurs the minimiser v of f(v) + |v - w|^2 / (2 gamma) costs no
more than a gradient (`Operator.implicit_residual`). Douglas and Rachford's iteration is then

    v  = prox_{gamma f}(x - gamma d),      x+ = prox_{gamma r}(z),  z = x + rho (v - x) + gamma d,
    d+ = (z - x+) / gamma,

with d in the subdifferential of r at x. It converges for every gamma > 0 and every rho in (0, 2),
also where gamma changes, if the changes of its logarithm have a finite sum (He, Yang and Wang,
2000, for the alternating direction method, which this is). How fast depends on gamma, and the best
one on the data: that is learned. f is evaluated at v, whose residual is a dual point.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from proxlearn.checks import check_size
from proxlearn.methods.rules.banded import band_curvatures, groups
from proxlearn.methods.rules.learned_rule import Learnable, uniform
from proxlearn.methods.scheme import State, Stepwise
from proxlearn.problems.problem import Problem
from proxlearn.problems.smooth import Evaluation

FIXED, MOVING = 5, 10
"""Numbers of inputs that are known before the first iteration, and of inputs that change."""
START, SLOPE = -3.0, -0.9
"""Before the training gamma L = exp(START) (lam / |A^T b|_inf)^SLOPE. Of six validation pictures of
64x64 behind blurs, Fourier samples and masks, this is within a factor of 3 of the best of 1, 10,
30, 100, 300 and 1000 (2026-11-18). On four other ones behind blurs the best constant gamma and rho
of each take 0.59 of its iterations to a gap of 1e-3, which is what training can gain."""
RELAXED = 1.7
"""rho before the training. Of 1, 1.5, 1.8 and 1.93 on these four, 1.5 and 1.8 are best."""
LARGEST_RHO = 1.95
"""Bound on rho, a little below 2, up to which the iteration converges."""
LEAST_LOG, LARGEST_LOG = -3.0, 13.0
"""Bounds on log(gamma L)."""
CHANGE, SLOWER = 4.0, 10
"""At iteration k, log gamma changes by at most `CHANGE` / (1 + k/`SLOWER`)^2, a finite sum."""
LAST_ITERATION = 400
"""The iteration number that the rule sees does not grow beyond this."""


@dataclass(frozen=True)
class SplittingSettings:
    """The settings that, with the weights, determine the rule."""

    hidden: int = 16
    """Hidden units."""
    hold: int = 4
    """Iterations for which the same gamma and rho are used."""

    def __post_init__(self) -> None:
        check_size("hidden", self.hidden, 256)
        check_size("hold", self.hold, 100)


class Memory(NamedTuple):
    """What the rule keeps of a run."""

    step: Tensor
    """1/L, (B, 1)."""
    level: Tensor
    """The mean of the penalty's level, (B, 1)."""
    known: Tensor
    """The inputs that do not change, (B, FIXED)."""
    d: Tensor
    """A subgradient of r at x, (B, n)."""
    x: Tensor
    """The last x, (B, n)."""
    v: Tensor
    """The last v, (B, n)."""
    grad: Tensor
    """grad f at v, (B, n)."""
    log_gamma: Tensor
    """log(gamma L), (B, 1)."""
    rho: Tensor
    """(B, 1)"""


class SplittingRule(Learnable):
    """A network with one hidden layer chooses log(gamma L) and rho of every instance.

    It sees, in logs, lam/|A^T b|_inf, how peaked A^T b is, two mean curvatures of A^T A, the share
    of b that A can explain, |A^T b|^2 / (|A|^2 |b|^2), then the iteration, the share of non-zeros,
    gamma itself, gamma lam relative to the size of x, and along the last step

        |v - x| / (gamma |dd|),   |dx| / (gamma |dd|),   |dv| / (gamma |dg|),      g = grad f(v),

    and the cosines of dx with dd and of dv with dg. Residual balancing keeps the first ratio at 1,
    and spectral steps (Xu, Figueiredo and Goldstein, 2017) take the others as curvatures. None of
    the inputs has a unit. Any weights make a method that converges, see above.
    """

    Settings = SplittingSettings
    window: ClassVar[int] = 40
    rate: ClassVar[float] = 0.9
    """The certified gap has to fall to this part in as many iterations, or FISTA takes over.

    The bound sometimes stands still for 10 or 20 iterations of a rule that converges.
    """

    def __init__(self, settings: SplittingSettings, generator: torch.Generator | None = None):
        super().__init__(settings)
        inputs = FIXED + MOVING
        first = partial(uniform, generator, 1 / math.sqrt(inputs))
        H = settings.hidden
        self.hidden_weight, self.hidden_bias = first(H, inputs), first(H)
        self.head_weight = nn.Parameter(torch.zeros(2, H))
        direct = torch.zeros(2, inputs)
        direct[0, 0] = SLOPE
        share = (RELAXED - 1) / (LARGEST_RHO - 1)
        self.direct_weight = nn.Parameter(direct)
        self.head_bias = nn.Parameter(torch.tensor([START, math.log(share / (1 - share))]))

    def optimizer(self) -> "Splitting":
        """Douglas-Rachford with this rule."""
        return Splitting(self)

    @torch.no_grad()
    def init(self, problem: Problem, x0: Tensor) -> Memory:
        """Takes two gradients: one at 0, and one for the curvatures."""
        g = problem.f.grad(torch.zeros_like(x0))
        level = problem.r.level()
        size = g.abs().amax(-1, keepdim=True).clamp(min=torch.finfo(g.dtype).tiny)
        mean = size if level is None else level.mean(-1, keepdim=True).expand_as(size)
        peaked = (g / size).square().mean(-1, keepdim=True)
        sizes = g.new_tensor(groups(problem)) / problem.n
        curved = [(t * sizes).sum(-1, keepdim=True) for t in band_curvatures(problem)]
        step = problem.safe_step()
        seen = step * g.square().sum(-1, keepdim=True)
        at_zero = problem.f.evaluate(torch.zeros_like(x0)).value[:, None]
        share = seen / (2 * at_zero).clamp(min=torch.finfo(g.dtype).tiny)
        known = torch.cat([mean / size, peaked, *curved, share], -1).clamp(min=1e-12).log()
        zero = torch.zeros_like(x0)
        return self.first(Memory(step, mean, known, zero, zero, zero, zero, step, step))

    def first(self, m: Memory) -> Memory:
        """The memory with gamma and rho of the first iteration."""
        return self._with(m, m.known.new_zeros(len(m.known), MOVING), math.inf)

    def forward(self, last: Memory, d: Tensor, k: int, x: Tensor, at: Evaluation) -> Memory:
        """gamma and rho for the iteration k >= 1 from x, with the subgradient d and the last v."""
        new = last._replace(d=d, x=x, v=at.point, grad=at.grad)
        if k % self.settings.hold:
            return new
        with torch.no_grad():  # constants in training: their derivatives divide by zero
            moving = _moving(last, new, k)
        return self._with(new, moving, CHANGE / (1 + k / SLOWER) ** 2)

    def _with(self, m: Memory, moving: Tensor, most: float) -> Memory:
        """The memory with new gamma and rho, where log gamma changes by at most `most`."""
        inputs = torch.cat([m.known, moving], -1).to(self.head_weight.dtype)
        hidden = torch.tanh(inputs @ self.hidden_weight.T + self.hidden_bias)
        out = hidden @ self.head_weight.T + inputs @ self.direct_weight.T + self.head_bias
        wanted, relaxed = out.to(m.step.dtype).split(1, -1)
        wanted = wanted.clamp(LEAST_LOG, LARGEST_LOG)
        if most < math.inf:
            wanted = m.log_gamma + (wanted - m.log_gamma).clamp(-most, most)
        return m._replace(log_gamma=wanted, rho=1 + (LARGEST_RHO - 1) * torch.sigmoid(relaxed))


@dataclass(frozen=True)
class Splitting(Stepwise):
    """Douglas-Rachford as an optimizer; a proximal gradient step where f has no closed form."""

    rule: SplittingRule
    gradients = 1

    def init(self, problem: Problem, x0: Tensor) -> State:
        """d = 0."""
        return State(x0, 0, None, x0, self.rule.init(problem, x0))

    def evaluate(self, problem: Problem, state: State) -> Evaluation:
        """f at v = prox_{gamma f}(x - gamma d), or at x."""
        m = self._memory(state)
        gamma = m.step * m.log_gamma.exp()
        at = problem.f.evaluate_proximal(state.x - gamma * m.d, gamma)
        return problem.f.evaluate(state.x) if at is None else at

    def _memory(self, state: State) -> Memory:
        """The memory; in a training the first gamma is computed again: `init` keeps no graph."""
        m: Memory = state.memory
        return self.rule.first(m) if state.k == 0 and torch.is_grad_enabled() else m

    def advance(self, problem: Problem, state: State, at: Evaluation) -> State:
        """One iteration, with f evaluated by `evaluate` already."""
        m, x = self._memory(state), state.x
        apart = at.point - x
        if problem.f.has_proximal:
            t = m.step * m.log_gamma.exp()
            z = x + m.rho * apart + t * m.d
        else:  # v is x, and steps below 2/L converge
            t = m.rho * m.step
            z = x - t * at.grad
        x_next = problem.r.prox(z, t)
        memory = self.rule(m, (z - x_next) / t, state.k + 1, x_next, at)
        return State(x_next, state.k + 1, at, x_next, memory)


def _moving(last: Memory, new: Memory, k: int) -> Tensor:
    """The inputs that change, (B, MOVING)."""
    x, gamma = new.x, last.step * last.log_gamma.exp()
    count = torch.full_like(gamma, min(k, LAST_ITERATION))
    nonzero = (x != 0).to(x.dtype).mean(-1, keepdim=True)
    dx, dd, dv, dg = x - last.x, new.d - last.d, new.v - last.v, new.grad - last.grad
    shrunk = gamma * last.level * math.sqrt(x.shape[1])
    ratios = [
        _log_ratio(_length(new.v - last.x), gamma * _length(dd)),
        _log_ratio(shrunk, _length(x)),
        _log_ratio(_length(dx), gamma * _length(dd)),
        _log_ratio(_length(dv), gamma * _length(dg)),
    ]
    angles = [_cosine(dx, dd), _cosine(dv, dg)]
    own = [count.log1p(), 1 / (1 + count), (nonzero + 1e-3).log(), last.log_gamma]
    return torch.cat([*own, *ratios, *angles], -1)


def _length(t: Tensor) -> Tensor:
    return t.square().sum(-1, keepdim=True).sqrt()


def _cosine(a: Tensor, b: Tensor) -> Tensor:
    """The cosine of the angle between a and b; 0 where one of them is 0."""
    both = _length(a) * _length(b)
    return (a * b).sum(-1, keepdim=True) / torch.where(both > 0, both, 1.0)


def _log_ratio(a: Tensor, b: Tensor) -> Tensor:
    """log(a/b) between -6 and 6; 0 where both are 0."""
    tiny = torch.finfo(a.dtype).tiny
    return ((a + tiny) / (b + tiny)).log().clamp(-6, 6)
