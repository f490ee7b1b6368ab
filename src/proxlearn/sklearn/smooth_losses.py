"""The losses of problems with an l2 penalty alone: value, dual point, curvature, dual bound.

Predictions Z are (R, m): one row for least squares and for two classes, one for each of more
classes. A `State` is a loss at some predictions.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import xlog1py, xlogy

from proxlearn.core import kernel
from proxlearn.sklearn.fitting import Array


@dataclass
class State:
    """A loss at predictions Z (R, m)."""

    value: float
    U: Array
    """Minus the derivatives with respect to Z, (R, m)."""
    own: Any
    """What the loss keeps for its other methods: probabilities of wrong labels, or residuals."""


class Loss(Protocol):
    """What the solver asks of a loss."""

    s: Array
    """Weights of the samples, (m,)."""
    quadratic: bool

    def at_zero(self) -> float:
        """The value at predictions of 0."""

    def at(self, Z: Array, spare: State | None = None) -> State:
        """Value and dual point at predictions, in the arrays of a `spare` state where it helps."""

    def curvature(self, state: State) -> Array:
        """The diagonal of the second derivatives, (R, m)."""

    def hessian(self, state: State) -> Callable[[Array], Array]:
        """The product of the second derivatives with changes of the predictions (R, m)."""

    def centre_constants(self, state: State) -> Array:
        """Changes (R,) of the constants: a Newton step towards dual points whose sums are 0."""

    def balance(self, state: State) -> None:
        """Move the dual point so that the sum of each row is 0, as an intercept asks."""

    def moved(self, state: State, by: float) -> State | None:
        """The dual point less `by` times the weights, or None where no such point is feasible."""

    def bound(self, state: State) -> float:
        """Minus the conjugate of the loss at minus the dual point."""


def _compiled_state(compiled: Any, Z: Array, spare: State | None) -> State:
    """A compiled loss at predictions Z (1, m).

    New arrays of some ten thousand samples take longer than the arithmetic, so that those of a
    `spare` state are used again.
    """
    z = np.ascontiguousarray(Z[0])
    U, own = np.empty((2, *Z.shape)) if spare is None else (spare.U, spare.own)
    return State(compiled.at(z, U[0], own[0]), U, own)


class OfOneRow:
    """A loss of one prediction for each sample: its second derivatives are diagonal."""

    @abstractmethod
    def curvature(self, state: State) -> Array:
        """The diagonal of the second derivatives, (1, m)."""

    def hessian(self, state: State) -> Callable[[Array], Array]:
        D = self.curvature(state)
        return lambda V: D * V


class Squares(OfOneRow):
    """1/2 sum_i s_i (b_i - z_i)^2."""

    quadratic = True

    def __init__(self, b: Array, s: Array, rows: int = 1):
        self.b, self.s = b, s

    def at_zero(self) -> float:
        return 0.5 * float(self.s @ np.square(self.b))

    def at(self, Z: Array, spare: State | None = None) -> State:
        left = self.b - Z
        U = self.s * left
        return State(0.5 * float((U * left).sum()), U, left)

    def curvature(self, state: State) -> Array:
        return self.s[None]

    def centre_constants(self, state: State) -> Array:
        change: Array = state.U.sum(1) / self.s.sum()
        return change

    def balance(self, state: State) -> None:
        state.U -= self.s * (state.U.sum() / self.s.sum())

    def moved(self, state: State, by: float) -> State | None:
        return None

    def bound(self, state: State) -> float:
        used = self.s > 0
        u = state.U[0, used]
        return float(u @ self.b[used] - 0.5 * np.square(u) @ (1.0 / self.s[used]))


class Logistic(OfOneRow):
    """sum_i s_i log(1 + exp(-b_i z_i)) with labels b of -1 and 1."""

    quadratic = False

    def __init__(self, b: Array, s: Array, rows: int = 1):
        self.b, self.s, self.signed = b, s, s * b
        self.compiled = kernel.Logistic(b, s)

    def at_zero(self) -> float:
        return float(self.s.sum() * np.log(2.0))

    def at(self, Z: Array, spare: State | None = None) -> State:
        return _compiled_state(self.compiled, Z, spare)

    def curvature(self, state: State) -> Array:
        curvature: Array = self.s * state.own * (1.0 - state.own)
        return curvature

    def centre_constants(self, state: State) -> Array:
        total = max(float(self.curvature(state).sum()), np.finfo(float).tiny)
        change: Array = state.U.sum(1) / total
        return change

    def balance(self, state: State) -> None:
        """Shrink the dual point of the class with the larger sum."""
        first = self.b > 0
        weighted = self.s * state.own[0]
        sums = float(weighted[first].sum()), float(weighted[~first].sum())
        least, tiny = min(sums), np.finfo(float).tiny
        shares = np.where(first, least / max(sums[0], tiny), least / max(sums[1], tiny))
        state.own = state.own * np.minimum(shares, 1.0)
        state.U = self.signed * state.own

    def moved(self, state: State, by: float) -> State | None:
        wrong = state.own - by * self.b
        if not (wrong.min() >= 0.0 and wrong.max() <= 1.0):
            return None
        return State(state.value, self.signed * wrong, wrong)

    def bound(self, state: State) -> float:
        return float(self.s @ _entropy(state.own[0]))


class Poisson(OfOneRow):
    """sum_i s_i (exp(z_i) - b_i z_i + b_i log b_i - b_i) with counts b >= 0: half the deviance.

    `State.own` holds the means exp(z), or what they were balanced to: any means >= 0 are feasible.
    """

    quadratic = False
    largest = 700.0
    """Predictions are cut off there, before exp overflows; such a value is refused as too large."""

    def __init__(self, b: Array, s: Array, rows: int = 1):
        self.b, self.s = b, s
        self.some = b > 0
        self.log_b = np.log(np.where(self.some, b, 1.0))
        self.compiled = kernel.Poisson(b, s)

    def at_zero(self) -> float:
        return float(self.s @ (1.0 - self.b + self.b * self.log_b))

    def at(self, Z: Array, spare: State | None = None) -> State:
        return _compiled_state(self.compiled, np.minimum(Z, self.largest), spare)

    def curvature(self, state: State) -> Array:
        curvature: Array = self.s * state.own
        return curvature

    def centre_constants(self, state: State) -> Array:
        return np.log(self._excess(state))

    def balance(self, state: State) -> None:
        """Multiply the means so that they sum to the counts."""
        state.own = state.own * self._excess(state)
        state.U = self.s * (self.b - state.own)

    def _excess(self, state: State) -> Array:
        """The sum of the counts divided by that of the means, (1,)."""
        excess: Array = (self.s @ self.b) / np.maximum(state.own @ self.s, np.finfo(float).tiny)
        return excess

    def moved(self, state: State, by: float) -> State | None:
        means = state.own + by
        return State(state.value, self.s * (self.b - means), means) if means.min() >= 0.0 else None

    def bound(self, state: State) -> float:
        q = state.own[0]
        step = q - self.b
        ratio = step / np.where(self.some, self.b, 1.0)
        near = self.some & (np.abs(ratio) < 0.5)  # log(q / b) keeps its digits there
        logs = np.log(np.maximum(q, np.finfo(float).tiny)) - self.log_b
        logs = np.where(near, np.log1p(np.where(near, ratio, 0.0)), logs)
        return float(self.s @ (step - step * self.log_b - q * logs))


def _entropy(t: Array) -> Array:
    """-t log t - (1 - t) log(1 - t)."""
    entropy: Array = -xlogy(t, t) - xlog1py(1.0 - t, -t)
    return entropy


class Softmax:
    """sum_i s_i (log sum_c exp(z_ci) - z_bi) with labels b of 0, ..., R - 1.

    `State.own` holds the probabilities (R, m), with 0 at the labels, and 1 - p of the labels (m,).
    """

    quadratic = False

    def __init__(self, b: Array, s: Array, classes: int):
        self.s, self.labels = s, b.astype(np.intp)
        self.cells = self.labels, np.arange(len(b))
        self.classes = classes

    def at_zero(self) -> float:
        return float(self.s.sum() * np.log(self.classes))

    def at(self, Z: Array, spare: State | None = None) -> State:
        truth = Z[self.cells]
        above = Z - truth
        top = above.max(0)
        P = np.exp(above - top)
        P[self.cells] = 0.0
        rest, least = P.sum(0), np.exp(-top)
        total = least + rest
        loss = np.where(top == 0.0, np.log1p(rest), top + np.log(total))
        P /= total
        return self._state(float(self.s @ loss), P, rest / total)

    def _state(self, value: float, P: Array, wrong: Array) -> State:
        U = -self.s * P
        U[self.cells] = self.s * wrong
        return State(value, U, (P, wrong))

    def _probabilities(self, state: State) -> Array:
        P, wrong = state.own
        full: Array = P.copy()
        full[self.cells] = 1.0 - wrong
        return full

    def curvature(self, state: State) -> Array:
        P = self._probabilities(state)
        curvature: Array = self.s * P * (1.0 - P)
        return curvature

    def hessian(self, state: State) -> Callable[[Array], Array]:
        P = self._probabilities(state)
        weighted = self.s * P

        def product(V: Array) -> Array:
            found: Array = weighted * (V - (P * V).sum(0))
            return found

        return product

    def centre_constants(self, state: State) -> Array:
        P = self._probabilities(state)
        weighted = self.s * P
        H = np.diag(weighted.sum(1)) - weighted @ P.T
        # A constant that is added to all classes changes nothing: its direction gets a curvature.
        H += max(float(np.trace(H)), np.finfo(float).tiny) / self.classes**2
        try:
            change: Array = np.linalg.solve(H, state.U.sum(1))
        except np.linalg.LinAlgError:  # a class has no samples with weight
            change = np.linalg.lstsq(H, state.U.sum(1))[0]
        return change

    def balance(self, state: State) -> None:
        """Move probability from the classes that have too much to those that have too little."""
        P = self._probabilities(state)
        sums = self.s @ P.T
        wanted = np.bincount(self.labels, weights=self.s, minlength=self.classes)
        lacking = np.maximum(wanted - sums, 0.0)
        if not lacking.any():
            return
        kept = np.minimum(wanted / np.maximum(sums, np.finfo(float).tiny), 1.0)[:, None]
        freed = ((1.0 - kept) * P).sum(0)
        P = kept * P + (lacking / lacking.sum())[:, None] * freed
        P[self.cells] = 0.0
        balanced = self._state(state.value, P, P.sum(0))
        state.U, state.own = balanced.U, balanced.own

    def moved(self, state: State, by: float) -> State | None:
        return None

    def bound(self, state: State) -> float:
        P, wrong = state.own
        return float(self.s @ (-xlog1py(1.0 - wrong, -wrong) - xlogy(P, P).sum(0)))
