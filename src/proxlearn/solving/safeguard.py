"""The safeguard: FISTA with restart takes over where a learned rule makes no progress.

For every instance by itself: the rule goes on while over each window of `WINDOW` iterations the
merit falls to at most `RATE` of what it was. The merit is the certified gap, the smallest upper
minus the largest lower bound seen; where no gap is known, the prox-gradient residual. If the rule
fails, FISTA with restart takes over from the best point for a stretch of iterations. Then the rule
is tried again from the best point, and from now on it has to be as fast as FISTA was, and at least
`SLOWEST`. Each stretch is `GROWTH` times longer than the last.

Whatever the weights, the certified upper bound U on F(best) goes to F* (for bounded level sets and
a known gap). Either the rule fails finitely often, then the merit falls geometrically; or there are
infinitely many stretches. Each begins with a proximal gradient step from the best point, whose
descent lemma lowers U by at least |G(best)|^2 / (2 L), so G(best) -> 0, and F(best) - F* is at most
|G| times the diameter of the level set. Without a gap the residual takes its place.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from proxlearn.methods.optimizers.optimizer import most_iterations, rule_of
from proxlearn.methods.rules import Fista, Learnable
from proxlearn.methods.scheme import Scheme, State, Stepwise
from proxlearn.problems.batch import SHARED, blend, finite
from proxlearn.problems.problem import Problem
from proxlearn.problems.smooth import Evaluation

WINDOW, RATE, SLOWEST = Learnable.window, Learnable.rate, 0.95
"""Iterations of a window, the ratio of the merits at its end and beginning that a rule has to reach
at first, and the largest ratio that is asked of it later."""
STRETCH, GROWTH = 60, 3
"""FISTA's first stretch, and how much longer each one is than the last.

With a first stretch of 30, random weights cost 1.6 times the gradients of FISTA on the logistic
regressions of tests/test_safeguard.py, with 60 at most 1.44 times on all its problems and weights
(2026-11-18).
"""

FALLBACK = Scheme(Fista(restart=True))


@dataclass(frozen=True)
class SafeState:
    """The states of both methods, and which instances the learned one works on."""

    x: Tensor
    k: int = field(metadata=SHARED)
    at: Evaluation | None
    rule: Any
    """State of the learned method."""
    fista: State
    trusted: Tensor
    """Instances that the learned method works on, (B,)."""
    best: Tensor
    """The best point so far, (B, n)."""
    bound: Tensor
    """An upper bound on F(x), (B,)."""
    upper: Tensor
    """The smallest upper bound so far, on F(best), (B,)."""
    lower: Tensor
    """The largest lower bound on F* so far, (B,)."""
    residual: Tensor
    """The smallest prox-gradient residual so far, (B,), where no gap is known; else infinite."""
    mark: Tensor
    """The merit at the beginning of the window, (B,); of the first one after an iteration."""
    due: Tensor
    """The iteration at which the window or the stretch ends, (B,)."""
    stretch: Tensor
    """Length of FISTA's next stretch, (B,)."""
    needed: Tensor
    """The largest ratio of the merits at the end and the beginning of a window, (B,)."""


@dataclass(frozen=True)
class Safeguarded:
    """An optimizer that is a learned one while that makes progress."""

    inner: Stepwise
    """A scheme with a learned rule, or a loaded model."""

    @property
    def gradients(self) -> int:
        """Gradients an iteration, at most."""
        return self.inner.gradients

    @property
    def window(self) -> int:
        """Iterations between looks at the merit: as many as the rule asks for."""
        rule = rule_of(self.inner)
        return rule.window if isinstance(rule, Learnable) else WINDOW

    @property
    def rate(self) -> float:
        """Largest ratio of the merits at the end and the beginning of a window, at first."""
        rule = rule_of(self.inner)
        return rule.rate if isinstance(rule, Learnable) else RATE

    def exhausted(self, k: int) -> bool:
        """True where the learned method has no layer for iteration k."""
        layers = most_iterations(self.inner)
        return layers is not None and k >= layers

    def init(self, problem: Problem, x0: Tensor) -> SafeState:
        """The learned method first."""
        B, device = len(x0), x0.device
        infinite = x0.new_full((B,), torch.inf)
        return SafeState(
            x=x0,
            k=0,
            at=None,
            rule=self.inner.init(problem, x0),
            fista=FALLBACK.init(problem, x0),
            trusted=torch.ones(B, dtype=torch.bool, device=device),
            best=x0,
            bound=infinite,
            upper=infinite,
            lower=-infinite,
            residual=infinite,
            mark=infinite,
            due=torch.full((B,), self.window, device=device),
            stretch=torch.full((B,), STRETCH, device=device),
            needed=x0.new_full((B,), self.rate),
        )

    def step(self, problem: Problem, state: SafeState) -> SafeState:
        """One iteration of the method of each instance, and a check of the merit if it is due."""
        if self.exhausted(state.k) and bool(state.trusted.any()):
            state = self._to_fista(problem, state, state.trusted)
        rule, fista, trusted = state.rule, state.fista, state.trusted
        if bool(trusted.all()):
            at = self.inner.evaluate(problem, rule)
            rule = replace(self.inner.advance(problem, rule, at), at=None)
            x = rule.x
        elif not bool(trusted.any()):
            at = FALLBACK.evaluate(problem, fista)
            fista = replace(FALLBACK.advance(problem, fista, at), at=None)
            x = fista.x
        else:
            at = self._both(problem, state)
            new_rule = replace(self.inner.advance(problem, rule, at), at=None)
            new_fista = replace(FALLBACK.advance(problem, fista, at), at=None)
            rule = blend(trusted, new_rule, _later(rule))
            fista = blend(trusted, _later(fista), new_fista)
            x = torch.where(trusted[:, None], rule.x, fista.x)
        moved = replace(state, x=x, k=state.k + 1, at=at, rule=rule, fista=fista)
        return self._judged(problem, self._measured(problem, moved))

    def _both(self, problem: Problem, s: SafeState) -> Evaluation:
        """One evaluation of f for instances of both methods where both only need a point of it."""
        own = self.inner.point(s.rule)
        point = FALLBACK.point(s.fista)
        if own is not None:
            return problem.f.evaluate(torch.where(s.trusted[:, None], own, point))
        of_rule = self.inner.evaluate(problem, s.rule)
        return blend(s.trusted, of_rule, problem.f.evaluate(point))

    def _measured(self, problem: Problem, s: SafeState) -> SafeState:
        """Bounds and best point with the new evaluation."""
        assert s.at is not None
        at_x = problem.upper_bound(s.at, s.x)
        at_y = s.at.value + problem.r.strict_value(s.at.point)  # y may become the answer
        at_x, at_y = (torch.where(u.isnan(), torch.inf, u) for u in (at_x, at_y))
        upper = torch.minimum(at_x, at_y)
        best = _pick(upper < s.upper, _pick(at_x <= at_y, s.x, s.at.point), s.best)
        lower = s.lower
        if problem.r.free() is None or looks(s.k):
            new = problem.lower_bound(s.at)
            lower = torch.maximum(lower, torch.where(new.isnan(), -torch.inf, new))
        residual = s.residual
        unknown = lower.isneginf()
        if bool(unknown.any()):
            new = problem.residual(s.at)
            new = torch.where(unknown & ~new.isnan(), new, torch.inf)
            residual = torch.minimum(residual, new)
        upper = torch.minimum(upper, s.upper)
        return replace(s, best=best, bound=at_x, upper=upper, lower=lower, residual=residual)

    def _judged(self, problem: Problem, s: SafeState) -> SafeState:
        """At the end of a window or a stretch the next one begins, perhaps by the other method."""
        if s.k == 1:
            s = replace(s, mark=_merit(s))
        broken = s.trusted & ~s.bound.isfinite()  # as soon as x, the gradient or f is not finite
        due = (s.due <= s.k) | broken
        if not bool(due.any()):
            return s
        merit = _merit(s)
        floor = 100 * torch.finfo(s.x.dtype).eps
        good = ((merit <= s.needed * s.mark) | (merit <= floor)) & ~broken & merit.isfinite()
        on = due & s.trusted & good
        fails, returns = due & s.trusted & ~good, due & ~s.trusted
        speed = (merit / s.mark) ** (self.window * GROWTH / s.stretch)  # of the stretch that ends
        speed = torch.where(speed.isnan(), SLOWEST, speed).clamp(max=SLOWEST)
        s = replace(
            s,
            x=torch.where(broken[:, None], s.best, s.x),
            bound=torch.where(broken, s.upper, s.bound),
            mark=torch.where(due, merit, s.mark),
            due=torch.where(on | returns, s.k + self.window, s.due),
            needed=torch.where(returns, speed, s.needed),
        )
        if bool(fails.any()):
            s = self._to_fista(problem, s, fails)
        if bool(returns.any()):
            s = self._to_rule(problem, s, returns)
        return s

    def _to_fista(self, problem: Problem, s: SafeState, those: Tensor) -> SafeState:
        """FISTA from the best point, for a stretch that is longer every time."""
        fresh = _from(FALLBACK.init(problem, s.best), s.best, s.k)
        return replace(
            s,
            fista=blend(those, fresh, _later(s.fista, s.k)),
            trusted=s.trusted & ~those,
            due=torch.where(those, s.k + s.stretch, s.due),
            stretch=torch.where(those, GROWTH * s.stretch, s.stretch),
        )

    def _to_rule(self, problem: Problem, s: SafeState, those: Tensor) -> SafeState:
        """The learned method again, from the best point, its memory kept where it is finite."""
        if self.exhausted(s.k):
            return replace(s, due=torch.where(those, s.k + s.stretch, s.due))
        healthy = finite(s.rule, len(s.x))
        fresh = _later(self.inner.init(problem, s.best), s.k)
        kept = blend(healthy, _later(s.rule, s.k), fresh)
        again = _from(kept, s.best, s.k)
        rule = blend(those, again, _later(s.rule, s.k))
        return replace(s, rule=rule, trusted=s.trusted | those)


def looks(k: int) -> bool:
    """True at iterations at which a lower bound that costs further products is computed.

    Unpenalised columns cost such products, and the merit is due only at the end of a window.
    """
    return k == 1 or k % WINDOW == 0


def _pick(those: Tensor, yes: Tensor, no: Tensor) -> Tensor:
    """Rows of `yes` where `those` (B,) holds, else of `no`; without a copy where all are alike."""
    if bool(those.all()):
        return yes
    return torch.where(those[:, None], yes, no) if bool(those.any()) else no


def _merit(s: SafeState) -> Tensor:
    """The relative gap, or the residual where no gap is known, (B,)."""
    gap = (s.upper - s.lower) / s.upper.abs().clamp(min=torch.finfo(s.upper.dtype).tiny)
    return torch.where(s.lower.isneginf(), s.residual, gap)


def _later(state: Any, k: int | None = None) -> Any:
    """The same state at another iteration, the next one by default."""
    return replace(state, k=state.k + 1 if k is None else k)


def _from(state: Any, x: Tensor, k: int) -> Any:
    """A state that goes on from x, without momentum."""
    changes = {"x": x, "k": k}
    if isinstance(state, State):
        changes["y"] = x
    return replace(state, **changes)
