"""A rule for problems whose coordinates come in bands, such as the scales of wavelets."""

import math
from dataclasses import dataclass
from functools import cache, partial
from itertools import groupby
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from proxlearn.checks import check_size
from proxlearn.methods.rules.compact import level_or_gradient
from proxlearn.methods.rules.learned_rule import LearnedRule, uniform
from proxlearn.methods.scheme import Coefficients, View
from proxlearn.problems.problem import Problem

COORDINATE, BAND = 4, 9
"""Numbers of inputs of the network of a coordinate, and of the network of a band."""
LEAST_LOG_P = -2.0
"""Smallest log(p L), so that a coordinate never stops moving."""
LEAST_CURVATURE = 1e-4
"""Smallest curvature of a band relative to L; smaller ones are raised to it."""
STEEPER = 4.0
"""Ratio of the typical curvatures of the coarsest averages and of any other band, see
`bands_differ`."""
TOGETHER = 2**14
"""Coordinates that are processed together, to stay in the cache: at 256x256 the rule takes
3.4 ms of processor time beside the products with A, and 3.9 ms with all at once (2026-11-18)."""
HELD_FROM = 6
"""The first iterations differ most, and each has coefficients of its own."""
LAST_ITERATION = 400
"""The iteration number that the rule sees does not grow beyond this."""


@dataclass(frozen=True)
class BandedSettings:
    """The settings that, with the weights, determine the rule."""

    hidden: int = 8
    """Hidden units of the network of the coordinates."""
    band_hidden: int = 24
    """Hidden units of the network of the bands."""
    largest_log_p: float = 5.0
    """Logarithm of the largest p L."""
    hold: int = 4
    """Iterations for which the same p and a are used, after the first `HELD_FROM`.

    With 1, 2, 3 and 4 the median number of iterations to a gap of 1e-3 on 8 validation pictures of
    64x64 was 92, 89, 91, 92 (deblurring), 186, 186, 188, 189 (MRI), 303, 310, 290, 306 (inpainting)
    and 34, 36, 32, 35 (tomography), with the same weights (2026-11-18).
    """

    def __post_init__(self) -> None:
        check_size("hidden", self.hidden, 256)
        check_size("band_hidden", self.band_hidden, 256)
        check_size("hold", self.hold, 100)


class Memory(NamedTuple):
    """What the rule keeps of a run."""

    step: Tensor
    """1/L, (B, 1)."""
    level: Tensor
    """The penalty's level, (B, n) or (B, 1)."""
    mean: Tensor
    """The mean of the curvatures of each band relative to L, (B, G), see `band_curvatures`."""
    typical: Tensor
    """The mean of the curvatures weighted by themselves, (B, G)."""
    y: Tensor
    """The last y, (B, n)."""
    grad: Tensor
    """grad f there, (B, n)."""
    p: Tensor
    """The last p, (B, n)."""
    a: Tensor
    """The last a, (B, n)."""


class BandedRule(LearnedRule):
    """p = exp(u)/L and a = sigmoid(v); u, v come from small networks for bands and coordinates.

    The operator says which coordinates form a band (`Operator.groups`). With s = 1/L, lam the
    penalty's level and c, d two curvatures of the band, estimated by one product with each of A and
    A^T from random signs (`band_curvatures`), the network of a band sees in logs

        c,   d,   the iteration k,   the share of non-zeros,   <dy, dg>/|dy|^2,   <dy, dg>/|dg|^2

    along the last step, both over the band and over all coordinates, relative to L. It gives a bias
    to the network of the coordinates, which sees

        g/lam,   y d/(lam s),   (y - x) d/(lam s),   (g - g_last)/lam,      g = grad f(y),

    compressed by sign(t) log(1 + |t|), and has one hidden layer. None of the inputs has a unit.
    Nearly all weights belong to the bands, of which there are a dozen, so that an iteration costs
    little more than the products with A, and p and a serve for `hold` iterations. Training starts
    from p = d^(-0.3)/L.
    """

    Settings = BandedSettings
    window: ClassVar[int] = 40
    rate: ClassVar[float] = 0.9
    """The certified gap has to fall to this part in as many iterations, or FISTA takes over.

    Behind operators every first-order method is slow, and the bound stands still for 10 or 20
    iterations of a rule that converges. With a window of 10 FISTA took over twice on two of six
    validation pictures behind projections, and 103 and 132 iterations became 324 and 378.
    """

    def __init__(self, settings: BandedSettings, generator: torch.Generator | None = None):
        super().__init__(settings)
        H, K = settings.hidden, settings.band_hidden
        first = partial(uniform, generator, 1 / math.sqrt(BAND))
        second = partial(uniform, generator, 1 / math.sqrt(K))
        self.band_weight, self.band_bias = first(K, BAND), first(K)
        self.mixing_weight, self.mixing_bias = second(K, K), second(K)
        self.hidden_weight, self.hidden_bias = second(H, K), second(H)
        self.coordinate_weight = uniform(generator, 1 / math.sqrt(COORDINATE), H, COORDINATE)
        self.head_weight = nn.Parameter(torch.zeros(2, H))
        self.band_head_weight = nn.Parameter(torch.zeros(2, K))
        self.band_head_bias = nn.Parameter(torch.tensor([0.0, 1.5]))
        self.slope = nn.Parameter(torch.tensor(0.3))

    def init(self, problem: Problem, x0: Tensor) -> Memory:
        """The memory at the start; level 0 stands for none until the first iteration."""
        level = problem.r.level()
        level = torch.zeros_like(x0[:, :1]) if level is None else level.expand(len(x0), -1)
        curvatures = band_curvatures(problem)
        zero = torch.zeros_like(x0)
        return Memory(problem.safe_step(), level, *curvatures, x0, zero, zero, zero)

    def forward(self, view: View, last: Memory) -> tuple[Coefficients, Memory]:
        """One small network for the bands, a smaller one for the coordinates."""
        g, x, y, s = view.at.grad, view.x, view.y, last.step
        if view.k >= HELD_FROM and view.k % self.settings.hold:
            return Coefficients(p=last.p, a=last.a), last._replace(y=y, grad=g)
        lam = level_or_gradient(last.level, g) if view.k == 0 else last.level
        sizes = groups(view.problem)
        dg = g - last.grad if view.k else torch.zeros_like(g)
        with torch.no_grad():  # constants in training: their derivatives divide by zero
            bands = _band_inputs(view, last, dg, sizes).to(self.head_weight.dtype)
        bias, direct = self._bands(bands)
        scale = last.typical / s
        if torch.is_grad_enabled():  # few large operations suit backpropagation
            every = (spread(t, sizes) for t in (scale, bias, direct))
            p, a = self._coordinates(g, y, x, dg, lam, *every)
        else:  # some bands at a time, so that what is computed for them stays in the cache
            p, a = torch.empty_like(x), torch.empty_like(x)
            for some in runs(sizes):
                rows = (some.rows(t) for t in (g, y, x, dg, lam))
                own = (some.values(t) for t in (scale, bias, direct))
                p_rows, a_rows = self._coordinates(*rows, *own)
                p[:, some.places] = p_rows.reshape(len(x), -1)
                a[:, some.places] = a_rows.reshape(len(x), -1)
        p = view.problem.r.tie(s * p)
        return Coefficients(p=p, a=a), last._replace(level=lam, y=y, grad=g, p=p, a=a)

    def _bands(self, bands: Tensor) -> tuple[Tensor, Tensor]:
        """From inputs (B, G, BAND) the bias of the hidden units (B, H, G), and u, v (B, 2, G)."""
        mixed = torch.relu(bands @ self.band_weight.T + self.band_bias)
        mixed = torch.relu(mixed @ self.mixing_weight.T + self.mixing_bias)
        bias = mixed @ self.hidden_weight.T + self.hidden_bias
        direct = mixed @ self.band_head_weight.T + self.band_head_bias
        step = -bands[..., :1] * self.slope
        direct = direct + torch.cat([step, torch.zeros_like(step)], -1)
        return bias.mT, direct.mT

    def _coordinates(
        self, g: Tensor, y: Tensor, x: Tensor, dg: Tensor, lam: Tensor, scale: Tensor,
        bias: Tensor, direct: Tensor,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """p L and a (R, n) of rows g, y, x, g - g_last (R, n), each row with biases of its own."""
        over, unit = 1 / lam, scale / lam
        raw = torch.stack([g * over, y * unit, (y - x) * unit, dg * over], 1).to(bias.dtype)
        inputs = torch.copysign(raw.abs().log1p(), raw)
        W, head = (w.expand(len(raw), -1, -1) for w in (self.coordinate_weight, self.head_weight))
        hidden = torch.baddbmm(bias, W, inputs).relu_()
        u, v = torch.baddbmm(direct, head, hidden).unbind(1)
        p = u.clamp(LEAST_LOG_P, self.settings.largest_log_p).exp()
        return p.to(g.dtype), torch.sigmoid(v).to(g.dtype)


@dataclass(frozen=True)
class Run:
    """Some bands of one size that follow each other; each becomes a row of its own."""

    bands: slice
    places: slice
    """The places of their coordinates."""

    @property
    def count(self) -> int:
        """The number of bands."""
        return int(self.bands.stop - self.bands.start)

    def rows(self, t: Tensor) -> Tensor:
        """t (B, n) as (B * bands, size); where it is (B, 1), a value for each row."""
        if t.shape[1] == 1:
            return t.expand(-1, self.count).reshape(-1, 1)
        return t[:, self.places].reshape(len(t) * self.count, -1)

    def values(self, t: Tensor) -> Tensor:
        """One value for each band, (B, ..., G), as (B * bands, ..., 1)."""
        return t[..., self.bands].movedim(-1, 1).flatten(0, 1)[..., None]


@cache
def runs(sizes: tuple[int, ...]) -> list[Run]:
    """Consecutive bands of one size, at most `TOGETHER` coordinates unless one band has more."""
    found, first, place = [], 0, 0
    for size, same in groupby(sizes):
        left = len(list(same))
        most = max(1, TOGETHER // size)
        while left:
            count = min(left, most)
            found.append(Run(slice(first, first + count), slice(place, place + count * size)))
            first, place, left = first + count, place + count * size, left - count
    return found


def groups(problem: Problem) -> tuple[int, ...]:
    """Sizes of the bands of a problem's coordinates; one where nothing is known of them."""
    f = problem.f.as_glm()
    plain = f is not None and f.A.shape[1] == problem.n  # coordinates are A's columns
    return f.A.groups() if f is not None and plain else (problem.n,)


@torch.no_grad()
def band_curvatures(problem: Problem) -> tuple[Tensor, Tensor]:
    """Two means of the curvatures of each band relative to L, (B, G) each, from signs z.

    With H = A^T A/|A|^2 and random signs the sum of z_i (H z)_i over a band estimates the sum of
    its diagonal (Hutchinson), and that of (H z)_i^2 the sum of the squares of its rows. The first
    over the size of the band is the mean curvature; the second over the first is a mean in which
    curvatures count as much as they are large. For a projection, whose curvatures are 0 and 1, it
    is 1. Both are kept between `LEAST_CURVATURE` and 1.

    In a band of coarsest averages all signs are +1. There one direction, the brightness of the
    picture, can be steeper than all others together: behind rays 0.99 of L where the mean is 0.3,
    0.16 and 0.06 at 64x64, 128x128 and 256x256. Random signs miss it in large bands, and the rule's
    steps were then so long that it diverged.
    """
    f, B = problem.f.as_glm(), problem.batch
    sizes = groups(problem)
    if f is None or f.A.shape[1] != problem.n:
        ones = problem.f.like.new_ones(B, len(sizes))
        return ones, ones
    generator = torch.Generator().manual_seed(0)
    signs = 2.0 * torch.randint(0, 2, (1, problem.n), generator=generator) - 1
    for first, count in coarsest(sizes):
        signs[:, first : first + count] = 1
    z = signs.to(f.like).expand(f.A.batch, -1)
    scale = f.A.norm().square()[:, None]
    Hz = f.A.adjoint(f.A.forward(z)) / torch.where(scale > 0, scale, 1.0)
    mean, square = band_means(torch.stack([z * Hz, Hz.square()], 1), sizes).unbind(1)
    typical = square / mean.clamp(min=LEAST_CURVATURE)
    both = (t.clamp(LEAST_CURVATURE, 1).expand(B, -1) for t in (mean, typical))
    mean, typical = both
    return mean, typical


def coarsest(sizes: tuple[int, ...]) -> list[tuple[int, int]]:
    """Place and size of the coarsest averages: a smallest band that begins a basis' coefficients.

    There is one for each basis that the coefficients belong to, and none without bands.
    """
    found, place, before = [], 0, math.inf
    for size in sizes:
        if len(sizes) > 1 and size == min(sizes) and size < before:
            found.append((place, size))
        place, before = place + size, size
    return found


def bands_differ(problem: Problem) -> bool:
    """True where the coarsest averages are much steeper than every other band, as behind rays.

    There the rule takes 0.15 of the iterations of FISTA with restart to a gap of 1e-3 at 128x128
    (median of three, benchmarks/imaging.py, 2026-11-19), and the ratio is 5 to 34 from 48x48 on.
    Projections have curvatures 0 and 1 alone. Behind several coils, where bands differ by a factor
    of 2, and blurs with an unknown border, where the finest bands alone are flat, the rule took 0.8
    to 1.6 times the iterations of FISTA on six validation pictures of 64x64.
    """
    sizes = groups(problem)
    first = {place for place, _ in coarsest(sizes)}
    places = [sum(sizes[:i]) for i in range(len(sizes))]
    coarse = torch.tensor([place in first for place in places], device=problem.device)
    if not first or bool(coarse.all()):
        return False
    typical = band_curvatures(problem)[1]
    least, most = typical[:, coarse].amin(-1), typical[:, ~coarse].amax(-1)
    return bool((least > STEEPER * most).all())


def band_means(t: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Means over each band of the last axis: (..., n) to (..., G)."""
    return torch.stack([part.mean(-1) for part in t.split(sizes, -1)], -1)


def spread(t: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """The value of each band, (..., G), repeated for all coordinates of the band, (..., n)."""
    if len(sizes) == 1:
        return t
    parts = [v.expand(*v.shape[:-1], n) for v, n in zip(t.split(1, -1), sizes, strict=True)]
    return torch.cat(parts, -1)


def _band_inputs(view: View, last: Memory, dg: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Curvature, iteration, share of non-zeros and curvatures along the last step, (B, G, BAND)."""
    sums = torch.cat([_run_sums(view, last, dg, some) for some in runs(sizes)], -1)
    nonzero = sums[:, 0] / torch.tensor(sizes, dtype=sums.dtype, device=sums.device)
    if view.k > 0:
        local = _curvatures(sums[:, 1:], last.step)
        whole = _curvatures(sums[:, 1:].sum(-1, keepdim=True), last.step).expand_as(local)
    else:
        local = whole = torch.zeros_like(nonzero)[..., None].expand(-1, -1, 2)
    k = torch.full_like(nonzero, min(view.k, LAST_ITERATION))
    own = [last.typical.log(), last.mean.log(), k.log1p(), 1 / (1 + k), (nonzero + 1e-3).log()]
    return torch.cat([torch.stack(own, -1), local, whole], -1)


def _run_sums(view: View, last: Memory, dg: Tensor, some: Run) -> Tensor:
    """Non-zeros, <dy, dg>, |dy|^2 and |dg|^2 of each band of a run, (B, 4, bands)."""
    x, dg = some.rows(view.x), some.rows(dg)
    dy = some.rows(view.y) - some.rows(last.y)
    sums = [(x != 0).sum(-1).to(x.dtype), (dy * dg).sum(-1)]
    sums += [dy.square().sum(-1), dg.square().sum(-1)]
    return torch.stack(sums, -1).reshape(view.problem.batch, some.count, 4).mT


def _curvatures(sums: Tensor, s: Tensor) -> Tensor:
    """Logs of <dy, dg>/|dy|^2 and <dy, dg>/|dg|^2 relative to L, (B, G, 2)."""
    tiny = torch.finfo(sums.dtype).tiny
    dot, dy, dg = sums.unbind(1)
    dot = dot.clamp(min=0)
    along = (s * dot / dy.clamp(min=tiny) + LEAST_CURVATURE).log()
    across = (dot / (s * dg).clamp(min=tiny) + LEAST_CURVATURE).log()
    return torch.stack([along.clamp(max=1), across.clamp(max=10)], -1)
