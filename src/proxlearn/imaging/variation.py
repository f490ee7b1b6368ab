"""Total variation: pictures with few edges, by a primal-dual method with a gap of its own.

    F(x) = 1/2 |A x - b|^2 + lam sum_i |(D x)_i|,        D x: differences of neighbouring pixels

The length |.| of the differences at a pixel is Euclidean (isotropic) or the sum of their sizes
(anisotropic). Its proximal operator has no closed form; the method of Chambolle and Pock (2011)
keeps a dual picture p instead, |p_i| <= lam, and Condat's (2013) where f has no closed form either.
It is a loop of its own, since p belongs to the state and to the certificate.

The gap. For any u and q with A^T u + D^T q = 0 and |q_i| <= m, and s <= lam / m,

    F* >= -s^2/2 |u|^2 - s <u, b>.

From the iteration's u and p the equation is made to hold: u is moved along A 1 until A^T u has mean
0, and q = p - D (D^T D)^+ (A^T u + D^T p), which the cosine transform computes. Where u and p
are nearly optimal the change is small, and m is hardly above lam. No inner accuracy is needed.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from proxlearn.checks import check_limits
from proxlearn.errors import InputError
from proxlearn.imaging.cosine import cosine_matrix
from proxlearn.imaging.products import as_operator
from proxlearn.imaging.recovery import grid_of, targets_of
from proxlearn.problems.arrays import is_tensor, to_numpy
from proxlearn.problems.operators import Operator
from proxlearn.problems.tensors import as_tensor
from proxlearn.problems.tolerance import allowed_gap
from proxlearn.problems.transform import Grid, size
from proxlearn.problems.vectors import to_positive
from proxlearn.solving.solution import Solution, Status

LOOK = 10
"""Iterations between looks at the gap, which costs as much as two iterations."""
POWER = 4
"""The weight of the k-th dual point in the mean of them grows with k^(POWER - 1)."""
BALANCE, CHANGE, FADING = 2.0, 0.5, 0.95
"""Where the relative residuals of x and p differ by more than `BALANCE`, the step of one grows and
that of the other falls by 1 - `CHANGE`, which is then multiplied by `FADING` (Goldstein, Li, Yuan,
Esser and Baraniuk, 2013): the changes have a finite sum, and the method converges."""
SAFE = 0.99
"""Part of the longest steps with which the method converges."""


def total_variation(
    operator: Any,
    b: Any,
    lam: Any,
    *,
    shape: Any = None,
    isotropic: bool = True,
    tol: float = 1e-3,
    max_iter: int = 5000,
) -> Solution:
    """``1/2 ||A x - b||^2 + lam TV(x)`` for pictures or signals x, solved with a certified gap.

    Parameters
    ----------
    operator : Operator, or an object with matvec, rmatvec and shape
        A, as in `sparse_recovery`.
    b : array (m,) or (B, m)
        The measurements, as in `sparse_recovery`.
    lam : float or array (B,)
        The weight of the total variation.
    shape : (height, width) or (length,), optional
        The size of the pictures, where the operator does not say it.
    isotropic : bool
        Whether the length of the two differences at a pixel counts, or the sum of their sizes.
    tol : float
        The relative gap to reach.
    max_iter : int
        Most iterations.

    Returns
    -------
    Solution
        `Solution.image` is the picture. Answers are NumPy arrays where b is one.

    Examples
    --------
    >>> import torch
    >>> from proxlearn.imaging import Mask, total_variation
    >>> picture = torch.zeros(16, 16, dtype=torch.float64)
    >>> picture[4:12, 4:12] = 1.0
    >>> seen = torch.rand(16, 16, generator=torch.Generator().manual_seed(0)) < 0.5
    >>> solution = total_variation(Mask(seen), seen * picture, 0.01, shape=(16, 16))
    >>> solution.solved, round(float((solution.image - picture).abs().mean()), 2)
    (True, 0.03)
    """
    check_limits(tol, max_iter)
    began = time.perf_counter()
    A = as_operator("operator", operator)
    grid = grid_of(A, None, shape)
    if grid is None or size(grid) != A.shape[1]:
        raise InputError(
            f"the operator of shape {A.shape} does not say the size of its real pictures; give "
            "shape=(height, width)"
        )
    targets, single = targets_of(A, b, grid)
    weights = as_tensor(to_positive("lam", lam, A))
    count = max(len(targets), len(weights), A.batch)
    if {len(targets), len(weights), A.batch} - {1, count}:
        raise InputError(
            f"b has {len(targets)} instances, lam {len(weights)} and the operator {A.batch}; "
            "expected the same number, or 1 for what all instances share"
        )
    terms = _Terms(A, targets.expand(count, -1), weights.expand(count), grid, isotropic)
    with torch.no_grad():
        found, iterations = _iterate(terms, tol, max_iter)
    x = found.x[0] if single and count == 1 else found.x
    answers = (x, found.objective, found.gap, iterations, iterations + 2 * found.looks)
    x, objective, gap, iterations, gradients = answers if is_tensor(b) else map(to_numpy, answers)
    return Solution(
        x=x,
        objective=objective,
        gap=gap,
        status=found.status(),
        iterations=iterations,
        grad_evals=gradients,
        seconds=time.perf_counter() - began,
        image=x.reshape(*x.shape[:-1], *grid),
    )


@dataclass(frozen=True)
class _Terms:
    """The two terms of F for a batch of B instances."""

    A: Operator
    b: Tensor
    """(B, m)"""
    lam: Tensor
    """(B,)"""
    grid: Grid
    isotropic: bool

    def double(self) -> "_Terms":
        """The same in float64."""
        A = self.A if self.A.dtype == torch.float64 else self.A.convert(torch.float64)
        return _Terms(A, self.b.double(), self.lam.double(), self.grid, self.isotropic)

    def differences(self, x: Tensor) -> Tensor:
        """D x of pictures (B, n), (B, axes, *grid); 0 beyond the last pixel of an axis."""
        x = x.reshape(len(x), *self.grid)
        out = x.new_zeros(len(x), len(self.grid), *self.grid)
        for axis, side in enumerate(self.grid):
            out[:, axis].narrow(axis + 1, 0, side - 1).copy_(x.diff(dim=axis + 1))
        return out

    def adjoint(self, p: Tensor) -> Tensor:
        """D^T p, (B, n)."""
        out = torch.zeros_like(p[:, 0])
        for axis, side in enumerate(self.grid):
            inner = p[:, axis].narrow(axis + 1, 0, side - 1)
            out.narrow(axis + 1, 1, side - 1).add_(inner)
            out.narrow(axis + 1, 0, side - 1).sub_(inner)
        return out.flatten(1)

    def lengths(self, p: Tensor) -> Tensor:
        """The lengths that count, (B, 1 or axes, *grid)."""
        if self.isotropic and len(self.grid) > 1:
            return p.square().sum(1, keepdim=True).sqrt()
        return p.abs()

    def projected(self, p: Tensor) -> Tensor:
        """The nearest point with lengths of at most lam."""
        lengths = self.lengths(p)
        lam = self.lam.reshape(-1, *[1] * (p.ndim - 1))
        return p * (lam / torch.maximum(lengths, lam))

    def objective(self, x: Tensor) -> Tensor:
        """F(x), (B,)."""
        misfit = 0.5 * (self.A.forward(x) - self.b).square().sum(-1)
        return misfit + self.lam * self.lengths(self.differences(x)).flatten(1).sum(-1)

    def lower_bound(self, u: Tensor, p: Tensor, x: Tensor) -> Tensor:
        """The lower bound on F* that u (B, m) and p prove, (B,); x is for what rounding leaves."""
        flat = self.A.forward(torch.ones_like(x))
        square = flat.square().sum(-1, keepdim=True)
        u = u - flat * (flat * u).sum(-1, keepdim=True) / torch.where(square > 0, square, 1.0)
        g = self.A.adjoint(u)
        q = p - self.differences(self._potential(g + self.adjoint(p)))
        # A^T u + D^T q is rounding, and the optimum is hardly longer than twice x.
        left = 2 * (g + self.adjoint(q)).norm(dim=-1) * x.norm(dim=-1)
        m = self.lengths(q).flatten(1).amax(-1)
        most = torch.where(m > self.lam, self.lam / m, 1.0)
        along, energy = (u * self.b).sum(-1), u.square().sum(-1)
        s = (-along / torch.where(energy > 0, energy, 1.0)).clamp(min=0).minimum(most)
        bound = -s * (0.5 * s * energy + along + left)
        return torch.where(bound.isfinite(), bound, -torch.inf)

    def _potential(self, r: Tensor) -> Tensor:
        """y with D^T D y = r without its mean, (B, n): a Poisson equation."""
        r = r.reshape(len(r), *self.grid)
        matrices = [cosine_matrix(side, r.dtype, str(r.device)) for side in self.grid]
        powers = [2 - 2 * torch.cos(torch.pi * torch.arange(s, dtype=r.dtype) / s).to(r)
                  for s in self.grid]  # fmt: skip
        total = powers[0] if len(powers) == 1 else powers[0][:, None] + powers[1]
        total.view(-1)[0] = torch.inf
        waves = r @ matrices[-1].T
        waves = (matrices[0] @ waves if len(powers) == 2 else waves) / total
        y = waves @ matrices[-1]
        return (matrices[0].T @ y if len(powers) == 2 else y).flatten(1)


class _Found:
    """The best that is known of each instance, in float64."""

    def __init__(self, terms: _Terms, x: Tensor, tol: float):
        self.exact, self.x, self.tol = terms.double(), x, tol
        self.zero = self.objective = self.exact.objective(x.double())
        self.lower = torch.zeros_like(self.objective)
        self.gap = self.objective
        self.ended = self.objective <= 0
        self.broken = torch.zeros_like(self.ended)
        self.looks = torch.zeros_like(self.ended, dtype=torch.int64)

    def look(self, x: Tensor, duals: Sequence[tuple[Tensor, Tensor]]) -> None:
        """Take x (B, n) with what the dual points (u, p) prove, where an instance goes on."""
        now = self.exact.objective(x.double())
        for u, p in duals:
            bound = self.exact.lower_bound(u.double(), p.double(), x.double())
            self.lower = torch.where(self.ended, self.lower, torch.maximum(self.lower, bound))
        self.looks += ~self.ended
        self.broken = self.broken | ~(self.ended | now.isfinite())
        fresh = ~(self.ended | self.broken)
        self.x = torch.where(fresh[:, None], x, self.x)
        self.objective = torch.where(fresh, now, self.objective)
        self.gap = (self.objective - self.lower).clamp(min=0)
        self.ended = self.ended | self.broken | self._holds()

    def _holds(self) -> Tensor:
        allowed: Tensor = allowed_gap(self.tol, self.objective, self.zero)
        return self.gap <= allowed

    def status(self) -> tuple[Status, ...]:
        """How each instance ended."""
        names = zip(self._holds().tolist(), self.broken.tolist(), strict=True)
        return tuple(
            Status.SOLVED if holds else Status.NUMERICAL_ERROR if broken else Status.MAX_ITER
            for holds, broken in names
        )


def _iterate(terms: _Terms, tol: float, max_iter: int) -> tuple[_Found, Tensor]:
    """What is found, and the iterations of each instance."""
    A = terms.A
    x = terms.b.new_zeros(len(terms.b), A.shape[1])
    p = Dx = terms.differences(x)
    pulled = x
    found, steps = _Found(terms, x, tol), _Steps(terms)
    iterations = torch.zeros_like(found.looks)
    mean: tuple[Tensor, Tensor] | None = None
    for k in range(1, max_iter + 1):
        if bool(found.ended.all()):
            break
        w = x - steps.tau * pulled
        implicit = A.implicit_residual(w, terms.b, steps.tau)
        if implicit is None:
            u = A.forward(x) - terms.b
            implicit = u, A.adjoint(u)
        u, g = implicit
        x_next = w - steps.tau * g
        Dx_next = terms.differences(x_next)
        p_next = terms.projected(p + steps.sigma * (2 * Dx_next - Dx))
        pulled_next = terms.adjoint(p_next)
        of_x, of_p = (x - x_next, pulled - pulled_next), (p - p_next, Dx - Dx_next)
        steps.balance(of_x, of_p, pulled_next, Dx_next)
        x, p, Dx, pulled = x_next, p_next, Dx_next, pulled_next
        share = POWER / (k - 1 + POWER)
        mean = (u, p) if mean is None else (mean[0].lerp(u, share), mean[1].lerp(p, share))
        iterations += ~found.ended
        if k % LOOK == 0 or k == max_iter:
            found.look(x, ((u, p), mean))
    return found, iterations


class _Steps:
    """tau and sigma of each instance, the steps of x and of p, balanced by their residuals."""

    def __init__(self, terms: _Terms):
        A = terms.A
        self.closed = A.has_implicit_residual
        self.steep = A.norm().square().expand(len(terms.b))[:, None]
        self.rows = 4.0 * len(terms.grid)  # |D|^2 is at most this
        back = A.adjoint(terms.b).square().mean(-1, keepdim=True).sqrt()
        steep = torch.where(self.steep > 0, self.steep, 1.0)
        # Pixels differ by a part of their size, and p by up to lam.
        self.tau = torch.where(back > 0, back / steep / (self.rows * terms.lam[:, None]), 1.0)
        self.change = torch.full_like(self.tau, CHANGE)
        self._limit()

    def _limit(self) -> None:
        """sigma, the longest that goes with tau: without a closed form tau is below 2/L."""
        if not self.closed:
            self.tau = torch.where(self.steep > 0, self.tau.minimum(SAFE / self.steep), self.tau)
        room = 1 / self.tau - (0 if self.closed else self.steep / 2)
        self.sigma = (SAFE * room / self.rows)[..., None]
        while self.sigma.ndim < 2 + self.rows / 4:
            self.sigma = self.sigma[..., None]

    def balance(
        self, of_x: tuple[Tensor, Tensor], of_p: tuple[Tensor, Tensor], pulled: Tensor, Dx: Tensor
    ) -> None:
        """New steps from the differences x - x+, D^T (p - p+) and p - p+, D (x - x+)."""
        primal = _length(of_x[0] / self.tau - of_x[1]) * _length(Dx)
        dual = _length(of_p[0] / self.sigma - of_p[1]) * _length(pulled)
        longer, shorter = primal > BALANCE * dual, dual > BALANCE * primal
        factor = torch.where(longer, 1 / (1 - self.change), 1.0)
        factor = torch.where(shorter, 1 - self.change, factor)
        self.tau = self.tau * factor
        self.change = torch.where(longer | shorter, FADING * self.change, self.change)
        self._limit()


def _length(t: Tensor) -> Tensor:
    """(B, 1)"""
    norm: Tensor = t.flatten(1).norm(dim=-1, keepdim=True)
    return norm
