"""
Compressed sensing
==================

A signal with 50 non-zeros among 500 numbers is recovered from 250 random measurements. The problem
is a LASSO like those the shipped model ``lasso`` was trained on, so few iterations suffice; the
certificate says so without knowing the answer.
"""

import matplotlib.pyplot as plt
import torch

import proxlearn as pl

generator = torch.Generator().manual_seed(7)
A = torch.randn(250, 500, generator=generator, dtype=torch.float64)
A /= A.norm(dim=0)
truth = torch.zeros(500, dtype=torch.float64)
where = torch.randperm(500, generator=generator)[:50]
truth[where] = torch.randn(50, generator=generator, dtype=torch.float64)
problem = pl.lasso(A, A @ truth, lam=0.1)

# %%
# The learned rule beside FISTA with restart, both without the exact method that would end the
# solve early: what is drawn is the certified relative gap, an upper bound on the distance from F*.

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for name in ("fista-restart", "lasso"):
    path = pl.solve(problem, name, tol=1e-8, max_iter=2000, polish=False, record=True)
    print(f"{name:14} {path}")
    axes.semilogy(path.history.gap[:, 0] / path.objective, label=name)
axes.set(xlabel="iteration", ylabel="certified relative gap")
axes.legend()
plt.show()

# %%
# The answer itself, as `solve` gives it by default. LASSO shrinks every entry a little: a larger
# lam shrinks more and forgives more noise.

solution = pl.solve(problem, "lasso")
print(f"{'exact end':14} {solution}")
error = (solution.x - truth).norm() / truth.norm()
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for signal, style, label in [
    (truth, "o", "true signal"),
    (solution.x, "x", f"recovered, {error:.1%} off"),
]:
    nonzero = signal.nonzero()[:, 0]
    axes.plot(nonzero, signal[nonzero], style, markersize=4, label=label)
axes.axhline(0, color="0.8", linewidth=1)
axes.set(xlabel="coordinate", ylabel="value, where it is not 0")
axes.legend()
plt.show()
