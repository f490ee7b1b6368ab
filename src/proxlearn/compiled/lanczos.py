"""||A||^2 of one instance from a few products, as `proxlearn.lanczos` does it for a batch."""

import math
from typing import Any

import numpy as np

from proxlearn.compiled.data import normal
from proxlearn.compiled.maths import F, compiled, dot

STEPS, MARGIN = 4, 1.06
"""Lanczos steps, and the factor on what they find."""


@compiled
def vector(n: int) -> Any:
    """Room for n numbers, contiguous: rows of a matrix are slower by a factor of five."""
    return np.empty(n, np.float32)


@compiled
def ritz(d: Any, m: int, g: Any) -> float:
    """||A||^2 from below, by Lanczos on A^T A.

    The start is a gradient, where a product with A^T has enlarged what matters already, and waves,
    so that no direction is left out.
    """
    n = len(g)
    q, last, w, z = vector(n), vector(n), vector(n), vector(m)
    alpha, beta = np.zeros(STEPS), np.zeros(STEPS + 1)
    last[:] = F(0)
    size = math.sqrt(dot(g, g))
    for j in range(n):
        wave = (1 + 0.9 * math.sin(12.9898 * j)) / math.sqrt(1.4 * n)
        q[j] = 0.5 * wave + (g[j] / size if size > 0 else 0.0)
    size = math.sqrt(dot(q, q))
    for j in range(n):
        q[j] /= F(size)
    used = 0
    for k in range(STEPS):
        normal(d, q, z, w)
        total = 0.0
        for j in range(n):
            w[j] -= F(beta[k]) * last[j]
            total += w[j] * q[j]
        alpha[k], used = total, k + 1
        total = 0.0
        for j in range(n):
            w[j] -= F(alpha[k]) * q[j]
            total += w[j] * w[j]
        beta[k + 1] = math.sqrt(total)
        if not beta[k + 1] > 1e-5 * alpha[0]:
            break
        for j in range(n):
            last[j] = q[j]
            q[j] = w[j] / F(beta[k + 1])
    return _largest(alpha[:used], beta[1:used])


@compiled
def _largest(alpha: Any, beta: Any) -> float:
    """The largest eigenvalue of a tridiagonal matrix, by bisection on the signs of the pivots."""
    k = len(alpha)
    low = high = 0.0
    for i in range(k):
        around = (beta[i - 1] if i > 0 else 0.0) + (beta[i] if i < k - 1 else 0.0)
        low, high = max(low, alpha[i]), max(high, alpha[i] + around)
    for _ in range(20):
        middle = 0.5 * (low + high)
        pivot, above = 1.0, False
        for i in range(k):
            pivot = alpha[i] - middle - (beta[i - 1] ** 2 / pivot if i > 0 else 0.0)
            above = above or pivot > 0
            pivot = pivot if pivot != 0 else -1e-30
        low, high = (middle, high) if above else (low, middle)
    return high
