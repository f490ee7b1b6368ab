"""The paper's theorems, made: P_k and b_k of a rule that was not written with them.

Theorem 1 says that a rule x+ = x - d_k(x, grad f(x)) with a bounded Jacobian, which rests at the
minimiser in the limit and converges, can be written d_k = P_k grad f(x) + b_k with bounded P_k and
b_k -> 0. The proof makes both from the Jacobian of d_k between (x_k, grad f(x_k)) and (x*, 0):

    J_1, J_2 = the mean of the Jacobian along the line      P_k = J_2
    b_k = J_1 (x_k - x*) + d_k(x*, 0)

The first table does this for a rule with a saturating gradient, a term that depends on x, and a
perturbation that fades. The second is about Proposition 2: explicit rules on r(x) = |A x|_1. There
the subgradient does not shrink as x comes close to 0, so that P_k itself must: with a constant step
the iterates stay away from 0, at a distance that shrinks with the step. Seconds on one core.

    python examples/structure_of_rules.py
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import jacrev

N, K = 6, 400
POINTS = 64
"""Points of Gauss's rule for the mean of the Jacobian along a line."""
Direction = Callable[[Tensor, Tensor], Tensor]


def smooth_problem(seed: int = 0) -> tuple[Tensor, Tensor]:
    """H and x* of f(x) = 1/2 (x - x*)^T H (x - x*), with eigenvalues between 0.1 and 1."""
    generator = torch.Generator().manual_seed(seed)
    Q = torch.linalg.qr(torch.randn(N, N, generator=generator, dtype=torch.float64))[0]
    H = Q @ torch.diag(torch.linspace(0.1, 1, N, dtype=torch.float64)) @ Q.T
    return H, torch.randn(N, generator=generator, dtype=torch.float64)


def rule(k: int) -> Direction:
    """d_k: no one would call it a preconditioned gradient with a bias."""

    def d(x: Tensor, g: Tensor) -> Tensor:
        fading = 0.5 / (k + 1) ** 2 * torch.cos(x)
        return torch.tanh(g) + 0.2 * g * torch.sin(x) ** 2 + fading

    return d


def structure(d: Direction, x: Tensor, g: Tensor, star: Tensor) -> tuple[Tensor, Tensor]:
    """P and b of Theorem 1, with Gauss's rule for the mean of the Jacobian along the line."""
    nodes, weights = (torch.from_numpy(v) for v in gauss())
    zero = torch.zeros_like(g)
    J1, J2 = torch.zeros(N, N, dtype=x.dtype), torch.zeros(N, N, dtype=x.dtype)
    for t, w in zip(nodes, weights, strict=True):
        by_x, by_g = jacrev(d, argnums=(0, 1))(star + t * (x - star), t * g)
        J1, J2 = J1 + w * by_x, J2 + w * by_g
    return J2, J1 @ (x - star) + d(star, zero)


def gauss() -> tuple[object, object]:
    """Nodes and weights on [0, 1]."""
    import numpy as np

    nodes, weights = np.polynomial.legendre.leggauss(POINTS)
    return (nodes + 1) / 2, weights / 2


def smooth_table() -> list[tuple[int, float, float, float, float]]:
    """k, |x_k - x*|, |P_k|, |b_k|, and |d_k - P_k g - b_k|, which is 0 up to rounding."""
    H, star = smooth_problem()
    x, rows = star + 2, []
    for k in range(K + 1):
        g, d = H @ (x - star), rule(k)
        if k in (0, 1, 10, 100, K):
            P, b = structure(d, x, g, star)
            error = (d(x, g) - P @ g - b).norm().item()
            spectral = torch.linalg.matrix_norm(P, 2).item()
            rows.append((k, (x - star).norm().item(), spectral, b.norm().item(), error))
        x = x - d(x, g)
    return rows


def explicit_table() -> list[tuple[float, float]]:
    """For constant steps p: how far from 0 an explicit rule x+ = x - p g still is, at the end.

    r(x) = |A x|_1 with |A| <= 1; the distance is the largest of the last 100 iterations.
    """
    generator = torch.Generator().manual_seed(1)
    A = torch.randn(N, N, generator=generator, dtype=torch.float64)
    A = A / torch.linalg.matrix_norm(A, 2)
    rows = []
    for p in (1e-1, 1e-2, 1e-3):
        x, last = torch.full((N,), 0.5, dtype=torch.float64), []
        steps = int(20 / p)
        for k in range(steps):
            x = x - p * A.T @ torch.sign(A @ x)
            if k >= steps - 100:
                last.append(x.norm().item())
        rows.append((p, max(last)))
    return rows


def main() -> None:
    """Print both tables."""
    print("Theorem 1: d_k = P_k grad f(x_k) + b_k")
    print(f"{'k':>5}{'|x - x*|':>12}{'|P_k|':>9}{'|b_k|':>11}{'error':>10}")
    for k, distance, P, b, error in smooth_table():
        print(f"{k:>5}{distance:12.2e}{P:9.3f}{b:11.2e}{error:10.1e}")
    print("Proposition 2: explicit rules with constant steps p on |A x|_1")
    print(f"{'p':>7}{'distance from 0':>18}")
    for p, distance in explicit_table():
        print(f"{p:>7g}{distance:18.2e}")


if __name__ == "__main__":
    main()
