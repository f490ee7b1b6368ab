"""Textbook loops in NumPy, one instance at a time, written without looking at the library.

A problem here is a `Plain`: functions of vectors. Every method returns its iterates x_1, ..., x_K
as rows. What a method shares with the library is the formula in its docstring, nothing else.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Plain(NamedTuple):
    grad: Callable  # x -> gradient of f
    L: float  # its Lipschitz constant
    prox: Callable  # (v, p) -> argmin r(x) + 1/2 sum (x - v)^2 / p
    subgrad: Callable | None  # x -> a subgradient of r


def least_squares(A, b):
    return lambda x: A.T @ (A @ x - b), np.linalg.norm(A, 2) ** 2


def logistic(A, b):
    m = len(b)
    return lambda x: A.T @ (1 / (1 + np.exp(-A @ x)) - b) / m, np.linalg.norm(A, 2) ** 2 / (4 * m)


def no_smooth(n):
    return lambda x: np.zeros(n), 0.0


def no_penalty():
    return lambda v, p: v, lambda x: np.zeros_like(x)


def l1(lam):
    def prox(v, p):
        return np.where(v > lam * p, v - lam * p, np.where(v < -lam * p, v + lam * p, 0.0))

    return prox, lambda x: lam * np.sign(x)


def elastic_net(lam, lam2):
    shrink, slope = l1(lam)
    return lambda v, p: shrink(v, p) / (1 + lam2 * p), lambda x: slope(x) + lam2 * x


def group_l1(lam, groups):
    members = [np.flatnonzero(groups == g) for g in range(groups.max() + 1)]

    def prox(v, p):
        x = np.zeros_like(v)
        for g in members:
            length = np.sqrt(np.sum(v[g] ** 2))
            if length > lam * p:
                x[g] = v[g] * (1 - lam * p / length)
        return x

    def subgrad(x):
        s = np.zeros_like(x)
        for g in members:
            length = np.sqrt(np.sum(x[g] ** 2))
            if length > 0:
                s[g] = lam * x[g] / length
        return s

    return prox, subgrad


def box(lower, upper):
    return lambda v, p: np.clip(v, lower, upper), None


def simplex(radius):
    def prox(v, p):
        low, high = v.min() - radius, v.max()
        for _ in range(200):  # bisection on the shift; far past the last bit
            middle = (low + high) / 2
            if np.maximum(v - middle, 0).sum() > radius:
                low = middle
            else:
                high = middle
        return np.maximum(v - (low + high) / 2, 0)

    return prox, None


def ista(plain, x, steps):
    """x+ = prox(x - grad(x)/L, 1/L)."""
    rows = []
    for _ in range(steps):
        x = plain.prox(x - plain.grad(x) / plain.L, 1 / plain.L)
        rows.append(x)
    return np.array(rows)


def fista(plain, x, steps, restart=False):
    """Beck and Teboulle (2009), section 4; restart by the gradient scheme of O'Donoghue, Candes."""
    y, t = x, 1.0
    rows = []
    for _ in range(steps):
        x_next = plain.prox(y - plain.grad(y) / plain.L, 1 / plain.L)
        t_next = (1 + np.sqrt(1 + 4 * t * t)) / 2
        if restart and np.dot(y - x_next, x_next - x) > 0:
            y, t = x_next, 1.0
        else:
            y, t = x_next + (t - 1) / t_next * (x_next - x), t_next
        x = x_next
        rows.append(x)
    return np.array(rows)


def fista_restart(plain, x, steps):
    return fista(plain, x, steps, restart=True)


def nesterov(plain, x, steps):
    """x_{k+1} = y_k - grad(y_k)/L, y_{k+1} = x_{k+1} + k/(k + 3) (x_{k+1} - x_k)."""
    y = x
    rows = []
    for k in range(steps):
        x_next = y - plain.grad(y) / plain.L
        y = x_next + k / (k + 3) * (x_next - x)
        x = x_next
        rows.append(x)
    return np.array(rows)


def pgd(plain, x, steps, mu=0.1):
    """Diagonal Barzilai-Borwein metric, coordinate by coordinate, in [L/1.9, L]."""
    n, L = len(x), plain.L
    u = np.full(n, L)
    last_x = last_g = None
    rows = []
    for _ in range(steps):
        g = plain.grad(x)
        if last_x is not None:
            s, d = x - last_x, g - last_g
            weight = mu * np.sum(s**2) / n
            for i in range(n):
                u[i] = (s[i] * d[i] + weight * u[i]) / (s[i] ** 2 + weight)
                u[i] = min(max(u[i], L / 1.9), L)
        last_x, last_g = x, g
        x = plain.prox(x - g / u, 1 / u)
        rows.append(x)
    return np.array(rows)


def ppa(plain, x, steps):
    """x+ = prox(x, 1)."""
    rows = []
    for _ in range(steps):
        x = plain.prox(x, 1.0)
        rows.append(x)
    return np.array(rows)


def subgradient(plain, x, steps):
    """x+ = x - g / (L sqrt(k)), k = 1, 2, ..."""
    rows = []
    for k in range(1, steps + 1):
        x = x - (plain.grad(x) + plain.subgrad(x)) / (plain.L * np.sqrt(k))
        rows.append(x)
    return np.array(rows)


def adam(plain, x, steps, alpha=1e-2, hyper=0.0):
    """Kingma and Ba (2015), algorithm 1; with `hyper` Baydin et al. (2018), algorithm 5.

    The hyper-gradient is -g_k . u_{k-1}, with u the last update direction, so alpha moves by
    hyper * g_k . u_{k-1} before the step is taken.
    """
    m = v = u = np.zeros_like(x)
    rows = []
    for k in range(1, steps + 1):
        g = plain.grad(x) + plain.subgrad(x)
        alpha = alpha + hyper * np.dot(g, u)
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        u = (m / (1 - 0.9**k)) / (np.sqrt(v / (1 - 0.999**k)) + 1e-8)
        x = x - alpha * u
        rows.append(x)
    return np.array(rows)


def adamhd(plain, x, steps):
    return adam(plain, x, steps, hyper=1e-4)
