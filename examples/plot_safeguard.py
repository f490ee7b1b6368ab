"""
A rule that is wrong, and the safeguard
=======================================

The paper's rule reads gradients in the units of its training family. Multiply A and b by 30, and
lambda by 900: the same problem, and yet the rule no longer converges. With the safeguard, which
`solve` uses unless told otherwise, FISTA takes over where the rule makes no progress, and the
answer is certified all the same. The compact rule reads quantities without
units and notices nothing.
"""

import matplotlib.pyplot as plt
import torch

import proxlearn as pl

generator = torch.Generator().manual_seed(3)
A = torch.randn(250, 500, generator=generator, dtype=torch.float64)
A /= A.norm(dim=0)
truth = torch.randn(500, generator=generator, dtype=torch.float64)
truth[torch.randperm(500, generator=generator)[50:]] = 0
problem = pl.lasso(30 * A, 30 * (A @ truth), lam=900 * 0.1)

# %%
# What is drawn is the certified gap of each run, relative to the optimal value; the paper's rule by
# itself leaves the picture at the top.

optimum = pl.solve(problem, "fista-restart", tol=1e-10, max_iter=2000)
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for name, safeguard, label in [
    ("lasso-pa", False, "the paper's rule, bare"),
    ("lasso-pa", True, "the paper's rule, safeguarded"),
    ("lasso", False, "compact rule, bare"),
    ("fista-restart", False, "FISTA with restart"),
]:
    run = pl.solve(problem, name, max_iter=200, safeguard=safeguard, polish=False, record=True)
    print(f"{label:30} {run}")
    axes.semilogy(run.history.gap[:, 0] / optimum.objective, label=label)
axes.set(xlabel="iteration", ylabel="certified relative gap", xlim=(0, 100))
axes.set_ylim(1e-7, 1e3)
axes.legend()
plt.show()
