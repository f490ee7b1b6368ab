"""Problem = (f, r): the objective, and certificates of how far a point can be from optimal."""

from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from proxlearn.batch import SHARED, convert, select
from proxlearn.errors import InputError
from proxlearn.penalties import Penalty
from proxlearn.smooth import GLM, Evaluation, Smooth
from proxlearn.tolerance import allowed_gap


@dataclass(frozen=True)
class Certificate:
    """What is known about a point: its objective, and how far below it the optimum can lie."""

    objective: Tensor
    """F(x), (B,)."""
    gap: Tensor
    """An upper bound on F(x) - F*, (B,); infinite where none is known."""


@dataclass(frozen=True)
class Problem:
    """``minimise F(x) = f(x) + r(x)``, a batch of B instances with x (B, n)."""

    f: Smooth
    r: Penalty
    single: bool = field(default=False, metadata=SHARED)
    """True where the user gave one problem: its solution's x is then (n,) instead of (1, n)."""

    def __post_init__(self) -> None:
        sizes = {self.f.batch, self.r.batch} - {1}
        if len(sizes) > 1:
            raise InputError(
                f"f has {self.f.batch} instances and r has {self.r.batch}; "
                "expected the same number, or 1 for a term that all instances share"
            )

    @property
    def n(self) -> int:
        """Number of variables."""
        return self.f.n

    @property
    def batch(self) -> int:
        """Number of instances B."""
        return max(self.f.batch, self.r.batch)

    @property
    def dtype(self) -> torch.dtype:
        """Precision in which the problem is stored and solved."""
        return self.f.like.dtype

    @property
    def device(self) -> torch.device:
        """Where the problem is stored and solved."""
        return self.f.like.device

    def select(self, index: Tensor) -> "Problem":
        """The instances `index` (positions) as a problem of their own."""
        chosen = Problem(select(self.f, index), select(self.r, index))
        if "at_zero" in self.__dict__:
            chosen.__dict__["at_zero"] = self.at_zero[index]
        return chosen

    def to(self, dtype: torch.dtype | None = None, device: str | None = None) -> "Problem":
        """The same problem in another precision or on another device."""
        target = self.dtype if dtype is None else dtype
        f, r = convert(self.f, target, device), convert(self.r, target, device)
        moved = Problem(f, r, self.single)
        if "at_zero" in self.__dict__:
            moved.__dict__["at_zero"] = self.at_zero.to(device=device)
        return moved

    def objective(self, x: Tensor) -> Tensor:
        """F(x), (B,)."""
        return self.f.value(x) + self.r.value(x)

    def lipschitz(self) -> Tensor:
        """Lipschitz constant of grad f for every instance, (B,)."""
        return self.f.lipschitz().expand(self.batch)

    def safe_step(self) -> Tensor:
        """1/L, (B, 1); 1 where f is constant and any step is safe."""
        L = self.lipschitz()[:, None]
        return torch.where(L > 0, 1 / L, torch.ones_like(L))

    def upper_bound(self, e: Evaluation, x: Tensor) -> Tensor:
        """F(x) <= f(y) + <grad f(y), x - y> + L/2 ||x - y||^2 + r(x), (B,), from f evaluated at y.

        The descent lemma: the objective at x for the price of a dot product.
        """
        d = x - e.point
        linear, square = (e.grad * d).sum(-1), d.square().sum(-1)
        return e.value + linear + 0.5 * self.lipschitz() * square + self.r.value(x)

    def lower_bound(self, e: Evaluation) -> Tensor:
        """F* >= -f*(s g) - r*(-s g) with g = grad f(y), (B,), from f evaluated at any point y.

        Fenchel duality. For generalised linear models with an l1-type penalty it is the usual
        dual value at the residual scaled into the feasible set by s; for bounded sets, where
        s = 1, it is the Frank-Wolfe bound f(y) + min_z <g, z - y>. For one-sided constraints the
        residual is first moved into the feasible set (`strictly_feasible`). Minus infinity where
        nothing is known.
        """
        e = self.strictly_feasible(self.balanced(e))
        s = self.r.dual_scale(e.grad)
        return -self.f.conjugate(e, s) - self.r.conjugate(-s[:, None] * e.grad)

    def certificate(self, x: Tensor) -> Certificate:
        """Objective, gap and residual at x (B, n), in float64 whatever the problem's precision.

        Converts at most 64 instances at a time, so that memory stays bounded.
        """
        if self.dtype == torch.float64:
            return self._certificate(x)
        if self.f.batch == 1:
            return self.to(torch.float64)._certificate(x.double())
        parts = []
        for rows in torch.arange(len(x), device=x.device).split(64):
            parts.append(self.select(rows).to(torch.float64)._certificate(x[rows].double()))
        return Certificate(
            torch.cat([c.objective for c in parts]), torch.cat([c.gap for c in parts])
        )

    def _certificate(self, x: Tensor) -> Certificate:
        e = self.f.evaluate(x)
        objective = e.value + self.r.value(x)
        return Certificate(objective, self.gap(objective, self.lower_bound(e)))

    def gap(self, objective: Tensor, lower: Tensor) -> Tensor:
        """F(x) - lower as a certified gap, (B,): >= 0, infinite where nothing is known.

        Losses and penalties are never negative. So an F(x) that is rounding against F(0) is its own
        gap where no lower bound is known.
        """
        gap = (objective - lower).clamp(min=0)
        gap = torch.where(gap.isnan(), torch.inf, gap)
        if isinstance(self.f, GLM):
            zero = gap.isinf() & (objective <= self.allowed_gap(0.0, objective))
            gap = torch.where(zero, objective, gap)
        return gap

    def residual(self, e: Evaluation) -> Tensor:
        """Length of the prox-gradient map L (y - prox(y - grad f(y)/L)), (B,), at an evaluated y.

        Zero exactly at a minimiser; what stops a solve where no gap is known.
        """
        step = self.safe_step()
        return length((e.point - self.r.prox(e.point - step * e.grad, step)) / step)

    def residual_at(self, x: Tensor) -> Tensor:
        """The same at x (B, n) in float64, (B,), with what the rounding of y - grad f/L may hide.

        Converts at most 64 instances at a time, so that memory stays bounded.
        """
        parts = []
        for rows in torch.arange(len(x), device=x.device).split(64):
            exact = self.select(rows).to(torch.float64)
            e = exact.f.evaluate(x[rows].double())
            hidden = torch.finfo(torch.float64).eps * length(e.point) / exact.safe_step()[:, 0]
            parts.append(exact.residual(e) + hidden)
        return torch.cat(parts)

    def strictly_feasible(self, e: Evaluation) -> Evaluation:
        """The same evaluation with a dual point in the domain of r* where r is one-sided.

        Where x_j can go to infinity at no cost, r* is finite only if sides_j a_j^T u >= 0. With a
        direction v that satisfies this strictly, u' = s (u + theta v) does for the smallest theta
        that is large enough, and s is the multiple with the largest dual value. theta includes
        what rounding may take from a_j^T u, so that u' is feasible in exact arithmetic.
        """
        sides = self.r.sides()
        if sides is None or not isinstance(self.f, GLM) or e.dual is None:
            return e
        sides = sides.to(e.grad).expand(-1, self.n)
        direction = self.f.interior(sides)
        if direction is None:
            return e
        v, pulled, norms = (part.to(e.grad.dtype) for part in direction)
        u = e.dual.flatten(1)
        counts = (sides != 0) & (norms > 0)
        rounding = (8 + u.shape[1] ** 0.5) * torch.finfo(u.dtype).eps
        needed = (rounding * length(u)[:, None] * norms - sides * e.grad) / (sides * pulled)
        theta = torch.where(counts, needed, 0.0).amax(-1, keepdim=True).clamp(min=0)
        moved = u + theta * v
        grad = e.grad + theta * pulled
        grad = torch.where(counts, sides * (sides * grad).clamp(min=0), grad)
        known = moved.isfinite().all(-1, keepdim=True)
        moved, grad = torch.where(known, moved, u), torch.where(known, grad, e.grad)
        moved = moved.reshape(e.dual.shape)
        if self.r.indicator:
            s = self.f.best_multiple(moved, self.r.conjugate(-grad))
            s = torch.where(known[:, 0], s, 1.0)
            grad = s[:, None] * grad
            moved = s.reshape(-1, *[1] * (moved.ndim - 1)) * moved
        return Evaluation(e.point, e.value, grad, moved)

    @cached_property
    def at_zero(self) -> Tensor:
        """F at the penalty's point nearest 0, (B,), the scale of an optimum of 0; 0 if infinite."""
        zero = torch.zeros(self.batch, self.n, dtype=self.dtype, device=self.device)
        nearest = self.r.prox(zero, torch.ones_like(zero[:, :1]))
        at = self.f.value(nearest) if bool((nearest != 0).any()) else self.f.value_at_zero()
        value = (at + self.r.value(nearest)).double()
        return torch.where(value.isfinite(), value, 0.0)

    def allowed_gap(self, tol: float, objective: Tensor) -> Tensor:
        """The gap up to which points with these objectives are SOLVED, (B,)."""
        allowed: Tensor = allowed_gap(tol, objective, self.at_zero.to(objective.dtype))
        return allowed

    def balanced(self, e: Evaluation) -> Evaluation:
        """The same evaluation with a dual point that is orthogonal to the unpenalised columns.

        Where r ignores a coordinate (an intercept), r* is finite only if the gradient vanishes
        there exactly. One Newton step on those coordinates, in the dual: u' = u - H Z w with
        Z^T H Z w = Z^T u, H the Hessian of the loss and Z the columns. Linear, hence exact.
        """
        free = self.r.free()
        if free is None or not isinstance(self.f, GLM) or e.dual is None:
            return e
        free = free.expand(self.batch, -1)
        columns = []
        for j in free.any(0).nonzero()[:, 0]:
            unit = torch.zeros_like(e.grad)
            unit[:, j] = free[:, j].to(unit.dtype)
            columns.append(self.f.predict(unit))
        Z = torch.stack(columns, 1).flatten(2)  # (B, k, m)
        HZ = torch.stack([self.f.hessian_product(e.dual, z) for z in columns], 1).flatten(2)
        u = e.dual.flatten(1)
        inverse, balanced = pseudo_inverse(Z @ HZ.mT), u
        for _ in range(2):  # the second time only for the rounding of the first
            w = inverse @ (Z @ balanced[:, :, None])
            balanced = balanced - (HZ.mT @ w)[:, :, 0]
        grad = self.f.pull(balanced.reshape(e.dual.shape))
        # What is left on the free coordinates is rounding, if it is small against what cancelled.
        noise = 1e3 * torch.finfo(grad.dtype).eps * (Z.abs() @ u.abs()[:, :, None]).amax((1, 2))
        grad = torch.where(free & (grad.abs() <= noise[:, None]), torch.zeros_like(grad), grad)
        return Evaluation(e.point, e.value, grad, balanced.reshape(e.dual.shape))


def require_problem(value: object) -> None:
    """Refuses what is no problem; a matrix above all."""
    if not isinstance(value, Problem):
        raise InputError(
            f"problem is of type {type(value).__name__}; expected a Problem: make one of the data, "
            "as in proxlearn.lasso(A, b, lam)"
        )


def length(v: Tensor) -> Tensor:
    """||v||, (B,), of v (B, n), also where its square would leave the range of the dtype."""
    largest = v.abs().amax(-1, keepdim=True)
    scale = torch.where((largest > 0) & largest.isfinite(), largest, 1.0)
    norm: Tensor = (v / scale).norm(dim=-1) * scale[:, 0]
    return norm


def pseudo_inverse(M: Tensor) -> Tensor:
    """That of Hessians M (B, k, k) of unpenalised coordinates, zero where M is not finite.

    Intercepts of several classes have a direction that changes nothing: what M has there is
    rounding, and is cut off, relative to M's diagonal as classes may weigh little.
    """
    M = M.nan_to_num(0, 0, 0)
    d = M.diagonal(dim1=1, dim2=2).clamp(min=0).sqrt()
    d = torch.where(d > 0, d, 1.0)
    d = d[:, :, None] * d[:, None, :]
    inverse: Tensor = torch.linalg.pinv(
        M / d, rtol=torch.finfo(M.dtype).eps ** 0.75, hermitian=True
    )
    return inverse / d
